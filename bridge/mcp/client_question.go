package mcpbridge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// question is an elicitation of a server as a question of this toolkit, which has its rules: what
// cannot be asked by them is a failure, and nobody is asked.
func (h *ClientHandler) question(key string, request mcp.InputRequest) (interrupt.Interrupt, error) {
	asked, ok := request.(*mcp.ElicitParams)
	if !ok {
		return nil, &interrupt.Failure{Text: h.name + " asks for something that is no question to a person"}
	}
	message := h.name + " asks: " + asked.Message
	switch {
	case asked.Mode == "url", asked.Mode == "" && asked.URL != "":
		q := interrupt.URL(message, asked.URL)
		q.Key = key
		return q, h.fit(q)
	case asked.Mode != "" && asked.Mode != "form":
		return nil, &interrupt.Failure{Text: fmt.Sprintf("%s asks in the mode %.64q", h.name, asked.Mode)}
	}
	schema, err := profiled(asked.RequestedSchema)
	if err != nil {
		return nil, &interrupt.Failure{Text: h.name + " asks with a form that cannot be read", Err: err}
	}
	q := interrupt.Form(message, schema)
	q.Key = key
	if err := h.fit(q); err != nil {
		return nil, err
	}
	fields, err := q.Fields()
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		switch {
		case elicit.AsksForSecret(f):
			return nil, &interrupt.Failure{Text: fmt.Sprintf("%s asks for a secret, %.64q, in a form", h.name, f.Name)}
		case f.Minimum != "" && !safe(f.Minimum), f.Maximum != "" && !safe(f.Maximum):
			// The SDK has read it as float64 before.
			return nil, &interrupt.Failure{Text: fmt.Sprintf("%s asks for a number, %.64q, with a bound beyond 2^53-1", h.name, f.Name)}
		}
	}
	return q, nil
}

// fit reports a question that cannot be shown: it is the server's mistake, and not
// invalid_question, which is the handler's.
func (h *ClientHandler) fit(q interrupt.Validator) error {
	if err := q.Validate(); err != nil {
		return &interrupt.Failure{Text: h.name + " asks what cannot be shown: " + err.Error()}
	}
	return nil
}

// profiled is a schema as forms take it (R11). MCP lets a list of choices go without a bound on how
// many are chosen, which is then as many as there are.
func profiled(requested any) (json.RawMessage, error) {
	raw, err := json.Marshal(requested)
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := decodeNumbers(raw, &root); err != nil {
		return nil, err
	}
	if root == nil {
		root = map[string]any{}
	}
	root["type"] = "object"
	properties, _ := root["properties"].(map[string]any)
	for _, p := range properties {
		property, _ := p.(map[string]any)
		if _, bounded := property["maxItems"]; property["type"] != "array" || bounded {
			continue
		}
		items, _ := property["items"].(map[string]any)
		choices, _ := items["enum"].([]any)
		titled, _ := items["anyOf"].([]any)
		property["maxItems"] = len(choices) + len(titled)
	}
	return json.Marshal(root)
}

// decodeNumbers reads JSON with its numbers as they are written.
func decodeNumbers(raw json.RawMessage, v *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}
