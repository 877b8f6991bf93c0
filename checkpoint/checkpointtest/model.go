package checkpointtest

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-go/parley/checkpoint"
)

// runModel compares a store with a dumb model under random operations.
func runModel(t *testing.T, h Harness) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{h: h, t: t, store: h.Open(t), state: newState()}
		actions := map[string]func(*rapid.T){
			"":       func(*rapid.T) {},
			"commit": m.commit,
			"again":  m.commit,
			"read":   m.read,
			"find":   m.find,
			"list":   m.list,
			"rows":   m.readRows,
			"audit":  m.readAudit,
			"usage":  m.usage,
		}
		if h.Reopen != nil {
			actions["reopen"] = m.reopen
		}
		rt.Repeat(actions)
		if h.Check != nil {
			h.Check(t, m.store)
		}
	})
}

// model is a store and what it must hold.
type model struct {
	h     Harness
	t     *testing.T
	store checkpoint.Store
	state
}

// commit draws a batch from few ids, starts and revisions, so that it conflicts often.
func (m *model) commit(rt *rapid.T) {
	b := &checkpoint.Batch{Time: epoch, Lazy: rapid.Bool().Draw(rt, "lazy")}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 1, 3, rapid.ID).Draw(rt, "ids") {
		old := m.records[idOf(n)]
		revision := old.Revision + uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1}).Draw(rt, "ahead"))
		if revision > 0 && rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
			b.Deletes = append(b.Deletes, checkpoint.Delete{ID: idOf(n), Revision: revision})
			continue
		}
		r := drawRecord(rt, n)
		r.Revision = revision + 1
		expected := old.Claim.Epoch
		if rapid.IntRange(0, 9).Draw(rt, "stale") == 0 {
			expected++
		}
		b.Puts = append(b.Puts, checkpoint.Put{Record: r, Epoch: expected})
	}
	m.drawRows(rt, b)
	m.drawAudit(rt, b)
	err := m.store.Commit(rt.Context(), b)
	_, conflict := errors.AsType[*checkpoint.ConflictError](err)
	if err != nil && !conflict {
		rt.Fatalf("commit: %v", err)
	}
	want := m.apply(b)
	if (err == nil) != (want != nil) {
		rt.Fatalf("commit: got %v, the model says conflict: %t", err, want == nil)
	}
	if want != nil {
		m.state = *want
	}
}

func drawRecord(rt *rapid.T, n int) checkpoint.Record {
	r := checkpoint.Record{
		ID: idOf(n),
		Status: rapid.SampledFrom([]checkpoint.Status{checkpoint.Started, checkpoint.Open, checkpoint.Running,
			checkpoint.Finished}).Draw(rt, "status"),
		Scope: scopeOf(n),
		Claim: checkpoint.Claim{Epoch: rapid.Uint64Range(0, 1).Draw(rt, "epoch")},
		Data:  rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "data"),
	}
	if rapid.IntRange(0, 19).Draw(rt, "moved") == 0 {
		r.Scope = hashOf(9)
	}
	if rapid.IntRange(0, 39).Draw(rt, "large") == 0 {
		r.Data = bytes.Repeat([]byte{byte(n)}, 70<<10)
	}
	if start := rapid.IntRange(0, 3).Draw(rt, "start"); start > 0 {
		r.Start = hashOf(start)
	}
	if due := rapid.IntRange(0, 3).Draw(rt, "due"); due > 0 {
		r.Due = epoch.Add(time.Duration(due) * time.Second)
	}
	return r
}

func (m *model) read(rt *rapid.T) {
	id := idOf(rapid.IntRange(1, 6).Draw(rt, "id"))
	want, there := m.records[id]
	got, err := m.store.Load(rt.Context(), id)
	if there != (err == nil) || !there && !errors.Is(err, checkpoint.ErrNotFound) {
		rt.Fatalf("load: error %v, the model has it: %t", err, there)
	}
	if d := diff(want, got); d != "" {
		rt.Fatalf("load (-want +got):\n%s", d)
	}
}

func (m *model) find(rt *rapid.T) {
	start := hashOf(rapid.IntRange(1, 3).Draw(rt, "start"))
	var want checkpoint.Record
	for _, r := range m.records {
		if r.Start == start {
			want = r
		}
	}
	got, err := m.store.Find(rt.Context(), start)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		rt.Fatalf("find: %v", err)
	}
	if d := diff(want, got); d != "" {
		rt.Fatalf("find (-want +got):\n%s", d)
	}
}

func (m *model) list(rt *rapid.T) {
	q := checkpoint.Query{Limit: rapid.IntRange(1, 7).Draw(rt, "limit")}
	q.Scope = hashOf(rapid.IntRange(0, 2).Draw(rt, "scope"))
	if due := rapid.IntRange(0, 4).Draw(rt, "due"); due > 0 {
		q.DueBefore = epoch.Add(time.Duration(due) * time.Second)
	}
	q.Statuses = rapid.SliceOfNDistinct(rapid.SampledFrom([]checkpoint.Status{checkpoint.Open, checkpoint.Running,
		checkpoint.Finished}), 0, 2, rapid.ID).Draw(rt, "statuses")
	var want []checkpoint.Record
	for _, r := range m.records {
		if (q.Scope.IsZero() || q.Scope == r.Scope) &&
			(len(q.Statuses) == 0 || slices.Contains(q.Statuses, r.Status)) &&
			(q.DueBefore.IsZero() || !r.Due.IsZero() && !r.Due.After(q.DueBefore)) {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b checkpoint.Record) int {
		if q.DueBefore.IsZero() {
			return cmp.Or(bytes.Compare(a.Scope[:], b.Scope[:]), a.ID.Compare(b.ID))
		}
		return cmp.Or(a.Due.Compare(b.Due), a.ID.Compare(b.ID))
	})
	if d := diff(want, listAll(rt, m.store, q)); d != "" {
		rt.Fatalf("list %+v (-want +got):\n%s", q, d)
	}
}

func (m *model) reopen(*rapid.T) { m.store = m.h.Reopen(m.t, m.store) }
