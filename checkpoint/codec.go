package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// formatVersion is the version of the JSON value in [Record.Data]. A later release reads all
// earlier ones.
const formatVersion = 1

var ownVersion = fmt.Appendf(nil, `{"v":%d,`, formatVersion)

// A DecodeError says why a record cannot be read. The record is left as it is.
type DecodeError struct {
	ID     ID
	Reason string
	Err    error // may be nil
}

func (e *DecodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("read record %s: %s", e.ID, e.Reason)
	}
	return fmt.Sprintf("read record %s: %s: %v", e.ID, e.Reason, e.Err)
}

// Unwrap returns the error of the decoder, if there was one.
func (e *DecodeError) Unwrap() error { return e.Err }

type envelope struct {
	V int `json:"v"`
	*Interaction
}

// Encode returns the record of the interaction: its plain fields and, in Data, all of it.
func Encode(in *Interaction) (Record, error) {
	data, err := write(in.appendTo, false)
	if err != nil {
		return Record{}, fmt.Errorf("write interaction %s: %w", in.ID, err)
	}
	return Record{
		ID: in.ID, Revision: in.Revision, Status: in.Status, Scope: in.Scope, Start: in.Start,
		Due: in.Due, Claim: in.Claim, Data: data,
	}, nil
}

// Decode reads the record. Its error is a [*DecodeError]: Data is of an unknown version, malformed,
// contradicts itself, or says other than the plain fields beside it (R37).
func Decode(r Record) (*Interaction, error) {
	in := new(Interaction)
	if err := decodeData(r.ID, r.Data, &envelope{Interaction: in}); err != nil {
		return nil, err
	}
	if err := agree(r, in); err != nil {
		return nil, err
	}
	if reason := in.contradiction(); reason != "" {
		return nil, &DecodeError{r.ID, reason, nil}
	}
	return in, nil
}

// decodeData reads one JSON value of the present format version.
func decodeData(id ID, data []byte, into any) error {
	if err := checkVersion(id, data); err != nil {
		return err
	}
	if err := unmarshal(data, into); err != nil {
		return &DecodeError{id, "malformed data", err}
	}
	return nil
}

// unmarshal reads one JSON value with nothing behind it, and no other members than into has. What
// handlers wrote stands in it as they did: it need not be UTF-8 and may have a name twice.
func unmarshal(data []byte, into any) error {
	return jsonv2.Unmarshal(data, into,
		jsonv2.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// checkVersion reads the version before anything else: what else a newer version holds is not
// known.
func checkVersion(id ID, data []byte) error {
	if bytes.HasPrefix(data, ownVersion) { // what Encode writes comes first
		return nil
	}
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return &DecodeError{id, "malformed data", err}
	}
	if version.V != formatVersion {
		return &DecodeError{id, fmt.Sprintf("format version %d, want %d", version.V, formatVersion), nil}
	}
	return nil
}

func agree(r Record, in *Interaction) error {
	field := ""
	switch {
	case in.ID != r.ID:
		field = "id"
	case in.Revision != r.Revision:
		field = "revision"
	case in.Status != r.Status || !r.Status.Valid():
		field = "status"
	case in.Scope != r.Scope:
		field = "scope"
	case in.Start != r.Start:
		field = "start"
	case !in.Due.Equal(r.Due):
		field = "due"
	case in.Claim != r.Claim:
		field = "claim"
	default:
		return nil
	}
	return &DecodeError{r.ID, fmt.Sprintf("plain field %q says other than the data", field), nil}
}
