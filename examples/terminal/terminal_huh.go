package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"charm.land/huh/v2"
)

// show lets huh show the fields as one form, and returns nil only where the person completed it.
// Whatever else ends it is no answer: not an interruption, not a signal, not the end of the input.
//
// Forms come one after the other, which needs the bubbletea of go.mod, newer than the one that huh
// asks for: with that one, the reader of a form that ended can go on for a while and swallow what
// is typed into the next.
func (t *terminal) show(ctx context.Context, fields ...huh.Field) error {
	form := huh.NewForm(huh.NewGroup(fields...)).WithInput(t.in).WithOutput(t.out)
	if t.accessible {
		return t.showLines(ctx, form.WithAccessible(true).WithTheme(huh.ThemeFunc(huh.ThemeBase)))
	}
	err := form.RunWithContext(ctx)
	switch {
	case ctx.Err() != nil, errors.Is(err, huh.ErrUserAborted):
		return errInterrupted
	case err != nil:
		return err
	case form.State != huh.StateCompleted: // after a SIGTERM huh ends without an error, with whatever stands in its fields
		return errInterrupted
	}
	return nil
}

// showLines is the accessible mode. It cannot be interrupted: where it has to be, it is left
// behind, with a process that is about to end.
func (t *terminal) showLines(ctx context.Context, form *huh.Form) error {
	in := &endless{r: t.in, ended: make(chan struct{})}
	shown := make(chan error, 1)
	go func() { shown <- form.WithInput(in).Run() }()
	select {
	case err := <-shown:
		return err
	case <-in.ended:
		_, err := fmt.Fprintln(t.out) // after the line that nobody ended
		return errors.Join(errInputEnded, err)
	case <-ctx.Done():
		_, err := fmt.Fprintln(t.out)
		return errors.Join(errInterrupted, err)
	}
}

// An endless reader never ends: at the end of r it says so on a channel, and blocks. The accessible
// mode of huh takes the end of its input for an empty line, and an empty line for what it holds for
// the default. Nobody is to be answered for like that.
type endless struct {
	r     io.Reader
	ended chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	close(e.ended) // once: who reads comes no further
	select {}
}
