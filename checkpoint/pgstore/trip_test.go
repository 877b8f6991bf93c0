package pgstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// A transition takes one round trip, whatever is in its batch, also where nothing is kept in a
// session; one that is refused takes three more: a rollback, a look, and another rollback.
func TestRoundTrips(t *testing.T) {
	server := pgtest.Private(t)
	for _, pooler := range []bool{false, true} {
		p := server.Proxy(t)
		s := open(t, p.URL(), &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Pooler: pooler, Lapse: time.Hour})
		m := join(t, s)
		trips := counting(p)
		took := func(n int, change func(b *checkpoint.Batch)) int32 {
			r := record(n)
			b := puts(r)
			b.Owner, b.Audit, b.Time = m.Owner(), [][]byte{[]byte("entry")}, time.Now()
			b.Rows = []checkpoint.RowPut{{Row: checkpoint.Row{ID: r.ID, Name: "a", Data: []byte("b")}}}
			change(b)
			trips.Store(0)
			_ = s.Commit(t.Context(), b)
			return trips.Load()
		}
		for name, tc := range map[string]struct {
			change func(b *checkpoint.Batch)
			want   int32
		}{
			"durable": {func(*checkpoint.Batch) {}, 1},
			"lazy":    {func(b *checkpoint.Batch) { b.Lazy = true }, 1},
			"refused": {func(b *checkpoint.Batch) { b.Puts[0].Record.Revision = 7 }, 4},
		} {
			least := int32(100)
			for n := range 5 { // the driver prepares statements on a connection, or asks it whether it is there
				least = min(least, took(n+100*len(name), tc.change))
			}
			if least != tc.want {
				t.Errorf("pooler %t, %s: %d round trips, want %d", pooler, name, least, tc.want)
			}
		}
	}
}

// counting counts how often a request goes to the server after an answer.
func counting(p *pgtest.Proxy) *atomic.Int32 {
	var trips atomic.Int32
	last := pgtest.Answers
	p.Watch(func(d pgtest.Direction, _ []byte) pgtest.Fate {
		if d == pgtest.Requests && last == pgtest.Answers {
			trips.Add(1)
		}
		last = d
		return pgtest.Pass
	})
	return &trips
}
