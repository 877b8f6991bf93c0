package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// A wait is a call in a session over HTTP that waits for a person.
type wait struct {
	name    string // random, and told to nobody
	visit   visit
	request Request // that of the call
	scope   string  // as whom it is served
	end     context.CancelFunc
}

// A visit is a session over HTTP, and whose it is. The SDK ends a session when its calls have
// ended, and a call that waits for a person would keep it, and the request that ends it, for as
// long as the question stands.
type visit struct{ session, user string }

func visitOf(session string, info *auth.TokenInfo) visit {
	v := visit{session: session}
	if info != nil {
		v.user = info.UserID
	}
	return v
}

// waitsIn returns what waits in a session.
func (b *Bridge) waitsIn(session string) []*wait {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.waits[session]))
}

// admits reports whether a request in a session in which calls wait for a person comes from whom
// they are served as. It can bring the answer, or break the call off, and is no call that the host
// is asked about; the SDK compares the users of token infos, where there are any.
//
// waits are those calls. The answer to a question that was not asked yet when its request came is
// not known to be anybody's: ids of questions can be guessed.
func (b *Bridge) admits(r *http.Request) (waits []string, ok bool) {
	for _, w := range b.waitsIn(r.Header.Get(sessionHeader)) {
		same := w.request
		same.TokenInfo, same.Header = auth.TokenInfoFromContext(r.Context()), r.Header
		grant, err := b.authorize(r.Context(), same)
		if err == nil && grant.Scope != w.scope {
			err = errors.New("it is served as somebody else")
		}
		if err != nil {
			b.opts.Logger.WarnContext(r.Context(), "mcp request refused in a session of somebody else", "tool", same.Tool, "cause", err)
			return nil, false
		}
		waits = append(waits, w.name)
	}
	return waits, true
}

// leave breaks off what waits in the session that a DELETE ends, also what begins to wait until it
// is answered. The user is compared since the SDK, which refuses others, does that only later.
func (b *Bridge) leave(r *http.Request) (done func()) {
	v := visitOf(r.Header.Get(sessionHeader), auth.TokenInfoFromContext(r.Context()))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaving[v]++
	for w := range b.waits[v.session] {
		if w.visit == v {
			w.end()
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.leaving[v]--; b.leaving[v] == 0 {
			delete(b.leaving, v)
		}
	}
}

// stays lets the call wait in its session, under that name: until cancel is called, where the
// session is ended.
func (c *call) stays(cancel context.CancelFunc) (name string, done func()) {
	id := c.req.Session.ID()
	if id == "" || c.req.Extra == nil {
		return "", func() {}
	}
	w := &wait{rand.Text(), visitOf(id, c.req.Extra.TokenInfo), c.request(), c.scope, cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits[id] == nil {
		c.waits[id] = map[*wait]bool{}
	}
	c.waits[id][w] = true
	if c.leaving[w.visit] > 0 {
		cancel()
	}
	return w.name, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.waits[id], w); len(c.waits[id]) == 0 {
			delete(c.waits, id)
		}
	}
}
