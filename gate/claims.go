package gate

import (
	"context"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// The claims of this process (check 7). They turn what would be a conflict in the store into an earlier busy, and cover the
// authorization of an execution; nothing depends on them for safety between gates.
type claims struct {
	mu     sync.Mutex
	held   map[checkpoint.ID]bool
	unused map[checkpoint.ID]unusedClaim
}

// An unusedClaim is one whose commit had an unknown outcome, so that its handler was not run.
type unusedClaim struct {
	epoch uint64
	then  then
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
	}), true
}

func (c *claims) holds(id checkpoint.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id]
}

// notStarted remembers that the handler of a claim was not run, since nobody could tell whether the claim was committed.
func (c *claims) notStarted(id checkpoint.ID, epoch uint64, then then) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused == nil {
		c.unused = map[checkpoint.ID]unusedClaim{}
	}
	c.unused[id] = unusedClaim{epoch, then}
}

// unstarted returns what the claim was made for, if this process did not use it; else refuse.
func (c *claims) unstarted(id checkpoint.ID, epoch uint64) then {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unused, ok := c.unused[id]; ok && unused.epoch == epoch {
		return unused.then
	}
	return refuse
}

// started forgets an unused claim: it is used now, or superseded.
func (c *claims) started(id checkpoint.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unused, id)
}

// claimHeld reports whether the record's claim is held (docs/transitions.md, "Words"), and what an unused one of ours was made for.
// inProcess says that the caller has the claim within the process itself.
func (g *Gate) claimHeld(ctx context.Context, in *checkpoint.Interaction, inProcess bool) (held bool, unused then, err error) {
	switch in.Claim.Owner {
	case "":
		return false, refuse, nil
	case g.member.Owner():
		return !inProcess && g.claims.holds(in.ID), g.claims.unstarted(in.ID, in.Claim.Epoch), nil
	}
	held, err = g.member.Alive(ctx, in.Claim.Owner)
	return held, refuse, err
}
