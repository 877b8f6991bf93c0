package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parley-go/parley/gate"
)

// A pipe is a person at the other end of one: prompts, errors and the result are lines of JSON, and
// so is every answer.
type pipe struct {
	in  *bufio.Scanner
	out *json.Encoder
}

func newPipe(in io.Reader, out io.Writer) *pipe {
	p := &pipe{in: bufio.NewScanner(in), out: json.NewEncoder(out)}
	p.in.Buffer(nil, 1<<20) // more than the gate takes, so that it is the gate who refuses
	p.out.SetEscapeHTML(false)
	return p
}

// answer writes the prompt in its JSON form, which has no token: that stays with this process, and
// the next one gets it anew by the start ID.
func (p *pipe) answer(ctx context.Context, prompt *gate.Prompt) (gate.Answers, error) {
	if err := p.write("prompt", prompt); err != nil {
		return nil, err
	}
	answers := gate.Answers{}
	for _, q := range prompt.Questions {
		var err error
		if answers[q.ID], err = p.line(ctx); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// line reads one line. On an interruption it leaves its goroutine behind, with a process that is
// about to end.
func (p *pipe) line(ctx context.Context) (json.RawMessage, error) {
	read := make(chan bool, 1)
	go func() { read <- p.in.Scan() }()
	select {
	case <-ctx.Done():
		return nil, errInterrupted
	case ok := <-read:
		switch {
		case ok:
			return bytes.Clone(p.in.Bytes()), nil
		case p.in.Err() != nil:
			return nil, fmt.Errorf("read answer: %w", p.in.Err())
		}
		return nil, errInputEnded
	}
}

func (p *pipe) refused(e *gate.Error) error { return p.fail(e) }

func (p *pipe) ended(result json.RawMessage, e *gate.Error) error {
	if e != nil {
		return p.fail(e)
	}
	return p.write("result", result)
}

func (p *pipe) fail(e *gate.Error) error {
	return p.write("error", struct {
		Code    gate.Code `json:"code"`
		Ended   gate.Code `json:"ended,omitempty"`
		Message string    `json:"message"`
	}{e.Code, e.Ended, e.Message})
}

func (p *pipe) write(name string, value any) error {
	return p.out.Encode(map[string]any{name: value})
}
