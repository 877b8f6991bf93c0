package mcpbridge

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/schema"
)

// outputSchema is the schema of the tool's results, nil where there is none.
func (o *ToolOptions) outputSchema(result reflect.Type) (json.RawMessage, error) {
	if o.OutputSchema != nil {
		if !typeObject(o.OutputSchema) {
			return nil, fmt.Errorf("output schema: MCP takes results of type object only, and the schema does not say so")
		}
		return o.OutputSchema, nil
	}
	if result == nil || result.Kind() == reflect.Interface {
		return nil, nil
	}
	inferred, err := schema.ForType(result)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if !typeObject(inferred) { // clients of 2025 refuse the whole list of tools for one that is not
		return nil, nil
	}
	return inferred, nil
}

func typeObject(raw json.RawMessage) bool {
	var s struct{ Type any }
	return json.Unmarshal(raw, &s) == nil && s.Type == "object"
}

// endingSchema is that of [Ending].
const endingSchema = `{"type":"object","title":"Ending","description":"how the work ended that brought no result",` +
	`"properties":{"code":{"type":"string"},"message":{"type":"string"},"link":{"type":"string"},` +
	`"interaction":{"type":"string"},"ended":{"type":"string"}},"required":["code","message"]}`

// withEnding is the schema that a client sees: structured content is a result or, in a tool error,
// an [Ending]. The specification has structured content conform to the schema always, and clients
// check it for errors as well (the TypeScript SDK, version 1).
func withEnding(output json.RawMessage) (json.RawMessage, error) {
	list, _, err := canon.Members(output)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if ref := localRef(output); ref != "" {
		return nil, fmt.Errorf("output schema: the reference %q is to its root; use $defs", ref)
	}
	// References to definitions are from the root.
	roots := []string{"$schema", "$defs", "definitions"}
	root := []canon.Member{canon.NewMember("type", "object")}
	for _, m := range list {
		if slices.Contains(roots, m.Name) {
			root = append(root, m)
		}
	}
	either := []json.RawMessage{canon.Object(without(list, roots...)), json.RawMessage(endingSchema)}
	return canon.Object(append(root, canon.NewMember("anyOf", either))), nil
}

// localRef returns the first reference within the schema that is not to a definition.
func localRef(raw json.RawMessage) string {
	var parts []json.RawMessage
	if list, _, err := canon.Members(raw); err == nil {
		for _, m := range list {
			var ref string
			if m.Name == "$ref" && json.Unmarshal(m.Value, &ref) == nil && strings.HasPrefix(ref, "#") &&
				!strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/") {
				return ref
			}
			parts = append(parts, m.Value)
		}
	} else if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, part := range parts {
		if ref := localRef(part); ref != "" {
			return ref
		}
	}
	return ""
}
