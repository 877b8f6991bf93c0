package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// cutTimeout is the timeout of stores whose network is cut, and slack what a busy machine may take
// besides.
const (
	cutTimeout = time.Second
	slack      = 3 * time.Second
)

// A cut ends: what was on its way arrives late, or never.
var ends = map[string]func(t *testing.T, p *pgtest.Proxy){
	"arrives late": func(_ *testing.T, p *pgtest.Proxy) { p.Heal() },
	"never": func(t *testing.T, p *pgtest.Proxy) {
		forget(t, p)
		p.Heal()
	},
}

func forget(t *testing.T, p *pgtest.Proxy) {
	t.Helper()
	if err := p.Forget(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system makes nobody deaf")
	} else if err != nil {
		t.Fatal(err)
	}
}

func listeningServer(t *testing.T) *pgtest.Server {
	t.Helper()
	server := pgtest.Private(t)
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	return server
}

// R23: while a network is cut, every request of every caller fails within the timeout, however many
// there are, and the claims lapse. When it is whole again the store goes on by itself, also where the
// connections of before stay dead; the connection that listens is opened anew, and who waits is woken.
func TestCutWhileIdle(t *testing.T) {
	server := listeningServer(t)
	for name, heal := range ends {
		t.Run(name, func(t *testing.T) {
			p := server.Proxy(t)
			o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Timeout: cutTimeout, Lapse: 3 * time.Second}
			s, other := open(t, p.URL(), o), open(t, server.URL(), o)
			m := join(t, s)
			listening(t, s, other)
			commit(t, s, puts(record(1)))
			p.Cut()
			t.Cleanup(p.End)
			var all sync.WaitGroup
			for n := range 200 {
				all.Go(func() { fails(t, s, m, n) })
			}
			all.Wait()
			wait(t, "its claims lapse", m.(checkpoint.Lapser).Lapsed())
			waiting, stop := s.Watch(idOf(1))
			defer stop()
			commit(t, other, puts(next(record(1)))) // nobody hears it
			heal(t, p)
			wait(t, "who waits is woken", waiting)
			began := time.Now()
			eventually(t, "it joins anew", func() bool {
				_, again, err := s.Join(t.Context(), checkpoint.Ledger{})
				return err == nil && again.Owner() != m.Owner()
			})
			commit(t, s, puts(next(next(record(1)))))
			if took := time.Since(began); took > 3*cutTimeout+slack {
				t.Errorf("it went on after %v", took)
			}
			changed, stop := s.Watch(idOf(2))
			defer stop()
			commit(t, other, puts(record(2)))
			wait(t, "it hears the others", changed)
		})
	}
}

// fails makes a request of a kind by its number, and wants it to fail in time.
func fails(t *testing.T, s *pgstore.Store, m checkpoint.Member, n int) {
	ctx := context.Background()
	began := time.Now()
	var err error
	switch n % 8 {
	case 0:
		err = s.Commit(ctx, puts(record(1000+n)))
	case 1:
		_, err = s.Load(ctx, idOf(1))
	case 2:
		_, err = s.Find(ctx, checkpoint.Hash{1})
	case 3:
		_, err = s.List(ctx, checkpoint.Query{})
	case 4:
		_, err = s.Rows(ctx, idOf(1), "", 1)
	case 5:
		_, err = s.Usage(ctx, checkpoint.Hash{})
	case 6:
		_, err = m.Alive(ctx, "somebody")
	case 7:
		_, _, err = s.Join(ctx, checkpoint.Ledger{})
	}
	if took := time.Since(began); took > cutTimeout+slack {
		t.Errorf("request %d took %v", n, took)
	}
	if e, ok := errors.AsType[*pgstore.ServerError](err); !ok || e.Reason != pgstore.Slow && e.Reason != pgstore.Unreachable {
		t.Errorf("request %d: %v", n, err)
	}
}

// R25: a network that is cut in the middle of a commit leaves an error in time, and what was written
// is read back when it is whole: nothing that was acknowledged is lost, and what was not is written
// once at most.
func TestCutCommit(t *testing.T) {
	server := listeningServer(t)
	for _, phase := range []struct {
		name    string
		d       pgtest.Direction
		fate    pgtest.Fate
		arrived bool
	}{
		{"the request is not delivered", pgtest.Requests, pgtest.Before, false},
		{"half of it is delivered", pgtest.Requests, pgtest.Within, false},
		{"it is delivered", pgtest.Requests, pgtest.Beyond, true},
		{"its answer is lost", pgtest.Answers, pgtest.Before, true},
	} {
		for name, heal := range ends {
			t.Run(fmt.Sprintf("%s, %s", phase.name, name), func(t *testing.T) {
				p := server.Proxy(t)
				o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Quiet: true, Timeout: cutTimeout, Lapse: time.Hour}
				s := open(t, p.URL(), o)
				t.Cleanup(p.End)
				r := record(1)
				commit(t, s, puts(r))         // acknowledged
				b := marked(puts(next(r)), 1) // what is small is carried as one piece
				if phase.fate == pgtest.Within {
					b = marked(b, 1000) // half of it takes the lock
				}
				met := atCommit(p, phase.d, phase.fate)
				began := time.Now()
				err := s.Commit(t.Context(), b)
				if took := time.Since(began); took > cutTimeout+slack {
					t.Errorf("it took %v", took)
				}
				wantReason(t, err, pgstore.Slow)
				if !closed(met) {
					t.Fatal("the network was not cut")
				}
				heal(t, p)
				var got checkpoint.Record
				eventually(t, "it can be read back", func() bool {
					got, err = s.Load(t.Context(), r.ID)
					return err == nil
				})
				if got.Revision < 1 || phase.arrived && got.Revision != 2 || name == "never" && !phase.arrived && got.Revision != 1 {
					t.Errorf("revision %d was read back", got.Revision)
				}
				err = s.Commit(t.Context(), b) // the same again
				if _, conflict := errors.AsType[*checkpoint.ConflictError](err); err != nil && !conflict || conflict != (got.Revision == 2) && name == "never" {
					t.Errorf("the same again, after revision %d was read back: %v", got.Revision, err)
				}
				if got, err = s.Load(t.Context(), r.ID); err != nil || got.Revision != 2 || !bytes.Equal(got.Data, b.Puts[0].Record.Data) {
					t.Errorf("revision %d in the end, error %v", got.Revision, err)
				}
			})
		}
	}
}

// marked is the batch with data that no other request has, once or many times.
func marked(b *checkpoint.Batch, times int) *checkpoint.Batch {
	b.Puts[0].Record.Data = bytes.Repeat([]byte(mark), times)
	return b
}

const mark = "written to be found"

// atCommit makes the next request that writes what is marked meet its fate, or the answer to it.
func atCommit(p *pgtest.Proxy, d pgtest.Direction, fate pgtest.Fate) (met <-chan struct{}) {
	happened, seen := make(chan struct{}), false
	p.Watch(func(direction pgtest.Direction, data []byte) pgtest.Fate {
		seen = seen || direction == pgtest.Requests && bytes.Contains(data, []byte(mark))
		if !seen || direction != d || closed(happened) {
			return pgtest.Pass
		}
		close(happened)
		return fate
	})
	return happened
}
