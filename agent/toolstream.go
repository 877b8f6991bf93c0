package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// stream makes a call whose innermost is run, a tool that returns its result in pieces. It returns
// when the first piece is there, or when the call has ended: until then the tool can ask. The other
// pieces are passed on as the tool makes them, and the call ends after the last one.
func (t resultType[T]) stream(
	ctx context.Context, name, arguments string, run func(ctx context.Context, arguments string) (*schema.StreamReader[T], error),
) (*schema.StreamReader[T], error) {
	g := from(ctx)
	if g == nil {
		return nil, fmt.Errorf("call tool %q: %w", name, ErrNoRun)
	}
	s := &toolStream[T]{begun: make(chan struct{})}
	s.reader, s.writer = pipe[T](ctx)
	in := &innermost{tool: name, text: t.show}
	in.run = func(ctx context.Context, arguments string) (json.RawMessage, error) {
		source, err := run(ctx, arguments)
		if err == nil && source == nil {
			err = errors.New("the tool gave neither a stream nor an error")
		}
		if err != nil {
			return nil, err
		}
		defer source.Close()
		pieces, err := s.pump(source, func(piece T) { g.tell(ToolText{Origin: in.origin, Text: t.text(piece)}) })
		if err != nil {
			return nil, err
		}
		whole, err := t.concat(pieces)
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
		if s.passed {
			s.finish(r, err, t.words)
		}
	})
	select {
	case <-s.begun:
		return s.reader, nil
	case <-ended:
	}
	if s.passed { // both were ready
		return s.reader, nil
	}
	s.reader.Close()
	if err != nil {
		return nil, err
	}
	out, err := t.read(name, r)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]T{out}), nil
}

// A toolStream passes the pieces of one call from the tool to eino.
type toolStream[T any] struct {
	reader *schema.StreamReader[T]
	writer *writer[T]
	begun  chan struct{} // closed when the first piece is there
	passed bool          // the same, for the goroutine of the call, and for others after its end
	closed bool          // nobody reads any more
}

// pump reads all pieces, tells them and passes them on. A question in place of the first one is a
// question; later it is a failure, because what was said cannot be taken back.
func (s *toolStream[T]) pump(source *schema.StreamReader[T], tell func(piece T)) (pieces []T, err error) {
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

// finish passes on how a call ended whose first piece was passed on before: eino reads the end from
// the same stream.
func (s *toolStream[T]) finish(r reply, err error, words func(text string) T) {
	var none T
	switch {
	case err != nil:
		s.writer.Send(none, err)
	case r.result == nil:
		s.writer.Send(words(r.words), nil)
	}
}
