package checkpointtest

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

var membership = []promise{
	{"ledger",
		"Join returns the ledger that was proposed by whoever joined first.",
		func(t *testing.T, f *fixture) {
			mine := checkpoint.Ledger{ID: [16]byte{1, 2, 3}, Meta: []byte("mine")}
			proposed := checkpoint.Ledger{ID: mine.ID, Meta: []byte("mine")}
			first, _ := f.join(proposed)
			clear(proposed.Meta)
			clear(first.Meta)
			second, _ := f.join(checkpoint.Ledger{ID: [16]byte{9}, Meta: []byte("other")})
			if d := diff(mine, second); d != "" {
				t.Fatalf("second join (-want +got):\n%s", d)
			}
		}},
	{"ledger is durable",
		"The ledger is kept durably.",
		func(t *testing.T, f *fixture) {
			mine := checkpoint.Ledger{ID: [16]byte{1, 2, 3}, Meta: []byte("mine")}
			f.join(mine)
			f.reopen()
			got, _ := f.join(checkpoint.Ledger{ID: [16]byte{9}})
			if d := diff(mine, got); d != "" {
				t.Fatalf("join after reopen (-want +got):\n%s", d)
			}
		}},
	{"meta is replaced",
		"Meta replaces the ledger's, with the rest of its batch; a store that nobody joined refuses it.",
		func(t *testing.T, f *fixture) {
			for _, lazy := range []bool{false, true} {
				f.wantRefused(&checkpoint.Batch{Lazy: lazy, Meta: []byte("none"), Puts: puts(record(1)).Puts})
				f.wantAbsent(idOf(1))
			}
			f.join(checkpoint.Ledger{ID: [16]byte{1}, Meta: []byte("first")})
			wantMeta := func(meta string) {
				t.Helper()
				got, _ := f.join(checkpoint.Ledger{ID: [16]byte{9}})
				if d := diff(checkpoint.Ledger{ID: [16]byte{1}, Meta: []byte(meta)}, got); d != "" {
					t.Fatalf("join (-want +got):\n%s", d)
				}
			}
			f.commit(&checkpoint.Batch{Time: epoch})
			f.wantConflict(&checkpoint.Batch{Meta: []byte("conflict"), Puts: puts(next(record(1))).Puts}, idOf(1))
			wantMeta("first")
			second := []byte("second")
			f.commit(&checkpoint.Batch{Meta: second})
			clear(second)
			wantMeta("second")
			f.commit(&checkpoint.Batch{Lazy: true, Meta: []byte("third"), Puts: puts(record(1)).Puts})
			wantMeta("third")
			f.commit(&checkpoint.Batch{Meta: []byte{}})
			wantMeta("")
			f.commit(&checkpoint.Batch{Meta: []byte("fourth")})
			f.reopen()
			wantMeta("fourth")
		}},
	{"owners",
		"An owner is unique, its claims hold until it left, and leaving twice is fine.",
		func(t *testing.T, f *fixture) {
			_, one := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			_, two := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			if one.Owner() == two.Owner() || one.Owner() == "" {
				t.Fatalf("owners %q and %q, want two names", one.Owner(), two.Owner())
			}
			for _, m := range []checkpoint.Member{one, two} {
				f.wantAlive(m, one.Owner(), true)
				f.wantAlive(m, two.Owner(), true)
				f.wantAlive(m, "somebody", false)
				f.wantAlive(m, "", false)
			}
			for range 2 {
				if err := one.Leave(); err != nil {
					t.Fatalf("leave: %v", err)
				}
				f.wantAlive(one, one.Owner(), false)
				f.wantAlive(two, one.Owner(), false)
				f.wantAlive(two, two.Owner(), true)
			}
		}},
	{"lapsed owner",
		"A batch of an owner that has left is refused with ErrLapsed, and nothing of it is written.",
		func(t *testing.T, f *fixture) {
			_, m := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			kept := record(1)
			owned := func(b *checkpoint.Batch, owner string) *checkpoint.Batch {
				b.Owner = owner
				return b
			}
			f.commit(owned(puts(kept), m.Owner()))
			if err := m.Leave(); err != nil {
				t.Fatalf("leave: %v", err)
			}
			for _, owner := range []string{m.Owner(), "somebody"} {
				for _, lazy := range []bool{false, true} {
					for _, b := range []*checkpoint.Batch{puts(next(kept)), puts(record(2)), deletes(kept)} {
						b.Lazy = lazy
						if err := f.store.Commit(t.Context(), owned(b, owner)); !errors.Is(err, checkpoint.ErrLapsed) {
							t.Fatalf("commit of %q, lazy %v: got %v, want ErrLapsed", owner, lazy, err)
						}
						f.wantList(checkpoint.Query{}, kept)
					}
				}
			}
			f.commit(puts(next(kept))) // a batch without an owner is nobody's
		}},
	{"owners after reopen",
		"The owners of a process that is gone are dead, and their names do not come again.",
		func(t *testing.T, f *fixture) {
			_, old := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			f.reopen()
			_, young := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			if old.Owner() == young.Owner() {
				t.Fatalf("owner %q came again", old.Owner())
			}
			f.wantAlive(young, old.Owner(), false)
			f.wantAlive(young, young.Owner(), true)
		}},
	{"time",
		"Now is never before the latest Batch.Time that was committed.",
		func(t *testing.T, f *fixture) {
			_, m := f.join(checkpoint.Ledger{ID: [16]byte{1}})
			wantNow := func(floor time.Time) {
				t.Helper()
				for _, local := range []time.Time{{}, epoch, floor.Add(-time.Hour), floor, floor.Add(time.Hour)} {
					if now := m.Now(local); now.Before(floor) {
						t.Fatalf("now is %v for local %v, before %v", now, local, floor)
					}
				}
			}
			b := puts(record(1))
			b.Time = epoch.Add(time.Hour + 1)
			f.commit(b)
			wantNow(b.Time)
			back := puts(record(2))
			back.Time = epoch
			f.commit(back)
			wantNow(b.Time)
			lazy := lazily(puts(next(record(1))))
			lazy.Time = epoch.Add(2 * time.Hour)
			f.commit(lazy)
			wantNow(lazy.Time)
			f.reopen()
			_, m = f.join(checkpoint.Ledger{ID: [16]byte{1}})
			wantNow(lazy.Time)
		}},
}
