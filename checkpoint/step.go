package checkpoint

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-go/parley/internal/canon"
)

// A Step is what is kept of one recorded step of a handler (R4), as the data of a row under its
// interaction. Without a result it was begun, and it is not known how it ended.
type Step struct {
	Key    string          `json:"key"`
	ID     string          `json:"id"`               // how external systems know the step
	Result json.RawMessage `json:"result,omitempty"` // nil: there is none yet, which is not null
	Time   time.Time       `json:"time"`             // of the write
}

type stepEnvelope struct {
	V int `json:"v"`
	*Step
}

// EncodeStep returns the row of the step under the interaction. The name is the caller's choice.
func EncodeStep(id ID, name string, s *Step) (Row, error) {
	data, err := canon.Marshal(stepEnvelope{formatVersion, s})
	if err != nil {
		return Row{}, fmt.Errorf("write step of interaction %s: %w", id, err)
	}
	return Row{ID: id, Name: name, Data: data}, nil
}

// DecodeStep reads the row. Its error is a [*DecodeError].
func DecodeStep(row Row) (*Step, error) {
	s := new(Step)
	if err := decodeData(row.ID, row.Data, &stepEnvelope{Step: s}); err != nil {
		return nil, err
	}
	if s.Key == "" || s.ID == "" || s.Time.IsZero() {
		return nil, &DecodeError{row.ID, "a step without key, id or time", nil}
	}
	return s, nil
}
