package acpbridge

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/lines"
)

// An inbound is what the SDK reads from. Turns begin here, when their prompt is read, and are
// cancelled here: the order is that in which the client wrote. The SDK runs every prompt in a
// goroutine of its own and cancels in another, so that a cancel right behind its prompt can come
// first and meet nothing.
type inbound struct {
	bridge *Bridge
	lines  *lines.Reader
}

// maxLine is what the SDK takes; it gives the connection up over a longer one.
const maxLine = 10 << 20

func newInbound(b *Bridge, in io.Reader) *inbound {
	return &inbound{bridge: b, lines: lines.NewReader(in, maxLine, b.noticed)}
}

func newKey() string { return rand.Text() }

func (r *inbound) Read(p []byte) (int, error) {
	<-r.bridge.connected // until then the SDK's connection is being set up, by a goroutine beside its reader
	n, err := r.lines.Read(p)
	if err != nil {
		r.bridge.lost()
	}
	return n, err
}

// A message has the members that the SDK reads, in its types: what is one here is one there.
type message struct {
	Version string            `json:"jsonrpc"`
	ID      *json.RawMessage  `json:"id,omitempty"` // nil where it is null
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Error   *acp.RequestError `json:"error,omitempty"`
}

// line is the message as the SDK is to read it. It is hardly longer than what was read: the
// standard library's would be, where a prompt has a page of HTML in it.
func (m message) line() []byte {
	text, err := canon.Marshal(m)
	if err != nil {
		panic(err) // it was read as JSON
	}
	return append(text, '\n')
}

// noticed acts on a line, and returns it as the SDK is to read it. A cancel counts in whatever form
// it comes: the SDK takes one that is a request, too.
func (b *Bridge) noticed(line []byte) []byte {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Method == "" && m.ID == nil {
		if len(bytes.TrimSpace(line)) > 0 {
			b.opts.Logger.Warn("the client sent a line that is no message", "bytes", len(line))
		}
		return []byte("\n") // the SDK would write it to the log, with what a person may have typed
	}
	switch {
	case m.Method == "":
		return answered(line, m)
	case m.Method == acp.AgentMethodSessionPrompt && m.ID != nil:
		return b.prompted(line, m)
	case m.Method == acp.AgentMethodSessionCancel:
		var p acp.CancelNotification
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelSession(p.SessionId, errSessionCancel)
		}
	case m.Method == acp.AgentMethodSessionClose:
		// "Treat it as if session/cancel was called":
		// https://agentclientprotocol.com/protocol/session-setup#closing-active-sessions
		var p acp.CloseSessionRequest
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelSession(p.SessionId, errSessionClose)
		}
	case m.Method == "$/cancel_request":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			b.cancelRequest(requestID(p.RequestID))
		}
	case !b.whole && !strings.HasPrefix(m.Method, "_") && !slices.Contains(methods, m.Method):
		m.Method = unserved + m.Method
		return m.line()
	}
	return line
}

// answered returns a response as the SDK is to read it. Of one that can be read in two ways the SDK
// would take the last one, and names in any case: a gateway before the agent may have taken it for
// another answer.
func answered(line []byte, m message) []byte {
	list, twice, _ := canon.Members(line) // it was read as an object
	said := map[string]bool{}             // what there is, and is not null
	for _, has := range list {
		for _, name := range []string{"jsonrpc", "id", "method", "result", "error"} {
			twice = twice || has.Name != name && strings.EqualFold(has.Name, name)
		}
		said[has.Name] = string(has.Value) != "null"
	}
	if !twice && !(said["result"] && said["error"]) {
		return line
	}
	m.Version = "2.0"
	m.Error = &acp.RequestError{Code: codeInvalidRequest, Message: "the response can be read in two ways", Data: dataTwoWays}
	return m.line()
}

// dataTwoWays is the data of the error that stands for a response that can be read in two ways. A
// client that sends it is asked again.
const dataTwoWays = "parley/two-ways"

func twoWays(err error) bool {
	e, ok := errors.AsType[*acp.RequestError](err)
	return ok && e.Data == dataTwoWays
}

// unserved begins the name of an extension that no agent has. It makes one of a method that the
// agent may not have: the SDK calls what it knows without looking whether it is there.
const unserved = "_parley/unserved/"

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
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(m.Params, &params) != nil {
		return line
	}
	if json.Unmarshal(params["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	key := newKey()
	meta[b.metas], _ = canon.Marshal(key) // a string, and maps of JSON: they always have a form
	params["_meta"], _ = canon.Marshal(meta)
	m.Params, _ = canon.Marshal(params)
	var p acp.PromptRequest // of what the SDK will read: of two names that it takes for one, the last counts
	if json.Unmarshal(m.Params, &p) != nil || p.Validate() != nil {
		return line
	}
	b.read(key, p.SessionId, *m.ID)
	return m.line()
}
