package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/lines"
)

// ofLines is the SDK's transport over lines with what the bridge does to each line before the SDK
// reads it; another transport is what it was. The SDK would end the connection, and with it what is
// being asked, over a line that is no message; and of two members of a message with one name it
// takes the last one.
func (b *Bridge) ofLines(t mcp.Transport) mcp.Transport {
	var whole mcp.IOTransport
	switch t := t.(type) {
	case *mcp.StdioTransport:
		whole = mcp.IOTransport{Reader: os.Stdin, Writer: neverClosed{os.Stdout}, MaxLineLength: t.MaxLineLength}
	case *mcp.IOTransport:
		whole = *t
	case *mcp.LoggingTransport:
		return &mcp.LoggingTransport{Transport: b.ofLines(t.Transport), Writer: t.Writer}
	default:
		return t
	}
	most := whole.MaxLineLength
	switch {
	case most == 0:
		most = mcp.DefaultMaxLineLength
	case most < 0:
		most = math.MaxInt
	}
	in := whole.Reader
	whole.Reader = struct {
		io.Reader
		io.Closer
	}{lines.NewReader(in, most, b.exactLine), in}
	return &whole
}

// neverClosed is the process's own output, as the SDK has it.
type neverClosed struct{ io.Writer }

func (neverClosed) Close() error { return nil }

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
