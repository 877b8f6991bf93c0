package mcpbridge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
)

// ofLines is the SDK's transport over lines with what the bridge does to each line before the SDK
// reads it; another transport is what it was. The SDK would end the connection, and with it what is
// being asked, over a line that is no message; and of two members of a message with one name it
// takes the last one.
func (b *Bridge) ofLines(t mcp.Transport) mcp.Transport {
	var lines mcp.IOTransport
	switch t := t.(type) {
	case *mcp.StdioTransport:
		lines = mcp.IOTransport{Reader: os.Stdin, Writer: neverClosed{os.Stdout}, MaxLineLength: t.MaxLineLength}
	case *mcp.IOTransport:
		lines = *t
	default:
		return t
	}
	most := lines.MaxLineLength
	switch {
	case most == 0:
		most = mcp.DefaultMaxLineLength
	case most < 0:
		most = math.MaxInt
	}
	lines.Reader = &lineReader{Closer: lines.Reader, bridge: b, source: bufio.NewReaderSize(lines.Reader, 64<<10), most: most}
	return &lines
}

// neverClosed is the process's own output, as the SDK has it.
type neverClosed struct{ io.Writer }

func (neverClosed) Close() error { return nil }

// A lineReader reads whole lines, as the SDK is to read them.
type lineReader struct {
	io.Closer
	bridge *Bridge
	source *bufio.Reader
	most   int    // what the SDK takes; it gives the connection up over a longer one
	rest   []byte // of the line that is being read
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil {
			return 0, err
		}
		r.rest = line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line. One that is too long is handed on in pieces.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.source.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == bufio.ErrBufferFull && len(line) <= r.most:
		case err == bufio.ErrBufferFull:
			return line, nil
		case err != nil && len(line) == 0:
			return nil, err
		default:
			return r.bridge.exactLine(line), nil
		}
	}
}

// exactLine is the line as the SDK is to read it; nil: it is not to read it. A line is one message,
// or the batch of an old protocol.
func (b *Bridge) exactLine(line []byte) []byte {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil || batch == nil {
		return b.exactMessage(line)
	}
	var kept [][]byte
	for _, one := range batch {
		if message := b.exactMessage(one); message != nil {
			kept = append(kept, bytes.TrimSpace(message))
		}
	}
	if kept == nil {
		return nil
	}
	return append(append([]byte("["), bytes.Join(kept, []byte(","))...), "]\n"...)
}

func (b *Bridge) exactMessage(text []byte) []byte {
	message, err := jsonrpc.DecodeMessage(text)
	list, twice, unread := canon.Members(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil
	case err != nil || unread != nil:
		b.opts.Logger.Warn("the client sent a line that is no message", "bytes", len(text))
		return nil // the SDK's error would have text of it, and end the connection
	case !twice && !twoWays(list):
		return text
	}
	switch m := message.(type) {
	case *jsonrpc.Request:
		if list, _, err := canon.Members(m.Params); err == nil && m.Method == "tools/call" && b.isCall(list) {
			m.Params = b.noted(list, ambiguous)
		}
		return encoded(m) // what is no call of a tool of the bridge's answers nothing
	case *jsonrpc.Response:
		m.Result, m.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: errTwoWays.Error(), Data: dataTwoWays}
		return encoded(m)
	}
	return text
}

func encoded(m jsonrpc.Message) []byte {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		panic(err) // it was decoded
	}
	return append(text, '\n')
}

// dataTwoWays is the data of the error that stands for a response that can be read in two ways. A
// client that sends it is asked again.
var dataTwoWays = json.RawMessage(`"parley/two-ways"`)

func stoodForTwoWays(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && bytes.Equal(e.Data, dataTwoWays)
}

// twoWays reports whether another reader could take another member of a message for one that
// counts, or an error for a result.
func twoWays(list []canon.Member) bool {
	result, failed := last(list, "result"), last(list, "error")
	return canon.InAnotherCase(list, "jsonrpc", "id", "method", "params", "result", "error") ||
		result != nil && failed != nil && string(result) != "null" && string(failed) != "null"
}
