package mcpbridge

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A reporter tells a client how far its call is, and that it is still at it. MCP wants every number
// to be larger than the one before, over the whole call: a handler that runs again for the next
// round begins at zero, and a sign of life has no number at all.
type reporter struct {
	session  *mcp.ServerSession
	token    any
	interval time.Duration
	updates  chan update

	last  float64 // sent; the reporter's goroutine alone has it
	total float64
}

type update struct {
	interrupt.Update
	done chan error
}

// reportProgress begins to report where the client gave the call a token for it. stop ends that,
// and returns when nothing is sent any more.
func (b *Bridge) reportProgress(ctx context.Context, req *mcp.CallToolRequest) (_ *gate.Progress, stop func()) {
	token := req.Params.GetProgressToken()
	if !listens(token) {
		return nil, func() {}
	}
	r := &reporter{session: req.Session, token: token, interval: b.opts.KeepAlive, updates: make(chan update)}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	progress := &gate.Progress{Sink: r.take}
	return progress, func() {
		cancel()
		<-ended
		for _, err := range progress.Errors() {
			b.opts.Logger.DebugContext(ctx, "progress was not told", "tool", req.Params.Name, "err", err)
		}
	}
}

// maxProgressToken bounds what every report carries, in bytes.
const maxProgressToken = 256

// listens reports whether a client that gave that token is told of progress: a string or a number,
// as the protocol has it, of a sane size.
func listens(token any) bool {
	switch token := token.(type) {
	case string:
		return len(token) <= maxProgressToken
	case float64:
		return true
	}
	return false
}

// take is the sink of the handler's progress: it returns when the update was sent.
func (r *reporter) take(ctx context.Context, u interrupt.Update) error {
	sent := update{u, make(chan error, 1)}
	select {
	case r.updates <- sent:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-sent.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run sends one after the other, so that they arrive in the order of their numbers.
func (r *reporter) run(ctx context.Context) {
	var tick <-chan time.Time
	if r.interval > 0 {
		ticker := time.NewTicker(r.interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case u := <-r.updates:
			if u.Total != nil {
				r.total = *u.Total
			}
			u.done <- r.send(ctx, max(u.Completed, above(r.last)), u.Message)
		case <-tick:
			r.send(ctx, above(r.last), "") //nolint:errcheck // a sign of life: whoever is gone is gone
		case <-ctx.Done():
			return
		}
	}
}

func (r *reporter) send(ctx context.Context, completed float64, message string) error {
	r.last = completed
	params := &mcp.ProgressNotificationParams{ProgressToken: r.token, Progress: completed, Message: message}
	if r.total >= completed {
		params.Total = r.total
	}
	return r.session.NotifyProgress(ctx, params)
}

// above is a little more than x: so little that what a handler reports next is more than that, and
// so much that no reader of numbers takes both for the same.
func above(x float64) float64 { return x + max(1e-6, x*1e-9) }
