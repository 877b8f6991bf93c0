package gate

import (
	"context"
	"errors"
	"fmt"
)

// A Face is what callers of one kind talk to: an MCP server, an ACP connection, an agent. Tokens
// are good for the face they were given out by, so its name stays the same over restarts. Faces
// share the gate and have lifetimes of their own.
type Face struct {
	gate *Gate
	name string
	// intake is the face's own; its gate has another one that every request passes as well.
	intake *intake
	opts   FaceOptions
}

// FaceOptions are the options of a face. The zero field is the documented default.
type FaceOptions struct {
	// MaxPrompts lowers the gate's: for clients that are known to give up earlier (R29). Default:
	// the gate's.
	MaxPrompts int
	// Fits is asked before a prompt is committed, and before one is shown again: whether the
	// face's complete wire form of it, with a token of [TokenLength] bytes, can be carried to its
	// client and means the same there (R34). An error ends the call with ErrConfirmationRequired,
	// or leaves the prompt to be answered out of band where the call has that facility. Default:
	// all fit.
	Fits func(p *Prompt) error
}

// NewFace returns a face with that name, which must not be empty. Two faces of one name are one to
// a token.
func (g *Gate) NewFace(name string, opts *FaceOptions) (*Face, error) {
	if name == "" {
		return nil, errors.New("make face: the name must not be empty")
	}
	if err := g.boundName("name", name); err != nil {
		return nil, fmt.Errorf("make face %.40q: %w", name, err)
	}
	f := &Face{gate: g, name: name, intake: newIntake()}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.MaxPrompts < 0 {
		return nil, fmt.Errorf("make face %.40q: max prompts %d is negative", name, f.opts.MaxPrompts)
	}
	return f, nil
}

// Close shuts the face down and leaves the gate's others alone: there are no new requests and no
// new prompts through it, and those that are running are waited for. Where ctx ends first, their
// contexts are cancelled and Close returns ctx's error; their claims stay the gate's.
func (f *Face) Close(ctx context.Context) error {
	err := f.intake.close(ctx)
	f.intake.end()
	return err
}

// enter begins a request; done ends it. The context is cancelled when the gate or the face cannot
// wait for it any longer.
func (f *Face) enter(ctx context.Context) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	leave, err := f.visit(ctx, cancel)
	if err != nil {
		cancel()
		return ctx, nil, err
	}
	return ctx, func() { leave(); cancel() }, nil
}

// visit takes a place in Close; cancel is called when the gate or the face cannot wait any longer.
func (f *Face) visit(ctx context.Context, cancel func()) (leave func(), err error) {
	v := &visit{cancel}
	if !f.gate.intake.enter(v) {
		return nil, closing()
	}
	if !f.intake.enter(v) {
		f.gate.intake.leave(v)
		return nil, closing()
	}
	leave = func() {
		f.intake.leave(v)
		f.gate.intake.leave(v)
	}
	if err := f.gate.member.renew(ctx); err != nil {
		leave()
		return nil, unavailable(err)
	}
	return leave, nil
}

func closing() *Error { return fail(ErrUnavailable, "shutting down") }

// closing reports whether the gate or the face has begun to close.
func (f *Face) closing() bool { return f.intake.closing() || f.gate.intake.closing() }
