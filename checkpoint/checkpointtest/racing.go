package checkpointtest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

const writers = 32

var racing = []promise{
	{"one winner",
		"Of concurrent commits that expect the same revision exactly one is applied; the others are conflicts.",
		func(t *testing.T, f *fixture) {
			a := record(1)
			f.put(a)
			for round := range 12 {
				forms := make([]checkpoint.Record, writers)
				var wins atomic.Int32
				var winner atomic.Int64
				together(func(i int) {
					forms[i] = next(a)
					forms[i].Data = []byte{byte(round), byte(i)}
					b := puts(forms[i])
					b.Lazy = i%2 == 1
					if won(t, f.store.Commit(t.Context(), b)) {
						wins.Add(1)
						winner.Store(int64(i))
					}
				})
				if wins.Load() != 1 {
					t.Fatalf("round %d: %d winners, want one", round, wins.Load())
				}
				a = forms[winner.Load()]
				f.wantRecord(a)
			}
		}},
	{"one creator",
		"Of concurrent creates with one start hash exactly one is applied.",
		func(t *testing.T, f *fixture) {
			for round := range 8 {
				var wins atomic.Int32
				together(func(i int) {
					r := record(round*writers + i)
					r.Start = hashOf(round + 1)
					if won(t, f.store.Commit(t.Context(), puts(r))) {
						wins.Add(1)
					}
				})
				if wins.Load() != 1 {
					t.Fatalf("round %d: %d creators, want one", round, wins.Load())
				}
				if _, err := f.store.Find(t.Context(), hashOf(round+1)); err != nil {
					t.Fatalf("round %d: find: %v", round, err)
				}
			}
			if all := f.list(checkpoint.Query{}); len(all) != 8 {
				t.Fatalf("%d records, want 8", len(all))
			}
		}},
	{"all writers",
		"Concurrent commits on different records are all applied.",
		func(t *testing.T, f *fixture) {
			const rounds = 8
			together(func(i int) {
				r := fullRecord(i)
				r.Claim = checkpoint.Claim{}
				for round := range rounds {
					b := puts(r)
					b.Lazy = round%3 == 2
					if !won(t, f.store.Commit(t.Context(), b)) {
						t.Errorf("record %d, revision %d: conflict", i, r.Revision)
						return
					}
					if got, err := f.store.Load(t.Context(), r.ID); err != nil || diff(r, got) != "" {
						t.Errorf("load after commit: error %v, (-want +got):\n%s", err, diff(r, got))
						return
					}
					r.Revision++
				}
			})
			all := f.list(checkpoint.Query{})
			if len(all) != writers {
				t.Fatalf("%d records, want %d", len(all), writers)
			}
			for _, r := range all {
				if r.Revision != rounds {
					t.Errorf("record %s at revision %d, want %d", r.ID, r.Revision, rounds)
				}
			}
		}},
	{"counting together",
		"A record that many writers read, change and commit over conflicts has all their changes.",
		func(t *testing.T, f *fixture) {
			f.put(record(1))
			const each = 4
			together(func(i int) {
				for done := 0; done < each; {
					r, err := f.store.Load(t.Context(), idOf(1))
					if err != nil {
						t.Errorf("load: %v", err)
						return
					}
					r.Revision++
					b := puts(r)
					b.Lazy = i%2 == 0
					if won(t, f.store.Commit(t.Context(), b)) {
						done++
					} else if t.Failed() {
						return
					}
				}
			})
			r, err := f.store.Load(t.Context(), idOf(1))
			if err != nil || r.Revision != 1+writers*each {
				t.Fatalf("load: revision %d, error %v, want revision %d", r.Revision, err, 1+writers*each)
			}
		}},
	{"one ledger",
		"Of concurrent first joins exactly one proposal is the ledger.",
		func(t *testing.T, f *fixture) {
			var ledgers, owners sync.Map
			together(func(i int) {
				ledger, m, err := f.store.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{byte(i)}})
				if err != nil {
					t.Errorf("join: %v", err)
					return
				}
				ledgers.Store(ledger.ID, true)
				owners.Store(m.Owner(), true)
			})
			if n := size(&ledgers); n != 1 {
				t.Errorf("%d ledgers, want one", n)
			}
			if n := size(&owners); n != writers {
				t.Errorf("%d owners, want %d", n, writers)
			}
		}},
}

// together runs all writers at once and waits for them.
func together(run func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range writers {
		wg.Go(func() {
			<-gate
			run(i)
		})
	}
	close(gate)
	wg.Wait()
}

// won reports whether a commit was applied, and marks the test failed where the error is not a
// conflict.
func won(t *testing.T, err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*checkpoint.ConflictError](err); !ok {
		t.Errorf("commit: got %v, want a conflict", err)
	}
	return false
}

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}
