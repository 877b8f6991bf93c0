package checkpointtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/parley-go/parley/checkpoint"
)

// state is what a store must hold: maps, and the rules of a commit written as plainly as they can
// be.
type state struct {
	records map[checkpoint.ID]checkpoint.Record
	rows    map[rowName][]byte
	audit   []checkpoint.AuditEntry
	seq     uint64 // of the last audit entry there ever was
}

type rowName struct {
	id   checkpoint.ID
	name string
}

func newState() state {
	return state{records: make(map[checkpoint.ID]checkpoint.Record), rows: make(map[rowName][]byte)}
}

// scopeOf is the scope of the n-th record, whenever it is created.
func scopeOf(n int) checkpoint.Hash { return hashOf(n%2 + 1) }

// apply returns the state after the batch, or nil where it is a conflict.
func (s *state) apply(b *checkpoint.Batch) *state {
	after := &state{maps.Clone(s.records), maps.Clone(s.rows), slices.Clone(s.audit), s.seq}
	for _, d := range b.Deletes {
		if after.records[d.ID].Revision != d.Revision {
			return nil
		}
		delete(after.records, d.ID)
		maps.DeleteFunc(after.rows, func(row rowName, _ []byte) bool { return row.id == d.ID })
	}
	for _, p := range b.Puts {
		old, there := after.records[p.Record.ID]
		if old.Revision != p.Record.Revision-1 || old.Claim.Epoch != p.Epoch || there && old.Scope != p.Record.Scope {
			return nil
		}
		after.records[p.Record.ID] = p.Record
	}
	for _, p := range b.Rows {
		record, there := after.records[p.Row.ID]
		if !there || record.Claim.Epoch != p.Epoch {
			return nil
		}
		if p.Row.Data == nil {
			delete(after.rows, rowName{p.Row.ID, p.Row.Name})
		} else {
			after.rows[rowName{p.Row.ID, p.Row.Name}] = p.Row.Data
		}
	}
	starts := make(map[checkpoint.Hash]bool)
	for _, r := range after.records {
		if !r.Start.IsZero() && starts[r.Start] {
			return nil
		}
		starts[r.Start] = true
	}
	for _, data := range b.Audit {
		after.seq++
		after.audit = append(after.audit, checkpoint.AuditEntry{Seq: after.seq, Data: data})
	}
	after.audit = slices.DeleteFunc(after.audit, func(e checkpoint.AuditEntry) bool { return e.Seq <= b.TrimAudit })
	return after
}

// drawRows adds rows of records that the batch does not delete, most of them at the epoch that it
// leaves.
func (m *model) drawRows(rt *rapid.T, b *checkpoint.Batch) {
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 0, 2, rapid.ID).Draw(rt, "rows of") {
		p := checkpoint.RowPut{Epoch: m.records[idOf(n)].Claim.Epoch}
		for _, put := range b.Puts {
			if put.Record.ID == idOf(n) {
				p.Epoch = put.Record.Claim.Epoch
			}
		}
		if rapid.IntRange(0, 9).Draw(rt, "stale row") == 0 {
			p.Epoch++
		}
		if slices.ContainsFunc(b.Deletes, func(d checkpoint.Delete) bool { return d.ID == idOf(n) }) {
			continue
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(rt, "names") {
			p.Row = checkpoint.Row{ID: idOf(n), Name: name}
			switch rapid.IntRange(0, 9).Draw(rt, "row") {
			case 0, 1, 2:
			case 3:
				p.Row.Data = bytes.Repeat([]byte(name), 70<<10)
			default:
				p.Row.Data = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "row data")...)
			}
			b.Rows = append(b.Rows, p)
		}
	}
}

func (m *model) drawAudit(rt *rapid.T, b *checkpoint.Batch) {
	for i := range rapid.IntRange(0, 2).Draw(rt, "audit") {
		b.Audit = append(b.Audit, fmt.Appendf(nil, "entry %d after %d", i, m.seq))
	}
	if rapid.IntRange(0, 5).Draw(rt, "trim") == 0 {
		b.TrimAudit = rapid.Uint64Range(0, m.seq).Draw(rt, "trim to")
	}
}

func (m *model) readRows(rt *rapid.T) {
	id := idOf(rapid.IntRange(1, 6).Draw(rt, "id"))
	from := rapid.SampledFrom([]string{"", "a", "b", "bb", "d", "e"}).Draw(rt, "from")
	limit := rapid.IntRange(1, 5).Draw(rt, "limit")
	want := []checkpoint.Row{}
	for row, data := range m.rows {
		if row.id == id && row.name >= from {
			want = append(want, checkpoint.Row{ID: id, Name: row.name, Data: data})
		}
	}
	slices.SortFunc(want, func(a, b checkpoint.Row) int { return strings.Compare(a.Name, b.Name) })
	got, err := m.store.Rows(rt.Context(), id, from, limit)
	if err != nil {
		rt.Fatalf("rows: %v", err)
	}
	if d := diff(want[:min(limit, len(want))], append([]checkpoint.Row{}, got...)); d != "" {
		rt.Fatalf("rows from %q, limit %d (-want +got):\n%s", from, limit, d)
	}
}

func (m *model) readAudit(rt *rapid.T) {
	after := rapid.Uint64Range(0, m.seq+1).Draw(rt, "after")
	limit := rapid.IntRange(1, 5).Draw(rt, "limit")
	want := []checkpoint.AuditEntry{}
	for _, entry := range m.audit {
		if entry.Seq > after && len(want) < limit {
			want = append(want, entry)
		}
	}
	got, err := m.store.Audit(rt.Context(), after, limit)
	if err != nil {
		rt.Fatalf("audit: %v", err)
	}
	if d := diff(want, append([]checkpoint.AuditEntry{}, got...)); d != "" {
		rt.Fatalf("audit after %d, limit %d (-want +got):\n%s", after, limit, d)
	}
}

func (m *model) usage(rt *rapid.T) {
	scope := hashOf(rapid.IntRange(0, 3).Draw(rt, "scope"))
	var want checkpoint.Usage
	for _, r := range m.records {
		if !scope.IsZero() && r.Scope != scope {
			continue
		}
		if r.Status.Active() {
			want.Active++
		}
		want.Bytes += int64(len(r.Data)) + checkpoint.Charge
		for row, data := range m.rows {
			if row.id == r.ID {
				want.Bytes += int64(len(data)) + checkpoint.Charge
			}
		}
	}
	got, err := m.store.Usage(rt.Context(), scope)
	if err != nil || got != want {
		rt.Fatalf("usage of %x: %+v, error %v, want %+v", scope[:4], got, err, want)
	}
}
