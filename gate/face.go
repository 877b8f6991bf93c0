package gate

import (
	"context"
	"fmt"
	"slices"
)

// A Face is what callers of one kind talk to: an MCP server, an ACP connection, an agent. Tokens are good for the face they were
// given out by, so its name stays the same over restarts. Faces share the gate and have lifetimes of their own.
type Face struct {
	gate *Gate
	name string
	life *lifetime
}

// NewFace returns a face with that name, which must not be empty. Two faces of one name are one to a token.
func (g *Gate) NewFace(name string) (*Face, error) {
	if name == "" || len(name) > g.opts.Limits.Name {
		return nil, fmt.Errorf("make face %.40q: the name must not be empty or longer than %d bytes", name, g.opts.Limits.Name)
	}
	return &Face{gate: g, name: name, life: newLifetime()}, nil
}

// Name returns the face's name.
func (f *Face) Name() string { return f.name }

// Close shuts the face down and leaves the gate's others alone; else it is as [Gate.Close].
func (f *Face) Close(ctx context.Context) error {
	err := f.life.close(ctx)
	f.life.end()
	return err
}

// enter begins a request; done ends it. The context is cancelled when the gate or the face cannot wait for it any longer.
func (f *Face) enter(ctx context.Context) (_ context.Context, done func(), err error) {
	entered := make([]func(), 0, 2)
	leave := func() {
		for _, done := range slices.Backward(entered) {
			done()
		}
	}
	for _, life := range []*lifetime{f.gate.life, f.life} {
		next, done, ok := life.enter(ctx)
		if !ok {
			leave()
			return ctx, nil, closing()
		}
		ctx, entered = next, append(entered, done)
	}
	return ctx, leave, nil
}

func closing() *Error { return fail(ErrUnavailable, "shutting down") }

// closing reports whether the gate or the face has begun to close.
func (f *Face) closing() bool { return f.life.closing() || f.gate.life.closing() }
