package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A Gate enforces the rules over one store. It is safe for concurrent use; several gates, in one
// process or many, may stand on one store. Beside its own methods it has those of a [Face], for
// direct calls: they are those of a face named "".
type Gate struct {
	*face

	opts   *Options
	store  checkpoint.Store
	member *membership
	ledger [16]byte
	index  macs   // under the key of index hashes; the ledger's own, so that it outlives every ring
	vault  *vault // nil: the ledger is in plain text
	tools  map[string]*Tool
	ring   atomic.Pointer[ring]
	log    *slog.Logger

	intake   *intake
	claims   claims
	recent   recent
	capacity capacity
	owed     owed
	sweeps   sweeps
	trimmer  trimmer
}

// face embeds a Face without exporting the field.
type face = Face

// Open opens a gate on a store. The store stays the caller's: close it after the gate.
func Open(ctx context.Context, store checkpoint.Store, opts *Options) (*Gate, error) {
	if store == nil {
		return nil, errors.New("open gate: store must not be nil")
	}
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	r, err := newRing(o.Keys)
	if err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	for i, secret := range o.DataKeys {
		if slices.ContainsFunc(o.Keys, func(key []byte) bool { return bytes.Equal(key, secret) }) {
			return nil, fmt.Errorf("open gate: data key %d is also one of the keys: they are others", i+1)
		}
	}
	g := &Gate{opts: o, store: store, tools: map[string]*Tool{}, log: o.Logger, intake: newIntake()}
	g.ring.Store(&r)
	for _, tool := range o.Tools {
		if err := tool.Validate(); err != nil {
			return nil, fmt.Errorf("open gate: %w", err)
		}
		if g.tools[tool.name] != nil {
			return nil, fmt.Errorf("open gate: tool %q is there twice", tool.name)
		}
		g.tools[tool.name] = tool
	}
	if err := g.join(ctx); err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	g.face = &Face{gate: g, intake: newIntake()}
	return g, nil
}

func (g *Gate) join(ctx context.Context) error {
	vault, err := newVault(g.opts.DataKeys, g.opts.Random)
	if err != nil {
		return err
	}
	proposed, err := vault.newLedger(g.opts.Random)
	if err != nil {
		return err
	}
	ledger, member, err := g.store.Join(ctx, proposed)
	if err != nil {
		return err
	}
	index, err := vault.openMeta(ledger)
	if err != nil {
		return errors.Join(fmt.Errorf("read ledger %x: %w", ledger.ID, err), member.Leave())
	}
	g.member = newMembership(g.store, ledger, member)
	g.ledger, g.index, g.vault = ledger.ID, newMACs(index), vault.of(ledger.ID)
	if ahead := g.now().Sub(g.opts.Now()); ahead > time.Minute {
		g.log.WarnContext(ctx, "the store's time is ahead of this clock: deadlines are counted from it", "ahead", ahead)
	}
	return nil
}

// Tool returns the tool of that name; nil: there is none.
func (g *Gate) Tool(name string) *Tool { return g.tools[name] }

// SetKeys replaces the key ring. Tokens of a key that is no longer there are invalid at once.
func (g *Gate) SetKeys(keys [][]byte) error {
	r, err := newRing(keys)
	if err != nil {
		return fmt.Errorf("set keys: %w", err)
	}
	g.ring.Store(&r)
	return nil
}

// Close shuts the gate down with all its faces (S1, S2). From its beginning on there are no new
// requests and no new prompts; requests that are running are waited for. Where ctx ends first,
// their handlers' contexts are cancelled and their claims given up, so that another gate can take
// them over, and Close returns ctx's error. The store stays open.
func (g *Gate) Close(ctx context.Context) error {
	err := g.intake.close(ctx)
	if err == nil {
		g.sweep(ctx)
	}
	g.intake.end()
	return errors.Join(err, g.member.Leave())
}

// now is the store's time, in what is recorded of it.
func (g *Gate) now() time.Time {
	return g.member.Now(g.opts.Now()).UTC().Truncate(time.Millisecond)
}
