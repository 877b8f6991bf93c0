package pgstore_test

import (
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// listening waits until the store's connection listens: then everybody is woken once.
func listening(t *testing.T, s *pgstore.Store, writer checkpoint.Store) {
	t.Helper()
	probe := record(1 << 20)
	changed, stop := s.Watch(probe.ID)
	defer stop()
	commit(t, writer, puts(probe))
	eventually(t, "the store listens", func() bool {
		select {
		case <-changed:
			return true
		default:
			probe = next(probe)
			commit(t, writer, puts(probe))
			return false
		}
	})
}

// A commit of one process wakes who waits in another, however many records it touches, and nobody
// who waits for another record.
func TestWatchBetweenProcesses(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url)}
	one, two := open(t, url, o), open(t, url, o)
	listening(t, two, one)
	var many []checkpoint.Record
	for n := range 700 {
		many = append(many, record(n))
	}
	first, stopFirst := two.Watch(idOf(0))
	last, stopLast := two.Watch(idOf(699))
	other, stopOther := two.Watch(idOf(700))
	defer stopOther()
	began := time.Now()
	commit(t, one, puts(many...))
	wait(t, "the first is woken", first)
	wait(t, "the last is woken", last)
	t.Logf("woken after %v", time.Since(began))
	stopFirst()
	stopLast()
	select {
	case <-other:
		t.Error("woken by the change of other records")
	default:
	}
	gone, stopGone := two.Watch(idOf(0))
	defer stopGone()
	commit(t, one, &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: idOf(0), Revision: 1}}})
	wait(t, "woken by the delete", gone)
}

// A connection that listens and is lost is opened anew, and who waited meanwhile is woken.
func TestListensAgain(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url), Logger: quiet}
	one, two := open(t, url, o), open(t, url, o)
	listening(t, two, one)
	waiting, stop := two.Watch(idOf(1))
	defer stop()
	execute(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'parley listens'")
	wait(t, "woken by the new connection", waiting)
	changed, stopAgain := two.Watch(idOf(1))
	defer stopAgain()
	commit(t, one, puts(record(1)))
	wait(t, "woken by a commit after that", changed)
}

// Without LISTEN and NOTIFY, and through a pooler in transaction mode, all else is as it is.
func TestQuiet(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	for _, o := range []*pgstore.Options{{Quiet: true}, {Pooler: true}, {Pooler: true, ListenURL: url}} {
		o.Schema = schema
		s := open(t, url, o)
		m := join(t, s)
		r := record(1)
		b := puts(r)
		b.Owner, b.Audit, b.Lazy = m.Owner(), [][]byte{[]byte("a")}, o.Quiet
		commit(t, s, b)
		if got, err := s.Load(t.Context(), r.ID); err != nil || got.Revision != 1 {
			t.Errorf("load: %+v, %v", got, err)
		}
		if page, err := s.List(t.Context(), checkpoint.Query{Scope: r.Scope}); err != nil || len(page.Records) != 1 {
			t.Errorf("list: %+v, %v", page, err)
		}
		commit(t, s, &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: r.ID, Revision: 1}}})
	}
}
