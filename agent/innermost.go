package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// An innermost is what the gate's half of a wrapped tool runs: eino's tool, in the way in which it
// was called. It travels in the context of one call.
type innermost struct {
	tool   string
	run    func(ctx context.Context, arguments string) (json.RawMessage, error)
	text   func(r reply) string // what a screen shows of the result
	origin Origin               // set before run is called
}

type innermostKey struct{}

// handle is the handler of a wrapped tool.
func handle(name string) func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		in, _ := ctx.Value(innermostKey{}).(*innermost)
		if in == nil || in.tool != name {
			return nil, fmt.Errorf("run tool %q: %w", name, ErrNoRun)
		}
		// What the tool itself calls is no call of this one.
		out, err := in.run(context.WithValue(ctx, innermostKey{}, nil), string(arguments))
		if isForeign(err) {
			return nil, fmt.Errorf("run tool %q: %w", name, ErrForeignInterrupt)
		}
		return out, err
	}
}

// isForeign reports whether an error holds an interrupt of eino's.
func isForeign(err error) bool {
	var signal *adk.InterruptSignal
	if err == nil {
		return false
	}
	_, rerun := compose.IsInterruptRerunError(err)
	_, graph := compose.ExtractInterruptInfo(err)
	return errors.As(err, &signal) || rerun || graph
}

// A form is a type of result of eino's tools: a string, or parts.
type form[T any] struct {
	words  func(text string) T
	text   func(piece T) string // the other way round
	concat func(pieces []T) (T, error)
}

var (
	asText = form[string]{
		words: func(text string) string { return text },
		text:  func(piece string) string { return piece },
		concat: func(pieces []string) (string, error) {
			whole := ""
			for _, piece := range pieces {
				whole += piece
			}
			return whole, nil
		},
	}
	asParts = form[*schema.ToolResult]{
		words: func(text string) *schema.ToolResult {
			return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}
		},
		text: func(piece *schema.ToolResult) string {
			if piece == nil { // which eino takes for a result without parts
				return ""
			}
			text := ""
			for _, part := range piece.Parts {
				if part.Type == schema.ToolPartTypeText {
					text += part.Text
				} else {
					text += "[" + string(part.Type) + "]"
				}
			}
			return text
		},
		concat: func(pieces []*schema.ToolResult) (*schema.ToolResult, error) {
			if len(pieces) == 0 {
				return &schema.ToolResult{}, nil
			}
			return schema.ConcatToolResults(pieces)
		},
	}
)

// read is the result of a call in that form.
func (f form[T]) read(name string, r reply) (T, error) {
	if r.result == nil {
		return f.words(r.words), nil
	}
	var out T
	if err := json.Unmarshal(r.result, &out); err != nil {
		return out, fmt.Errorf("read the result of tool %q: %w", name, err)
	}
	return out, nil
}

// show is the text of the result of a call in that form.
func (f form[T]) show(r reply) string {
	out, err := f.read("", r)
	if err != nil {
		return r.text()
	}
	return f.text(out)
}

// invokeAs makes a call whose innermost is a tool that returns its result whole.
func invokeAs[T any](
	ctx context.Context, name, arguments string, f form[T], run func(ctx context.Context, arguments string) (T, error),
) (T, error) {
	in := &innermost{tool: name, text: f.show, run: func(ctx context.Context, arguments string) (json.RawMessage, error) {
		out, err := run(ctx, arguments)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(out)
	}}
	r, err := call(context.WithValue(ctx, innermostKey{}, in), name, arguments)
	if err != nil {
		var none T
		return none, err
	}
	return f.read(name, r)
}

// streamAs makes a call whose innermost is a tool that returns its result in pieces. It returns
// when the first piece is there, or the call has ended: until then the tool can ask. The pieces
// come while the tool runs, and the call ends with the last one.
func streamAs[T any](
	ctx context.Context, name, arguments string, f form[T],
	run func(ctx context.Context, arguments string) (*schema.StreamReader[T], error),
) (*schema.StreamReader[T], error) {
	g := from(ctx)
	if g == nil {
		return nil, fmt.Errorf("call tool %q: %w", name, ErrNoRun)
	}
	s := &stream[T]{begun: make(chan struct{})}
	s.reader, s.writer = pipe[T](ctx)
	in := &innermost{tool: name, text: f.show}
	in.run = func(ctx context.Context, arguments string) (json.RawMessage, error) {
		source, err := run(ctx, arguments)
		if err == nil && source == nil {
			err = errors.New("the tool gave neither a stream nor an error")
		}
		if err != nil {
			return nil, err
		}
		defer source.Close()
		pieces, err := s.pump(source, func(piece T) { g.tell(ToolText{Origin: in.origin, Text: f.text(piece)}) })
		if err != nil {
			return nil, err
		}
		whole, err := f.concat(pieces)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(whole)
	}
	ended := make(chan struct{})
	var r reply
	var err error
	s.writer.feed(func() {
		defer close(ended)
		r, err = call(context.WithValue(ctx, innermostKey{}, in), name, arguments)
		if !s.passed {
			return
		}
		var none T
		switch { // too late for a result of another kind
		case err != nil:
			s.writer.Send(none, err)
		case r.result == nil:
			s.writer.Send(f.words(r.words), nil)
		}
	})
	select {
	case <-s.begun:
		return s.reader, nil
	case <-ended:
	}
	if s.passed {
		return s.reader, nil
	}
	s.reader.Close()
	if err != nil {
		return nil, err
	}
	out, err := f.read(name, r)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]T{out}), nil
}

// A stream passes the pieces of one call on.
type stream[T any] struct {
	reader *schema.StreamReader[T]
	writer *writer[T]
	begun  chan struct{} // closed when the first piece is there
	passed bool          // the same; of the goroutine of the call, and of others after its end
	closed bool          // nobody reads any more
}

// pump reads all pieces, tells them and passes them on. A question in place of the first one is a
// question; later it is a failure: what was said cannot be taken back.
func (s *stream[T]) pump(source *schema.StreamReader[T], tell func(piece T)) (pieces []T, err error) {
	for {
		piece, err := source.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return pieces, nil
		case err != nil && s.passed && (interrupt.Classify(err).Kind != interrupt.KindFailure || isForeign(err)):
			return nil, errors.New("the tool's stream asked a question after its first piece")
		case err != nil:
			return nil, err
		}
		pieces = append(pieces, piece)
		tell(piece)
		if !s.passed {
			s.passed = true
			close(s.begun)
		}
		if !s.closed {
			s.closed = s.writer.Send(piece, nil)
		}
	}
}
