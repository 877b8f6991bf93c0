package pgstore

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
)

// A writing is the statements that apply batches. They fail where the batches expect something else
// than is stored.
type writing struct {
	store    *Store
	batches  []*checkpoint.Batch
	sql      pgx.Batch
	floor    int64  // after them
	settings string // where somebody waits for the disk
}

func (s *Store) newWriting(batches []*checkpoint.Batch) *writing {
	return &writing{store: s, batches: batches}
}

// queue adds the statements, but for the begin and the end. The first one takes the lock that puts
// the commits of all processes in one order, so that no two of them ever wait for each other.
// released are records whose start hash has to be free before the records are written.
func (w *writing) queue(released [][]byte) {
	w.head()
	w.owners()
	w.deletes()
	if len(released) > 0 {
		w.sql.Queue(w.store.sql.release, released)
	}
	w.puts()
	w.rows()
	w.single()
	w.notify()
}

// head raises the floor, and appends to the audit trail.
func (w *writing) head() {
	lazy := true
	entries := [][]byte{} // nil is NULL
	var floor int64
	for _, b := range w.batches {
		lazy = lazy && b.Lazy
		entries = append(entries, b.Audit...)
		floor = max(floor, nanoseconds(b.Time))
	}
	if lazy {
		w.sql.Queue(w.store.sql.lazy)
	}
	w.sql.Queue(w.store.sql.head, entries, floor).QueryRow(func(row pgx.Row) error {
		var settings string
		err := row.Scan(&w.floor, &settings)
		if !lazy { // else one of them is off for this transaction
			w.settings = settings
		}
		return err
	})
}

// nanoseconds is a batch's time as it is stored; 0: it has none that counts.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func (w *writing) owners() {
	seen := make(map[string]bool)
	var owners [][]byte
	for _, b := range w.batches {
		if b.Owner != "" && !seen[b.Owner] {
			seen[b.Owner] = true
			owners = append(owners, []byte(b.Owner))
		}
	}
	if len(owners) > 0 {
		w.sql.Queue(w.store.sql.live, owners, len(owners))
	}
}

func (w *writing) deletes() {
	var ids [][]byte
	var revisions []int64
	for _, b := range w.batches {
		for i := range b.Deletes {
			ids, revisions = append(ids, b.Deletes[i].ID[:]), append(revisions, int64(b.Deletes[i].Revision))
		}
	}
	if len(ids) > 0 {
		w.sql.Queue(w.store.sql.remove, ids, revisions, len(ids))
	}
}

func (w *writing) puts() {
	var c recordColumns
	for _, b := range w.batches {
		for i := range b.Puts {
			c.add(&b.Puts[i])
		}
	}
	if n := len(c.id); n > 0 {
		w.sql.Queue(w.store.sql.put, c.id, c.revision, c.status, c.scope, c.start, c.due, c.owner, c.epoch, c.attempt, c.data, c.expected, n)
	}
}

// recordColumns are records by column, as unnest takes them.
type recordColumns struct {
	id, scope, start, owner, data           [][]byte
	revision, due, epoch, attempt, expected []int64
	status                                  []int16
}

func (c *recordColumns) add(p *checkpoint.Put) {
	r := &p.Record
	var start []byte // NULL
	if !r.Start.IsZero() {
		start = r.Start[:]
	}
	var due int64
	if !r.Due.IsZero() {
		due = r.Due.UnixMilli()
	}
	c.id, c.revision, c.status = append(c.id, r.ID[:]), append(c.revision, int64(r.Revision)), append(c.status, int16(r.Status))
	c.scope, c.start, c.due = append(c.scope, r.Scope[:]), append(c.start, start), append(c.due, due)
	c.owner, c.epoch = append(c.owner, []byte(r.Claim.Owner)), append(c.epoch, int64(r.Claim.Epoch))
	c.attempt, c.data = append(c.attempt, int64(r.Claim.Attempt)), append(c.data, r.Data)
	c.expected = append(c.expected, int64(p.Epoch))
}

func (w *writing) rows() {
	var ids, names, data [][]byte
	var epochs []int64
	for _, b := range w.batches {
		for i := range b.Rows {
			p := &b.Rows[i]
			ids, names = append(ids, p.Row.ID[:]), append(names, []byte(p.Row.Name))
			data, epochs = append(data, p.Row.Data), append(epochs, int64(p.Epoch))
		}
	}
	if len(ids) > 0 {
		w.sql.Queue(w.store.sql.row, ids, names, data, epochs, len(ids))
	}
}

// single adds what one batch of a group can ask for.
func (w *writing) single() {
	for _, b := range w.batches {
		if b.TrimAudit > 0 {
			w.sql.Queue(w.store.sql.trim, int64(min(b.TrimAudit, math.MaxInt64)))
		}
		if b.Meta != nil {
			w.sql.Queue(w.store.sql.meta, b.Meta)
		}
	}
}

// idsInNotice is how many records fit into a notice, which has less than 8000 bytes.
const idsInNotice = 300

// notify tells the other processes which records changed.
func (w *writing) notify() {
	if w.store.opts.Quiet {
		return
	}
	var ids []string
	for _, b := range w.batches {
		for i := range b.Puts {
			ids = append(ids, hex.EncodeToString(b.Puts[i].Record.ID[:]))
		}
		for i := range b.Deletes {
			ids = append(ids, hex.EncodeToString(b.Deletes[i].ID[:]))
		}
	}
	for len(ids) > 0 {
		n := min(len(ids), idsInNotice)
		w.sql.Queue(w.store.sql.notify, w.store.channel(), strings.Join(ids[:n], ""))
		ids = ids[n:]
	}
}
