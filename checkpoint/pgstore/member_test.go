package pgstore_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

var quiet = slog.New(slog.DiscardHandler)

// R23: an owner is alive for all processes until it leaves, or its process ends.
func TestOwnersOfTwoProcesses(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url)}
	one, two := open(t, url, o), open(t, url, o)
	m1, m2, m3 := join(t, one), join(t, two), join(t, one)
	wantAlive(t, m2, m1.Owner(), true)
	wantAlive(t, m1, m2.Owner(), true)
	if err := m1.Leave(); err != nil {
		t.Fatal(err)
	}
	wantAlive(t, m2, m1.Owner(), false)
	wantAlive(t, m2, m3.Owner(), true)
	shut(t, one)
	wantAlive(t, m2, m3.Owner(), false)
	for _, dead := range []checkpoint.Member{m1, m3} {
		b := puts(record(1))
		b.Owner = dead.Owner()
		if err := two.Commit(t.Context(), b); !errors.Is(err, checkpoint.ErrLapsed) {
			t.Errorf("commit of a dead owner: %v", err)
		}
	}
}

// R23: a process that gave no sign of life in time is dead for everybody at once, learns it, and
// joins anew as another owner; the server's clock decides.
func TestLapse(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	o := &pgstore.Options{Schema: schema, Lapse: 2 * time.Second, Timeout: time.Second, Logger: quiet}
	stalled, other := open(t, url, o), open(t, url, &pgstore.Options{Schema: schema})
	m1, m2 := join(t, stalled), join(t, other)
	kept := record(1)
	b := puts(kept)
	b.Owner = m1.Owner()
	commit(t, stalled, b)
	execute(t, url, "UPDATE "+schema+".process SET until = clock_timestamp() - interval '1 millisecond' WHERE id = '"+
		m1.Owner()[:26]+"'")
	wantAlive(t, m2, m1.Owner(), false)
	wantAlive(t, m1, m1.Owner(), false)
	for _, lazy := range []bool{false, true} {
		late := puts(next(kept))
		late.Owner, late.Lazy = m1.Owner(), lazy
		late.Puts[0].Record.Status = checkpoint.Finished
		if err := stalled.Commit(t.Context(), late); !errors.Is(err, checkpoint.ErrLapsed) {
			t.Fatalf("a late write, lazy %t: %v", lazy, err)
		}
	}
	wait(t, "the process learns that it lapsed", m1.(checkpoint.Lapser).Lapsed())
	var again checkpoint.Member
	eventually(t, "it joins anew", func() bool {
		_, m, err := stalled.Join(t.Context(), checkpoint.Ledger{})
		again = m
		return err == nil
	})
	if again.Owner() == m1.Owner() {
		t.Error("an owner came back")
	}
	wantAlive(t, m2, again.Owner(), true)
	wantAlive(t, m2, m1.Owner(), false)
	b = puts(next(kept))
	b.Owner = again.Owner()
	commit(t, stalled, b)
	select {
	case <-m2.(checkpoint.Lapser).Lapsed():
		t.Error("another process lapsed with it")
	default:
	}
}

// Who joins after the server counted its process dead, and before the process knows, is told so.
func TestJoinTooLate(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	s := open(t, url, &pgstore.Options{Schema: schema, Lapse: time.Hour})
	execute(t, url, "UPDATE "+schema+".process SET until = clock_timestamp()")
	_, _, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
	wantReason(t, err, pgstore.Unreachable)
}

// Signs of life that do not get through are logged once, and once when they do again.
func TestLogsOnce(t *testing.T) {
	server := pgtest.Private(t)
	var log lines
	o := &pgstore.Options{Schema: migrated(t, server.URL()), Lapse: 2 * time.Second, Timeout: time.Second, Quiet: true,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := open(t, server.URL(), o)
	m := join(t, s)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the process lapses", m.(checkpoint.Lapser).Lapsed())
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says that it is alive again", func() bool { return strings.Contains(log.text(), "again") })
	if n := strings.Count(log.text(), "level="); n != 3 { // and that it lapsed
		t.Errorf("%d lines, want 3:\n%s", n, log.text())
	}
}

// A lines is what is logged.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A process stays alive while it does nothing.
func TestSignsOfLife(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	idle := open(t, url, &pgstore.Options{Schema: schema, Lapse: time.Second, Timeout: 900 * time.Millisecond, Logger: quiet})
	other := open(t, url, &pgstore.Options{Schema: schema})
	m1, m2 := join(t, idle), join(t, other)
	began := m2.Now(time.Time{})
	eventually(t, "three times the lapse passes", func() bool {
		wantAlive(t, m2, m1.Owner(), true)
		return m2.Now(time.Time{}).Sub(began) > 3*time.Second
	})
}

// The time is the server's, whatever this machine's is, and not before what any process committed.
func TestTimeOfTheServer(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	one, two := open(t, url, &pgstore.Options{Schema: schema}), open(t, url, &pgstore.Options{Schema: schema})
	m1, m2 := join(t, one), join(t, two)
	for _, local := range []time.Time{{}, time.Now().Add(1000 * time.Hour)} {
		if apart := time.Until(m1.Now(local)).Abs(); apart > time.Minute { // the server of a test is on this machine
			t.Errorf("now is %v apart for local time %v", apart, local)
		}
	}
	ahead := time.Now().Add(time.Hour)
	b := puts(record(1))
	b.Time = ahead
	commit(t, one, b)
	if now := m1.Now(time.Time{}); now.Before(ahead) {
		t.Errorf("now is %v, before what was committed", now)
	}
	if _, err := two.Load(t.Context(), record(1).ID); err != nil {
		t.Fatal(err)
	}
	if now := m2.Now(time.Time{}); now.Before(ahead) {
		t.Errorf("now of another process is %v, before what it loaded", now)
	}
}
