package gate

import (
	"context"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// The claims of this process (check 7). They turn what would be a conflict in the store into an
// earlier busy, and cover the authorization of an execution; nothing depends on them for safety
// between gates.
type claims struct {
	mu    sync.Mutex
	held  map[checkpoint.ID]bool
	views map[checkpoint.ID]map[*view]bool
}

// A view is what somebody is about to read of an interaction and may claim then. It is stale where
// another claim within the process ended since.
type view struct {
	claims *claims
	id     checkpoint.ID
	stale  bool
}

// look begins a view, which its owner ends.
func (c *claims) look(id checkpoint.ID) *view {
	v := &view{claims: c, id: id}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views == nil {
		c.views = map[checkpoint.ID]map[*view]bool{}
	}
	if c.views[id] == nil {
		c.views[id] = map[*view]bool{}
	}
	c.views[id][v] = true
	return v
}

// fresh reports whether what was read is what the last claim within the process left. No view is
// never fresh.
func (v *view) fresh() bool {
	if v == nil {
		return false
	}
	v.claims.mu.Lock()
	defer v.claims.mu.Unlock()
	return !v.stale
}

func (v *view) end() {
	if v == nil {
		return
	}
	v.claims.mu.Lock()
	defer v.claims.mu.Unlock()
	if delete(v.claims.views[v.id], v); len(v.claims.views[v.id]) == 0 {
		delete(v.claims.views, v.id)
	}
}

// hold claims the interaction within the process. Where somebody has it, ok is false.
func (c *claims) hold(id checkpoint.ID) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[id] {
		return nil, false
	}
	if c.held == nil {
		c.held = map[checkpoint.ID]bool{}
	}
	c.held[id] = true
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, id)
		for v := range c.views[id] {
			v.stale = true
		}
	}), true
}

func (c *claims) holds(id checkpoint.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id]
}

// claimHeld reports whether the record's claim is held (docs/transitions.md, "Words"). That it is
// not is sure only for who then holds the claim within the process and finds the record unchanged.
func (g *Gate) claimHeld(ctx context.Context, id checkpoint.ID, claim checkpoint.Claim) (bool, error) {
	switch claim.Owner {
	case "":
		return false, nil
	case g.member.Owner():
		return g.claims.holds(id), nil
	}
	return g.member.Alive(ctx, claim.Owner)
}
