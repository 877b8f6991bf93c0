package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/schema"
)

const testAPIKey = "a key of the test"

// A wish is as much of a chat-completions request as the endpoint below looks at.
type wish struct {
	Model    string
	Stream   bool
	Messages []struct {
		Role       string
		Content    string
		ToolCallID string `json:"tool_call_id"`
	}
}

// endpoint speaks chat-completions, whole and in pieces, and does as the script does.
func endpoint(t *testing.T, asked *atomic.Int64) string {
	handle := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var in wish
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || in.Model != "test-model" || r.Header.Get("Authorization") != "Bearer "+testAPIKey {
			http.Error(w, `{"error":{"message":"refused"}}`, http.StatusUnauthorized)
			t.Errorf("request for model %q, %v", in.Model, err)
			return
		}
		var told []string
		for _, m := range in.Messages {
			if m.Role == "tool" {
				told = append(told, m.ToolCallID+": "+m.Content)
			}
		}
		switch len(told) {
		case 0:
			reply(w, in.Stream, "", "changes")
		case 1:
			reply(w, in.Stream, "", "migrate", "deploy")
		default:
			slices.Sort(told)
			reply(w, in.Stream, strings.Join(told, "; "))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", handle)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// reply writes text and tool calls. In pieces, the arguments of a call come in two.
func reply(w http.ResponseWriter, stream bool, text string, tools ...string) {
	const arguments = `{"service":"api"}`
	head := func(i int, args string) map[string]any {
		return map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d_%s", i, tools[i]), "type": "function", "function": map[string]any{"name": tools[i], "arguments": args},
		}
	}
	reason := "stop"
	if len(tools) > 0 {
		reason = "tool_calls"
	}
	if !stream {
		message := map[string]any{"role": "assistant", "content": text}
		var calls []any
		for i := range tools {
			calls = append(calls, head(i, arguments))
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		w.Header().Set("Content-Type", "application/json")
		writeJSON(w, map[string]any{
			"id": "1", "object": "chat.completion",
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
		})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	piece := func(delta map[string]any, reason any) {
		fmt.Fprint(w, "data: ")
		writeJSON(w, map[string]any{
			"id": "1", "object": "chat.completion.chunk",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
		})
		fmt.Fprint(w, "\n\n")
		w.(http.Flusher).Flush()
	}
	piece(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, word := range strings.SplitAfter(text, " ") {
		piece(map[string]any{"content": word}, nil)
	}
	for i := range tools {
		piece(map[string]any{"tool_calls": []any{head(i, arguments[:5])}}, nil)
		piece(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": arguments[5:]}}}}, nil)
	}
	piece(map[string]any{}, reason)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func writeJSON(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// environment is that of a program with an endpoint.
func environment(url string) func(string) string {
	values := map[string]string{"OPENAI_BASE_URL": url, "OPENAI_API_KEY": testAPIKey, "OPENAI_MODEL": "test-model"}
	return func(name string) string { return values[name] }
}

// The model of an endpoint takes the place of the script, streams, and is not asked again for what
// it answered before a restart.
func TestEndpoint(t *testing.T) {
	var asked atomic.Int64
	m, err := chooseModel(t.Context(), environment(endpoint(t, &asked)))
	if err != nil {
		t.Fatal(err)
	}
	play(t, m, []step{
		{"", "Migrate the database of api, with {\"service\":\"api\"}? (2 open)"},
		{"y\n", "Deploy api, with {\"service\":\"api\"}? (1 open)"},
		{"y\n", "call_0_changes: 3 changes, one of them to the database; call_0_migrate: api migrated; call_1_deploy: api deployed"},
	})
	if n := asked.Load(); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
}

// Without streaming the endpoint's tool calls are the same.
func TestEndpointWhole(t *testing.T) {
	var asked atomic.Int64
	m, err := chooseModel(t.Context(), environment(endpoint(t, &asked)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := m.Generate(t.Context(), []*schema.Message{schema.UserMessage(request)})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.ToolCalls) != 1 || answer.ToolCalls[0].ID != "call_0_changes" || answer.ToolCalls[0].Function.Arguments != `{"service":"api"}` {
		t.Errorf("have %v", answer)
	}
}

// Half of an endpoint is a mistake, and not the scripted model.
func TestChooseModel(t *testing.T) {
	if m, err := chooseModel(t.Context(), func(string) string { return "" }); err != nil || m == nil {
		t.Errorf("without an endpoint: %v, %v", m, err)
	}
	for _, left := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"} {
		all := environment("http://localhost:1/v1")
		_, err := chooseModel(t.Context(), func(name string) string {
			if name == left {
				return ""
			}
			return all(name)
		})
		if err == nil {
			t.Errorf("without %s: want an error", left)
		}
	}
}
