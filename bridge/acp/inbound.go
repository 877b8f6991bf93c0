package acpbridge

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/internal/canon"
)

// An inbound is what the SDK reads from. Turns begin here, when their prompt is read, and are
// cancelled here: the order is that in which the client wrote. The SDK runs every prompt in a
// goroutine of its own and cancels in another, so that a cancel right behind its prompt can come
// first and meet nothing.
type inbound struct {
	bridge *Bridge
	source *bufio.Reader
	rest   []byte // of the line that is being read
}

// maxLine is what the SDK takes; it gives the connection up over a longer one.
const maxLine = 10 << 20

func newLines(in io.Reader) *bufio.Reader { return bufio.NewReaderSize(in, 64<<10) }

func newKey() string { return rand.Text() }

func (r *inbound) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil {
			r.bridge.lost()
			return 0, err
		}
		r.rest = line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line and acts on it. One that is too long is handed on in pieces.
func (r *inbound) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.source.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == bufio.ErrBufferFull && len(line) <= maxLine:
		case err == bufio.ErrBufferFull:
			return line, nil
		case err != nil && len(line) == 0:
			return nil, err
		default:
			return r.bridge.noticed(line), nil
		}
	}
}

// A message is as much of a line as matters here.
type message struct {
	ID     *json.RawMessage `json:"id"` // nil where it is null, as the SDK has it
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
}

// noticed acts on a line, and returns it as the SDK is to read it.
func (b *Bridge) noticed(line []byte) []byte {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	switch {
	case m.Method == acp.AgentMethodSessionPrompt && m.ID != nil:
		return b.prompted(line, m)
	case m.Method == acp.AgentMethodSessionCancel && m.ID == nil:
		var p acp.CancelNotification
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelSession(p.SessionId, errSessionCancel)
		}
	case m.Method == acp.AgentMethodSessionClose && m.ID != nil:
		// "Treat it as if session/cancel was called":
		// https://agentclientprotocol.com/protocol/session-setup#closing-active-sessions
		var p acp.CloseSessionRequest
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelSession(p.SessionId, errSessionClose)
		}
	case m.Method == "$/cancel_request" && m.ID == nil:
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelRequest(requestID(p.RequestID))
		}
	case m.Method != "" && !b.whole && !strings.HasPrefix(m.Method, "_") && !slices.Contains(methods, m.Method):
		return unserved(line)
	}
	return line
}

const unservedMethod = "_parley/unserved"

// unserved makes an extension method of one that the agent may not have, which it does not have for
// certain: the SDK calls what it knows without looking whether it is there.
func unserved(line []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(line, &whole) != nil {
		return line
	}
	whole["method"] = json.RawMessage(`"` + unservedMethod + `"`)
	out, err := json.Marshal(whole)
	if err != nil {
		return line
	}
	return append(out, '\n')
}

// requestID is one text for every way to write the id; "" is no id.
func requestID(raw json.RawMessage) string {
	id, err := canon.JSON(raw, &canon.Limits{Bytes: 8 << 10})
	if err != nil {
		return ""
	}
	return string(id)
}

// prompted begins the turn of a prompt, and has the prompt bring its key. One that the SDK will
// refuse is no turn.
func (b *Bridge) prompted(line []byte, m message) []byte {
	var p acp.PromptRequest
	if json.Unmarshal(m.Params, &p) != nil || p.Validate() != nil {
		return line
	}
	var whole, params, meta map[string]json.RawMessage
	if json.Unmarshal(line, &whole) != nil || json.Unmarshal(m.Params, &params) != nil {
		return line
	}
	if json.Unmarshal(params["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	key := newKey()
	meta[b.metas], _ = json.Marshal(key) // a string, and maps of JSON: they always have a form
	params["_meta"], _ = json.Marshal(meta)
	whole["params"], _ = json.Marshal(params)
	out, err := json.Marshal(whole)
	if err != nil || bytes.ContainsRune(out, '\n') {
		return line
	}
	b.read(key, p.SessionId, *m.ID)
	return append(out, '\n')
}
