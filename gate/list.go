package gate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A Summary is where an interaction stands. It holds no token and is the receiver's own copy.
type Summary struct {
	ID     checkpoint.ID
	Status checkpoint.Status
	Tool   string
	// Arguments are as a prompt shows them: in canonical form, the masked ones replaced.
	Arguments json.RawMessage
	Created   time.Time
	Updated   time.Time
	// Prompt is the latest round's, without its token; nil before the first.
	Prompt *Prompt
	// Attempts counts the runs of the handler for the latest answer.
	Attempts int
	// GoesOn is set where there is still something to do: it waits for an answer or its caller, or
	// an attempt came to no good end and the tool chose what it does then (R27).
	GoesOn bool
	// Code and Message are how it ended, where it did: no code for success.
	Code    Code
	Message string
	// Quarantined names the types of questions that cannot be read back here: they are not
	// registered, or the body is of a version that the type cannot read. Such a question is not
	// answered here (ErrRevisionChanged); it stays open, and expires as any other (R14).
	Quarantined []string
	// Problem is set where the record cannot be read; all fields but ID and Status are zero then.
	Problem error
}

// A ListQuery selects interactions.
type ListQuery struct {
	// Scope is whose interactions are listed. AllScopes lists everybody's: it is for an operator,
	// and the host decides who is one.
	Scope     string
	AllScopes bool
	Statuses  []checkpoint.Status // default: those that are not ended
	After     string              // the Next of the page before
	Limit     int                 // default 100
}

// A ListPage is one page of a listing. Next is empty on the last one.
type ListPage struct {
	Interactions []Summary
	Next         string
}

// List returns interactions page by page, oldest first within a scope (V2). Nothing runs. An
// interaction that cannot be read is in the list with its Problem.
func (f *Face) List(ctx context.Context, q ListQuery) (ListPage, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return ListPage{}, err
	}
	defer done()
	g := f.gate
	if err := g.boundName("scope", q.Scope); err != nil {
		return ListPage{}, err
	}
	query := checkpoint.Query{Statuses: q.Statuses, After: q.After, Limit: q.Limit}
	switch {
	case q.AllScopes && q.Scope != "":
		return ListPage{}, fail(ErrInvalidArguments, "list: a scope and all scopes are asked for at once")
	case q.Scope != "":
		query.Scope = g.hash("scope", q.Scope)
	case !q.AllScopes:
		return ListPage{}, fail(ErrUnauthorized, "the host names no scope")
	}
	if notInteractions(q.Statuses) {
		return ListPage{}, fail(ErrInvalidArguments, "list: decisions and runs are no interactions, and have lists of their own")
	}
	if len(query.Statuses) == 0 {
		query.Statuses = []checkpoint.Status{checkpoint.Started, checkpoint.Open, checkpoint.Answered, checkpoint.Running}
	}
	g.sweep(ctx)
	page, err := g.store.List(ctx, query)
	if err != nil {
		return ListPage{}, notListed(err)
	}
	list := ListPage{Next: page.Next}
	for _, record := range page.Records {
		list.Interactions = append(list.Interactions, g.summary(record))
	}
	return list, nil
}

// notListed is why a store returned no page.
func notListed(err error) *Error {
	if errors.Is(err, checkpoint.ErrInvalidQuery) {
		return fail(ErrInvalidArguments, "the limit is negative, or the position is not from a page of this list").because(err)
	}
	return unavailable(err)
}

// Inspect returns where the interaction of a start ID stands (V1), or ErrStartUnknown. Nothing runs
// and nothing is written.
func (f *Face) Inspect(ctx context.Context, scope, startID string) (Summary, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return Summary{}, err
	}
	defer done()
	g := f.gate
	if _, err := g.scopeOf(scope); err != nil {
		return Summary{}, err
	}
	if err := g.boundName("start id", startID); err != nil {
		return Summary{}, err
	}
	if startID == "" {
		return Summary{}, fail(ErrStartUnknown, "the start id is empty")
	}
	record, err := g.store.Find(ctx, g.hash("start", scope, startID))
	if errors.Is(err, checkpoint.ErrNotFound) {
		return Summary{}, startUnknown(startID)
	}
	if err != nil {
		return Summary{}, unavailable(err)
	}
	return g.summary(record), nil
}

// InspectID is [Face.Inspect] by interaction id. One of another scope is not told from one that
// does not exist.
func (f *Face) InspectID(ctx context.Context, scope string, id checkpoint.ID) (Summary, error) {
	ctx, done, err := f.enter(ctx)
	if err != nil {
		return Summary{}, err
	}
	defer done()
	g := f.gate
	record, err := g.store.Load(ctx, id)
	if err == nil && (record.Scope != g.hash("scope", scope) || !isInteraction(record)) {
		err = checkpoint.ErrNotFound
	}
	if errors.Is(err, checkpoint.ErrNotFound) {
		return Summary{}, fail(ErrInvalidContinuation, "there is no such interaction")
	}
	if err != nil {
		return Summary{}, unavailable(err)
	}
	return g.summary(record), nil
}

// summary shows an overdue interaction as the expired one that it is, whether or not a sweep has
// marked it.
func (g *Gate) summary(record checkpoint.Record) Summary {
	in, err := g.decode(record)
	if err != nil {
		return Summary{ID: record.ID, Status: record.Status, Problem: err}
	}
	s := Summary{
		ID: in.ID, Status: in.Status, Tool: in.Tool, Arguments: masking(in.Arguments, g.tools[in.Tool]),
		Created: in.Created, Updated: in.Updated, Attempts: int(in.Claim.Attempt),
	}
	if len(in.Rounds) > 0 {
		s.Prompt = g.prompt(in, g.tools[in.Tool])
	}
	s.Quarantined = quarantined(in)
	if overdue(in, 0, g.now()) {
		s.Status = checkpoint.Expired
	}
	s.GoesOn = !s.Status.Ended() || in.Status != checkpoint.Finished && s.Status != checkpoint.Expired && g.mayRunAgain(in)
	if in.Ending != nil && s.Status.Ended() { // else it is that of an earlier attempt
		s.Code, s.Message = Code(in.Ending.Code), in.Ending.Message
	}
	return s
}

// mayRunAgain reports whether the tool does something for an answer whose attempt came to no good
// end.
func (g *Gate) mayRunAgain(in *checkpoint.Interaction) bool {
	tool := g.tools[in.Tool]
	switch {
	case in.Status == checkpoint.Tombstone, tool == nil || !tool.accepts(in.ToolRevision):
		return false
	case tool.opts.Replay == Repeatable && in.Ending != nil:
		// It would ask again, and meet the same limit again.
		return Code(in.Ending.Code) != ErrExpired && Code(in.Ending.Code) != ErrInteractionLimit
	}
	return tool.opts.Replay != NeverAgain
}
