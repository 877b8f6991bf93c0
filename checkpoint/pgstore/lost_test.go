package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// R25: what was acknowledged is there after the server crashed, lazy batches included that came
// before one that was waited for; the store goes on by itself when the server is back.
func TestServerKilled(t *testing.T) {
	server := pgtest.Private(t)
	schema := migrated(t, server.URL())
	s := open(t, server.URL(), &pgstore.Options{Schema: schema, Logger: quiet, Lapse: 3 * time.Second, Timeout: 2 * time.Second})
	m := join(t, s)
	for round := range 3 {
		var acknowledged, writers sync.Map
		var count atomic.Int32
		var together sync.WaitGroup
		for w := range 4 {
			together.Go(func() {
				for n := 0; ; n++ {
					r := record(round<<24 | w<<16 | n)
					lazy := puts(r)
					lazy.Lazy = true
					if s.Commit(context.Background(), lazy) != nil || s.Commit(context.Background(), puts(next(r))) != nil {
						writers.Store(w, r.ID)
						return
					}
					acknowledged.Store(r.ID, true)
					count.Add(1)
				}
			})
		}
		eventually(t, "there are enough commits", func() bool { return count.Load() > 100 })
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		together.Wait()
		_, err := s.Load(t.Context(), idOf(1))
		wantReason(t, err, pgstore.Unreachable)
		if round == 2 {
			wait(t, "a process that lost its server loses its claims", m.(checkpoint.Lapser).Lapsed())
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		acknowledged.Range(func(id, _ any) bool {
			r, err := s.Load(t.Context(), id.(checkpoint.ID))
			if err != nil || r.Revision != 2 {
				t.Errorf("round %d: acknowledged record %s: revision %d, error %v", round, id, r.Revision, err)
			}
			return err == nil
		})
		commit(t, s, puts(record(round<<24|0xff<<16)))
		t.Logf("round %d: %d pairs acknowledged", round, count.Load())
	}
	eventually(t, "it joins anew", func() bool {
		_, _, err := s.Join(t.Context(), checkpoint.Ledger{})
		return err == nil
	})
}

// Close makes lazy batches durable, though the server would take its time.
func TestLazyThenClosed(t *testing.T) {
	server := pgtest.Private(t)
	execute(t, server.URL(), "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()")
	o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet}
	s := open(t, server.URL(), o)
	b := puts(record(1))
	b.Lazy = true
	commit(t, s, b)
	shut(t, s)
	if err := errors.Join(server.Kill(), server.Restart()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, server.URL(), o).Load(t.Context(), record(1).ID); err != nil {
		t.Error(err)
	}
}

// R25: a commit whose answer is lost is an error, and was applied; one whose request is lost is an
// error too, and was not. Both are read back, and the store goes on.
func TestLostCommit(t *testing.T) {
	server := pgtest.Private(t)
	schema := migrated(t, server.URL())
	p := server.Proxy(t)
	s := open(t, p.URL(), &pgstore.Options{Schema: schema, Logger: quiet, Quiet: true, Lapse: time.Hour}) // no other request comes in between
	commit(t, s, puts(record(1)))
	commit(t, s, puts(next(record(1)))) // the statements are prepared
	r := next(record(1))
	for range 3 {
		for _, lost := range []pgtest.Direction{pgtest.Requests, pgtest.Answers} {
			r = next(r)
			b := marked(puts(r), 1)
			atCommit(p, lost, pgtest.Lose)
			err := s.Commit(t.Context(), b)
			wantReason(t, err, pgstore.Unreachable)
			want := r.Revision - 1
			if lost == pgtest.Answers {
				want = r.Revision
			}
			eventually(t, "what became of it", func() bool { // the server may be at it still
				got, err := s.Load(t.Context(), r.ID)
				return err == nil && got.Revision == want
			})
			err = s.Commit(t.Context(), b) // the same again
			if _, conflict := errors.AsType[*checkpoint.ConflictError](err); conflict != (lost == pgtest.Answers) || !conflict && err != nil {
				t.Fatalf("the same again: %v", err)
			}
		}
	}
}

// stallAfter cuts the network before what is requested after a request that has the text in it.
func stallAfter(p *pgtest.Proxy, text string) (stalled <-chan struct{}) {
	happened, seen := make(chan struct{}), false
	p.Watch(func(d pgtest.Direction, data []byte) pgtest.Fate {
		if d != pgtest.Requests || closed(happened) {
			return pgtest.Pass
		}
		if seen {
			close(happened)
			return pgtest.Before
		}
		seen = bytes.Contains(data, []byte(text))
		return pgtest.Pass
	})
	return happened
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A process that stalls in the middle of a commit, while all others wait for its lock, is given up by
// the server before theirs fail. It finds out, and goes on. Through a pooler the transaction itself
// brings the timeout along.
func TestStalledCommit(t *testing.T) {
	server := pgtest.Private(t)
	for _, pooler := range []bool{false, true} {
		schema := migrated(t, server.URL())
		p := server.Proxy(t)
		o := &pgstore.Options{Schema: schema, Logger: quiet, Quiet: true, Timeout: 3 * time.Second, Lapse: time.Hour, Pooler: pooler}
		s, other := open(t, with(t, p.URL(), "default_query_exec_mode", "exec"), o), open(t, server.URL(), o)
		commit(t, s, puts(record(1)))
		conflict := func() bool {
			_, is := errors.AsType[*checkpoint.ConflictError](s.Commit(context.Background(), puts(record(1))))
			return is
		}
		t.Cleanup(p.End)
		stalled := stallAfter(p, "FOR UPDATE")
		done := make(chan bool, 1)
		go func() { done <- conflict() }()
		wait(t, "it stalls", stalled)
		for n := range 3 {
			commit(t, other, puts(record(2+n)))
		}
		p.Heal()
		<-done // a conflict, or an unknown outcome: it had nothing to write
		eventually(t, "it goes on", conflict)
		commit(t, s, puts(next(record(1))))
	}
}
