package pgstore

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A writing is the statements that apply batches. They fail where the batches expect something else
// than is stored.
type writing struct {
	store    *Store
	batches  []*checkpoint.Batch
	script   script
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
		w.script.add(w.store.sql.release, byteaArray(released))
	}
	w.puts()
	w.rows()
	w.single()
	w.notify()
}

// head raises the floor, and appends to the audit trail.
func (w *writing) head() {
	lazy := true
	var entries [][]byte
	var floor int64
	for _, b := range w.batches {
		lazy = lazy && b.Lazy
		entries = append(entries, b.Audit...)
		floor = max(floor, nanoseconds(b.Time))
	}
	if lazy {
		w.script.add(w.store.sql.lazy)
	}
	w.script.add(w.store.sql.head, byteaArray(entries), bigint(floor)).read = func(row [][]byte) {
		w.floor = int64(binary.BigEndian.Uint64(row[0]))
		if !lazy { // else one of them is off for this transaction
			w.settings = string(row[1])
		}
	}
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
		w.script.add(w.store.sql.live, byteaArray(owners), bigint(int64(len(owners))))
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
		w.script.add(w.store.sql.remove, byteaArray(ids), bigintArray(revisions), bigint(int64(len(ids))))
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
		w.script.add(w.store.sql.put, byteaArray(c.id), bigintArray(c.revision), smallintArray(c.status), byteaArray(c.scope),
			byteaArray(c.start), bigintArray(c.due), byteaArray(c.owner), bigintArray(c.epoch), bigintArray(c.attempt), byteaArray(c.data),
			bigintArray(c.expected), bigint(int64(n)))
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
		w.script.add(w.store.sql.row, byteaArray(ids), byteaArray(names), byteaArray(data), bigintArray(epochs), bigint(int64(len(ids))))
	}
}

// single adds what one batch of a group can ask for.
func (w *writing) single() {
	for _, b := range w.batches {
		if b.TrimAudit > 0 {
			w.script.add(w.store.sql.trim, bigint(int64(min(b.TrimAudit, math.MaxInt64))))
		}
		if b.Meta != nil {
			w.script.add(w.store.sql.meta, b.Meta)
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
		w.script.add(w.store.sql.notify, []byte(w.store.channel()), []byte(strings.Join(ids[:n], "")))
		ids = ids[n:]
	}
}
