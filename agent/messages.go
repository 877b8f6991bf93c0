package agent

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/cloudwego/eino/schema"
)

// encodeMessages writes messages as eino does in a checkpoint, so that what eino cannot store is
// found before anybody is asked.
func encodeMessages(messages []*schema.Message) ([]byte, error) {
	if i := slices.Index(messages, nil); i >= 0 {
		return nil, fmt.Errorf("message %d is nil", i+1)
	}
	if !slices.ContainsFunc(messages, isOpen) {
		return encodePlain(messages)
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(messages); err != nil {
		for i, m := range messages {
			for key, value := range m.Extra {
				if gob.NewEncoder(io.Discard).Encode(map[string]any{key: value}) != nil {
					return nil, fmt.Errorf("%w: message %d, Extra %q is a %T", ErrExtra, i+1, key, value)
				}
			}
		}
		return nil, fmt.Errorf("%w: %w", ErrExtra, err)
	}
	return buf.Bytes(), nil
}

func decodeMessages(data []byte) (messages []*schema.Message, err error) {
	return messages, gob.NewDecoder(bytes.NewReader(data)).Decode(&messages)
}

// isOpen reports whether a message can hold a value whose type only the value knows.
func isOpen(m *schema.Message) bool {
	return m.Extra != nil || m.MultiContent != nil || m.UserInputMultiContent != nil || m.AssistantGenMultiContent != nil ||
		slices.ContainsFunc(m.ToolCalls, func(c schema.ToolCall) bool { return c.Extra != nil })
}

// A plainEncoder writes streams of gob for messages that are not open. A stream begins with the
// descriptions of all types, which take longer than a short conversation and are the same every
// time: they are made once.
type plainEncoder struct {
	types   []byte
	written bytes.Buffer
	encoder *gob.Encoder // has written types
}

var plainEncoders sync.Pool

func encodePlain(messages []*schema.Message) ([]byte, error) {
	p, ok := plainEncoders.Get().(*plainEncoder)
	if !ok {
		var err error
		if p, err = newPlainEncoder(); err != nil {
			return nil, err
		}
	}
	p.written.Reset()
	if err := p.encoder.Encode(messages); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExtra, err) // the encoder is of no use any more
	}
	defer plainEncoders.Put(p)
	return slices.Concat(p.types, p.written.Bytes()), nil
}

func newPlainEncoder() (*plainEncoder, error) {
	p := &plainEncoder{}
	p.encoder = gob.NewEncoder(&p.written)
	none := []*schema.Message{}
	if err := p.encoder.Encode(none); err != nil {
		return nil, err
	}
	first := bytes.Clone(p.written.Bytes())
	p.written.Reset()
	if err := p.encoder.Encode(none); err != nil {
		return nil, err
	}
	p.types = first[:len(first)-p.written.Len()]
	return p, nil
}
