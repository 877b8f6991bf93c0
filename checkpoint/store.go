package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors of a store. Any error of [Store.Commit] other than a [*ConflictError],
// [ErrInvalidBatch], ErrLapsed and ErrReadOnly leaves the outcome of the commit unknown: the batch
// may have been applied, and the caller settles it by reading back.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("record not found")
	// ErrInvalidQuery: the limit is out of its range, or After is not from a page of this query.
	ErrInvalidQuery = errors.New("invalid query")
	// ErrUnavailable: the store serves nothing: it is closed, or a sync failed and it must be
	// opened again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrReadOnly: the store was opened to be read only.
	ErrReadOnly = errors.New("store is read-only")
	// ErrLapsed: the owner that a batch names has left, or is no longer counted alive. Nothing was
	// written.
	ErrLapsed = errors.New("owner of the claim is no longer a member of the store")
)

// A ConflictError says that nothing of a batch was written, because the record ID is not at the
// revision and epoch that the batch expects, or because its start hash belongs to another record.
type ConflictError struct{ ID ID }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("write interaction %s: changed since it was read", e.ID)
}

// A Claim is the right of one owner to run the handler of an interaction. Owner is empty while
// nobody has it; Epoch grows by one with every claim, and when a sweep abandons a dead one, so that
// a former owner can be told from the present one; Attempt counts the runs for the present round.
type Claim struct {
	Owner   string `json:"owner,omitempty"`
	Epoch   uint64 `json:"epoch,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
}

// A Record is one interaction as a store keeps it: plain fields, and Data, which no store reads.
type Record struct {
	ID       ID
	Revision uint64 // 1 when created, one more with every write
	Status   Status
	Scope    Hash
	Start    Hash      // under which it is found, unique in the store; zero: it is not
	Due      time.Time // when a sweep next looks at it, in whole milliseconds UTC; zero: never
	Claim    Claim
	Data     []byte
}

// A Put writes a record. The stored record must be at the revision before the new one, of the same
// scope, and its claim at Epoch; for revision 1 there must be none, and Epoch must be 0. Else the
// whole batch is a conflict.
type Put struct {
	Record Record
	Epoch  uint64
}

// A Delete removes a record that is at Revision.
type Delete struct {
	ID       ID
	Revision uint64
}

// A Row is kept under a record: a recorded step, or bytes of the host's that belong to it. It is
// removed with its record.
type Row struct {
	ID   ID     // of the record
	Name string // unique under the record, 1 to 255 bytes
	Data []byte
}

// A RowPut writes a row, or removes it where its Data is nil. When the puts of the batch are
// applied, the record must be there and its claim at Epoch. Else the whole batch is a conflict.
type RowPut struct {
	Row   Row
	Epoch uint64
}

// An AuditEntry is one entry of the store's audit trail: see [Entry] for what is in it.
type AuditEntry struct {
	Seq  uint64 // 1, 2, 3, …, in the order of the commits
	Data []byte
}

// A Usage is what a store holds, in all or of one scope.
type Usage struct {
	// Active counts the records whose status is [Status.Active].
	Active int
	// Bytes are the data of records and rows, with [Charge] for each of them. Audit entries are not
	// counted.
	Bytes int64
}

// Charge is what a record or a row is charged beside its data, in bytes: keys, indexes and what a
// page leaves empty.
const Charge = 512

// A Batch is what one commit applies, whole or not at all. A record appears in it at most once, and
// so does a row.
//
// A start hash that a put or a delete of the batch gives up can be taken by another put of it.
type Batch struct {
	// Time is the writer's time. The latest one ever committed is a floor under [Member.Now].
	Time time.Time
	// Owner, where it is set, is the member that writes. Where it is not alive any more the store
	// refuses the batch with ErrLapsed, in the same step that would apply it (R23).
	Owner   string
	Puts    []Put
	Deletes []Delete // each with all rows of its record
	Rows    []RowPut
	// Audit are entries that are appended to the audit trail, in this order.
	Audit [][]byte
	// TrimAudit removes the audit entries up to and with this one, at most [MaxTrim] of them; the
	// oldest go first.
	TrimAudit uint64
	// Meta, where it is not nil, replaces the ledger's. A store that nobody has joined has none,
	// and refuses it with ErrInvalidBatch.
	Meta []byte
	// Lazy lets Commit return when the batch is checked and visible to every reader of this store,
	// before it is durable. It is durable with the next commit that is not lazy, or soon when the
	// store is idle, or when it is closed.
	Lazy bool
}

// MaxTrim is the most audit entries that one batch removes.
const MaxTrim = 1000

// A Ledger identifies the records of one store. ID is public; Meta is the gate's own (the index
// key, sealed or not).
type Ledger struct {
	ID   [16]byte
	Meta []byte
}

// A Store holds records. It is safe for concurrent use, and what it returns is the caller's to
// keep.
//
// It has more than four methods, since each is something that every store does in its own way.
type Store interface {
	// Join makes the caller one owner of claims in this store, and returns the store's ledger: the
	// one that was proposed by whoever joined it first, durably. The caller leaves with
	// [Member.Leave].
	Join(ctx context.Context, proposed Ledger) (Ledger, Member, error)
	// Load returns the record, or ErrNotFound. It sees every commit that returned before it was
	// called.
	Load(ctx context.Context, id ID) (Record, error)
	// Find returns the record with that start hash, or ErrNotFound.
	Find(ctx context.Context, start Hash) (Record, error)
	// List returns a page of records: within one scope oldest first, or by Due. A query that is not
	// one is ErrInvalidQuery.
	List(ctx context.Context, q Query) (Page, error)
	// Rows returns the rows of a record whose names are not before from, in the order of their
	// bytes, at most limit (1 to 1000) of them and no more than a few MiB, but at least one where
	// there is one. A record without rows, or none at all, has none.
	Rows(ctx context.Context, id ID, from string, limit int) ([]Row, error)
	// Audit returns the audit entries that come after seq, in their order, at most limit (1 to
	// 1000). Whoever goes on behind the last one it saw misses none but those that were removed.
	Audit(ctx context.Context, after uint64, limit int) ([]AuditEntry, error)
	// Usage returns what is held of the scope; of the zero scope: in all. It counts every commit
	// that returned before it was called, and may count one that is under way.
	Usage(ctx context.Context, scope Hash) (Usage, error)
	// Commit applies the batch whole, durably, and then returns nil. A *ConflictError,
	// ErrInvalidBatch, ErrLapsed or ErrReadOnly means that nothing was written; after any other
	// error, ctx's included, the outcome is unknown.
	Commit(ctx context.Context, b *Batch) error
}

// A Member is one gate's membership in a store: the owner of its claims.
type Member interface {
	// Owner is this membership's name, unique over all time.
	Owner() string
	// Alive reports whether the claims of owner still hold. It is false for every owner that left,
	// and for owners of a process that the store knows to be gone.
	Alive(ctx context.Context, owner string) (bool, error)
	// Now returns the store's time: the clock of the store where it has one, else local; never
	// before the latest [Batch.Time] that was committed, so that a clock that steps back revives
	// nothing.
	Now(local time.Time) time.Time
	// Leave ends the membership: its claims are dead from then on. It writes no record. Leaving
	// twice is fine.
	Leave() error
}

// A Lapser is a Member that can end without Leave, since its store lost touch with it: one in
// another process.
type Lapser interface {
	// Lapsed returns a channel that is closed when the membership has ended so: its claims are
	// dead, or will be before anybody is told so, and it does not come back. Whoever wants to go on
	// joins anew.
	Lapsed() <-chan struct{}
}

// A Watcher is a Store that can tell when a record may have changed. It is a hint, never the truth:
// who is woken reads again, and who is not looks again after a while.
type Watcher interface {
	// Watch returns a channel that is closed after the next commit that touches the record. The
	// caller calls stop when it no longer waits.
	Watch(id ID) (changed <-chan struct{}, stop func())
}
