package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// NoExpiry as [Options.Lifetime] lets interactions wait for ever.
const NoExpiry time.Duration = -1

// Options are the options of a gate. But for Keys the zero field is the documented default.
type Options struct {
	// Tools are the tools of the gate.
	Tools []*Tool
	// Keys are the secrets of tokens, 32 bytes or more each: the first mints, all verify. Required;
	// see [KeyFile] and [NewKey]. Gates that serve the same conversations have the same.
	Keys [][]byte
	// DataKeys are the secrets under which what people and tools wrote is encrypted at rest, 32
	// bytes or more each, and others than Keys: the first seals, all open. A ledger is encrypted
	// whole or not at all; [Reencrypt] takes it under a new first key, or out of plain text.
	// Default: none, and everything is kept in plain text.
	DataKeys [][]byte
	// Authorize is the host's check of every call, made before anything is looked up. (Answers from
	// elsewhere have AuthorizeAnswer; lists and inspections are bound to the scope that the host
	// names.) Scope and session of the call are what it granted already; an error refuses the
	// request with ErrUnauthorized. Default: granted.
	Authorize func(ctx context.Context, call Call) error
	// AuthorizeAnswer decides on an answer that comes by another road than the caller's. Default:
	// only the interaction's own scope may answer.
	AuthorizeAnswer func(ctx context.Context, a Answerer) error
	// AuthorizeRemember decides on its own whether an answer of an always kind may be remembered,
	// by whichever road it came (R19). An error refuses the answer with ErrUnauthorized and leaves
	// the question open. Default: only answers from the interaction's own scope.
	AuthorizeRemember func(ctx context.Context, r Remembering) error
	// Lifetime is how long an interaction can wait for people, counted from its first prompt.
	// Default: ten minutes; NoExpiry: for ever.
	Lifetime time.Duration
	// Retention is how long an ended interaction is kept. Default: 24 hours; NoExpiry: for ever.
	Retention time.Duration
	// StartRetention is how long a start ID stays used after its interaction was removed. Default:
	// 30 days; NoExpiry: for ever.
	StartRetention time.Duration
	// MaxPrompts is how many prompts one interaction may show. Default: 10.
	MaxPrompts int
	// Limits bound what comes in.
	Limits Limits
	// Capacity limits what the ledger holds.
	Capacity Capacity
	// PromptLink returns the address at which a person can answer an interaction's prompt out of
	// band, for [Outcome.Link]; it is not called while a lock is held, and must not block.
	// Default: there is none.
	PromptLink func(id checkpoint.ID) string
	// ReadOnly makes a gate that shows and confirms what is recorded and runs nothing.
	ReadOnly bool
	// PollInterval is how often Wait looks again where nothing woke it. Default: one second.
	PollInterval time.Duration
	// AuditRetention is how long entries of the audit trail are kept. Default: 90 days; NoExpiry:
	// for ever.
	AuditRetention time.Duration
	// Observer is told of every transition, after its commit and in the goroutine of the request
	// that made it (for what a sweep found: of whichever request the sweep rides on), while no lock
	// is held: what it does slowly it does elsewhere. Calls come at once from several goroutines.
	// After a commit whose outcome is unknown an event can be missing, or be told by two gates: the
	// audit trail is the truth. Default: none.
	Observer Observer
	// Logger gets what the host should know and no caller may, without tokens, arguments and
	// answers. Default: slog.Default().
	Logger *slog.Logger
	// Now and Random are the clock and the randomness. Default: time.Now and crypto/rand.
	Now    func() time.Time
	Random io.Reader
}

// An Answerer wants to answer a prompt by another road than the caller's.
type Answerer struct {
	Scope       string
	SameScope   bool   // whether it is the interaction's
	By          string // who, in the host's words
	Face        string
	Interaction checkpoint.ID
	Tool        string
}

// Limits bound what comes in, in bytes where nothing else is said. What is over a bound in bytes is
// refused with ErrTooLarge; too much nesting, and too many questions or options, make arguments, an
// answer or a question invalid.
type Limits struct {
	Arguments int // default 1 MiB
	Answer    int // of all payloads of one request together; default 256 KiB
	Prompt    int // of what one prompt shows, arguments included; default 1 MiB
	State     int // private state of a prompt; default 256 KiB
	Result    int // a kept result, a larger one is not kept; a step's, a larger one is refused; default 64 KiB
	Questions int // in one prompt; default 16
	Options   int // of one question; default 256
	Blob      int // of a host's run: its state, its notes, before they are compressed; default and at most 16 MiB
	Name      int // scope, session, start ID, key; default 1 KiB, at most 8 KiB
	Depth     int // of JSON; default 64, at most 10000
}

