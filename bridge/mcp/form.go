package mcpbridge

import (
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// formSchema is a form's schema as the wire can carry it. The error is an *unfit.
func formSchema(w wire, form *interrupt.FormInterrupt) (json.RawMessage, error) {
	fields, err := form.Fields()
	if err != nil {
		return nil, &unfit{"the form cannot be read back"}
	}
	for _, f := range fields {
		switch {
		case elicit.AsksForSecret(f):
			// https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation: servers
			// MUST NOT use form mode elicitation to request sensitive information.
			return nil, &unfit{fmt.Sprintf("field %.64q asks for a secret, which MCP forbids in a form: use a URL", f.Name)}
		case w.era == era2025a && f.Kind == interrupt.FieldMulti:
			return nil, &unfit{fmt.Sprintf("field %.64q takes several choices, which protocol 2025-06-18 does not have", f.Name)}
		case !w.exact && !exactAsFloat(f):
			return nil, &unfit{fmt.Sprintf("field %.64q takes numbers that the SDK rounds: serve it through "+
				"Bridge.Transport or Bridge.HTTPHandler, or give integers bounds of at most 2^53-1", f.Name)}
		}
	}
	return schemaOf(w, fields), nil
}

// safeInteger is the largest of the integers that float64 holds each on its own.
var safeInteger = big.NewRat(1<<53-1, 1)

// exactAsFloat reports whether every answer that the field accepts is read exactly where numbers
// are float64. A literal beyond the bounds of an integer decodes to one that is beyond them, too.
func exactAsFloat(f interrupt.Field) bool {
	switch f.Kind {
	case interrupt.FieldNumber:
		return false
	case interrupt.FieldInteger:
		return safe(f.Minimum) && safe(f.Maximum)
	}
	return true
}

func safe(bound json.Number) bool {
	r, ok := new(big.Rat).SetString(string(bound))
	return ok && r.Abs(r).Cmp(safeInteger) <= 0
}

// schemaOf writes the fields in the words of the protocol.
func schemaOf(w wire, fields []interrupt.Field) json.RawMessage {
	return elicit.Schema(fields, w.era == era2025a)
}
