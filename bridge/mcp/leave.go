package mcpbridge

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

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

// leave breaks off what waits in the session that a DELETE ends, also what begins to wait until it
// is answered. The user is compared since the SDK, which refuses others, does that only later.
func (b *Bridge) leave(r *http.Request) (done func()) {
	v := visitOf(r.Header.Get("Mcp-Session-Id"), auth.TokenInfoFromContext(r.Context()))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaving[v]++
	for cancel, waits := range b.waits {
		if waits == v {
			(*cancel)()
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

// stays has cancel called when the call's session is ended. done ends that.
func (c *call) stays(cancel context.CancelFunc) (done func()) {
	id := c.req.Session.ID()
	if id == "" || c.req.Extra == nil {
		return func() {}
	}
	v := visitOf(id, c.req.Extra.TokenInfo)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[&cancel] = v
	if c.leaving[v] > 0 {
		cancel()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, &cancel)
	}
}
