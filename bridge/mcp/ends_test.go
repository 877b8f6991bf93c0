package mcpbridge_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
)

func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// wantText wants a result that is no error and says that.
func wantText(t *testing.T, r *mcp.CallToolResult, want string) {
	t.Helper()
	if r.IsError || textOf(r) != want || r.NeedsInput() {
		t.Errorf("result %q (error %v, asks %v), want %q", textOf(r), r.IsError, r.NeedsInput(), want)
	}
}

// wantEnding wants a tool error with that code.
func wantEnding(t *testing.T, r *mcp.CallToolResult, want gate.Code) mcpbridge.Ending {
	t.Helper()
	var ending mcpbridge.Ending
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &ending)
	}
	if err != nil || !r.IsError || ending.Code != want {
		t.Errorf("result %q (error %v) with %s, want a tool error %s", textOf(r), r.IsError, raw, want)
	}
	return ending
}

// wantError wants a protocol error with that number and code.
func wantError(t *testing.T, err error, number int64, code gate.Code) mcpbridge.ErrorData {
	t.Helper()
	var wire *jsonrpc.Error
	var data mcpbridge.ErrorData
	if !errors.As(err, &wire) || wire.Code != number {
		t.Fatalf("error %v, want number %d", err, number)
	}
	if uerr := json.Unmarshal(wire.Data, &data); uerr != nil || data.Code != code {
		t.Errorf("error %v with data %s, want code %s", err, wire.Data, code)
	}
	return data
}

// codeOf is how a call ended: the code of its error or of its result's ending; "" for a result of the
// tool's.
func codeOf(t *testing.T, result *mcp.CallToolResult, err error) gate.Code {
	var end struct {
		Code gate.Code `json:"code"`
	}
	var data []byte
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		data = wire.Data
	case err != nil:
		t.Errorf("neither a result nor an error of the bridge: %v", err)
		return "none"
	case !result.IsError:
		return ""
	default:
		if data, err = json.Marshal(result.StructuredContent); err != nil {
			t.Error(err)
		}
	}
	if err := json.Unmarshal(data, &end); err != nil || end.Code == "" {
		t.Errorf("an end without a code: %s, %v", data, err)
		return "none"
	}
	return end.Code
}

// only is the one input request of a result, with its key.
func only(t *testing.T, r *mcp.CallToolResult) (string, *mcp.ElicitParams) {
	t.Helper()
	if !r.NeedsInput() || len(r.InputRequests) != 1 || len(r.RequestState) != gate.TokenLength || len(r.Content) > 0 {
		t.Fatalf("want one input request and a token, have %+v, %q", r, textOf(r))
	}
	for key, request := range r.InputRequests {
		return key, request.(*mcp.ElicitParams)
	}
	return "", nil
}

// with is the same call with a state and answers.
func with(tool, arguments, state string, answers mcp.InputResponseMap) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), RequestState: state, InputResponses: answers}
}

func accept(content string) *mcp.ElicitResult {
	r := &mcp.ElicitResult{Action: "accept"}
	if content != "" {
		if err := json.Unmarshal([]byte(content), &r.Content); err != nil {
			panic(err)
		}
	}
	return r
}

func contains(all []string, part string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, part) })
}
