package canon

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendCompact appends a JSON value without the white space between its tokens, which is all that
// changes: it is no canonical form. The error is that of what is not one JSON value.
func AppendCompact(dst, value []byte) ([]byte, error) {
	return jsontext.AppendFormat(dst, value, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
		jsontext.PreserveRawStrings(true))
}

// Marshal writes v as encoding/json does, but leaves <, > and & as they are: people read what is
// stored and shown, and digests cover it. A [json.RawMessage] in v keeps its bytes but for white
// space between its tokens. The result is JSON, and no canonical form.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil // Encode ends every value with one
}