func (l *Limits) setDefaults() {
	l.Arguments = cmp.Or(l.Arguments, 1<<20)
	l.Answer = cmp.Or(l.Answer, 256<<10)
	l.Prompt = cmp.Or(l.Prompt, 1<<20)
	l.State = cmp.Or(l.State, 256<<10)
	l.Result = cmp.Or(l.Result, 64<<10)
	l.Questions = cmp.Or(l.Questions, 16)
	l.Blob = cmp.Or(l.Blob, checkpoint.MaxData)
	l.Options = cmp.Or(l.Options, 256)
	l.Name = cmp.Or(l.Name, 1<<10)
	l.Depth = cmp.Or(l.Depth, 64)
}

// complete returns the options with every default filled in, or what is wrong with them.
func (o *Options) complete() (*Options, error) {
	if o == nil {
		o = &Options{}
	}
	c := *o
	c.Limits.setDefaults()
	c.Capacity.setDefaults()
	c.Lifetime = cmp.Or(c.Lifetime, 10*time.Minute)
	c.Retention = wholeMilliseconds(cmp.Or(c.Retention, 24*time.Hour))
	c.StartRetention = wholeMilliseconds(cmp.Or(c.StartRetention, 30*24*time.Hour))
	c.AuditRetention = wholeMilliseconds(cmp.Or(c.AuditRetention, 90*24*time.Hour))
	c.MaxPrompts = cmp.Or(c.MaxPrompts, 10)
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.AuthorizeAnswer == nil {
		c.AuthorizeAnswer = ownScopeOnly
	}
	if c.AuthorizeRemember == nil {
		c.AuthorizeRemember = ownScopeRemembers
	}
	return &c, c.validate()
}

// maxName is what an audit entry can hold several of, however they are written.
const maxName = 8 << 10

// maxDepth is what the JSON tokenizer takes.
const maxDepth = 10_000

// maxRounds is what fits into a token.
const maxRounds = 1<<16 - 1

func (o *Options) validate() error {
	switch {
	case o.Lifetime < 0 && o.Lifetime != NoExpiry:
		return fmt.Errorf("open gate: lifetime %v is negative", o.Lifetime)
	case o.Retention < 0 && o.Retention != NoExpiry:
		return fmt.Errorf("open gate: retention %v is negative", o.Retention)
	case o.StartRetention < 0 && o.StartRetention != NoExpiry:
		return fmt.Errorf("open gate: retention %v of start ids is negative", o.StartRetention)
	case o.AuditRetention < 0 && o.AuditRetention != NoExpiry:
		return fmt.Errorf("open gate: retention %v of the audit trail is negative", o.AuditRetention)
	case o.MaxPrompts < 1 || o.MaxPrompts > maxRounds:
		return fmt.Errorf("open gate: max prompts %d is not between 1 and %d", o.MaxPrompts, maxRounds)
	case o.PollInterval < 0:
		return fmt.Errorf("open gate: poll interval %v is negative", o.PollInterval)
	}
	if err := o.Capacity.validate(&o.Limits); err != nil {
		return err
	}
	for name, n := range map[string]int{"arguments": o.Limits.Arguments, "a prompt": o.Limits.Prompt, "state": o.Limits.State} {
		if n > checkpoint.MaxData/2 {
			return fmt.Errorf("open gate: limit of %s %d is over %d: no store takes such a record", name, n, checkpoint.MaxData/2)
		}
	}
	if o.Limits.Blob > checkpoint.MaxData {
		return fmt.Errorf("open gate: limit of a run's state %d is over %d: no store takes such a row", o.Limits.Blob, checkpoint.MaxData)
	}
	if o.Limits.Name > maxName {
		return fmt.Errorf("open gate: limit of names %d is over %d", o.Limits.Name, maxName)
	}
	if o.Limits.Depth > maxDepth {
		return fmt.Errorf("open gate: limit of depth %d is over %d", o.Limits.Depth, maxDepth)
	}
	for _, n := range []int{
		o.Limits.Arguments, o.Limits.Answer, o.Limits.Prompt, o.Limits.State, o.Limits.Result, o.Limits.Blob, o.Limits.Questions,
		o.Limits.Options, o.Limits.Name, o.Limits.Depth,
	} {
		if n < 0 {
			return fmt.Errorf("open gate: limit %d is negative", n)
		}
	}
	return nil
}

// wholeMilliseconds is a retention as a record can hold it; never 0, which would be none at all.
func wholeMilliseconds(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}

func ownScopeOnly(_ context.Context, a Answerer) error {
	if !a.SameScope {
		return fmt.Errorf("answer interaction %s: it is of another scope", a.Interaction)
	}
	return nil
}
