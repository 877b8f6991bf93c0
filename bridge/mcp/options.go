package mcpbridge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Options are the options of a bridge. Nil works, and the zero field is the documented default.
type Options struct {
	// Name is that of the bridge to the gate: a token is good for the name that it was given out
	// under, so it stays the same over restarts and replicas. Servers on one gate that should not
	// serve each other's rounds have different ones. Default: mcp.
	Name string
	// Authorize decides as whom a request is served. It is asked anew for every round (R24). An
	// error refuses the request; its text stays with the host. Behind [Bridge.HTTPHandler] it is
	// asked as well about what comes in a session in which a question waits, such as the answer:
	// that has to be of the scope that the call was served as. The context has no values: those of
	// a session are of the request that began it, and may be somebody else's. Default: what comes
	// without HTTP is served as one local principal, and nothing else is.
	Authorize func(ctx context.Context, r Request) (Grant, error)
	// OutOfBand says that questions of clients that cannot be asked are answered elsewhere: in an
	// inbox, by an operator. They are stored, and the same call again goes on once they are
	// answered: by its start ID or, without one, because it is the same scope, tool and arguments
	// (R31). A client that could be asked but for the form or the size of a question has that one
	// wait only with a start ID. Default: they end with confirmation_required.
	OutOfBand bool
	// MaxPrompts is how many prompts one interaction may show to clients of protocol 2026-07-28,
	// where it is less than the gate's (R29). Such a client bounds the rounds of a call on its own:
	// the SDK for Go gives up at the tenth call, so nine prompts are all that it can answer.
	// Default: 9.
	MaxPrompts int
	// MaxWire is how many bytes a message that carries a prompt may have (R34). Default: 1 MiB.
	MaxWire int
	// KeepAlive is how often a call whose client listens for progress tells it that it is still at
	// it, where nothing else is told. Clients give up after a time without a word, often a minute.
	// Default: 15 seconds; negative: never.
	KeepAlive time.Duration
	// Logger gets what the host should know and no caller may. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

const (
	defaultName       = "mcp"
	defaultMaxPrompts = 9
	defaultMaxWire    = 1 << 20
	defaultKeepAlive  = 15 * time.Second
)

func (o *Options) complete() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	c := *o
	if c.MaxPrompts < 0 {
		return c, fmt.Errorf("max prompts %d is negative", c.MaxPrompts)
	}
	if c.MaxWire < 0 {
		return c, fmt.Errorf("max wire %d is negative", c.MaxWire)
	}
	c.Name = cmp.Or(c.Name, defaultName)
	c.MaxPrompts = cmp.Or(c.MaxPrompts, defaultMaxPrompts)
	c.MaxWire = cmp.Or(c.MaxWire, defaultMaxWire)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	if c.Authorize == nil {
		c.Authorize = localOnly
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
