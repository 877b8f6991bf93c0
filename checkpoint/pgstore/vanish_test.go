package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// A machine that vanishes in the middle of a commit, with the lock that all others wait for, is given
// up by the server before theirs fail: in the middle of its one request, and between the two that a
// conflict takes.
func TestVanishedMachine(t *testing.T) {
	server := listeningServer(t)
	for name, vanish := range map[string]func(p *pgtest.Proxy){
		"within a request":     func(p *pgtest.Proxy) { atCommit(p, pgtest.Requests, pgtest.Within) },
		"between its requests": func(p *pgtest.Proxy) { stallAfter(p, "FOR UPDATE") },
		"before its answer":    func(p *pgtest.Proxy) { atCommit(p, pgtest.Answers, pgtest.Before) },
	} {
		t.Run(name, func(t *testing.T) {
			p := server.Proxy(t)
			o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Quiet: true, Timeout: 4 * time.Second, Lapse: time.Hour}
			address := p.URL()
			if name == "between its requests" {
				address = with(t, address, "default_query_exec_mode", "exec") // statements can be read
			}
			s, other := open(t, address, o), open(t, server.URL(), o)
			t.Cleanup(p.End)
			large := puts(record(1))
			commit(t, s, large)
			if name != "between its requests" { // else it is a conflict
				large = puts(record(2))
			}
			if marked(large, 1); name == "within a request" {
				marked(large, 1000)
			}
			vanish(p)
			done := make(chan error, 1)
			go func() { done <- s.Commit(t.Context(), large) }()
			eventually(t, "the machine vanishes", p.IsCut)
			forget(t, p)
			began := time.Now()
			for n := range 3 {
				commit(t, other, puts(record(3+n)))
			}
			t.Logf("others went on after %v", time.Since(began))
			wantReason(t, <-done, pgstore.Slow)
		})
	}
}

// A process that is stopped in the middle of a request, on a machine that is there, is given up from
// PostgreSQL 17 on.
func TestStoppedWithinRequest(t *testing.T) {
	server := pgtest.Private(t)
	if version(t, server) < 170000 {
		t.Skip("the server bounds no transaction")
	}
	p := server.Proxy(t)
	o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Quiet: true, Timeout: cutTimeout, Lapse: time.Hour}
	s, other := open(t, p.URL(), o), open(t, server.URL(), o)
	t.Cleanup(p.End)
	commit(t, s, puts(record(1)))
	large := marked(puts(record(2)), 1000)
	stopped := atCommit(p, pgtest.Requests, pgtest.Within)
	if err := s.Commit(t.Context(), large); !closed(stopped) || err == nil {
		t.Fatalf("it was not stopped: %v", err)
	}
	forget(t, p) // its end does not arrive either
	eventually(t, "others go on", func() bool {
		err := other.Commit(t.Context(), puts(record(3)))
		_, conflict := errors.AsType[*checkpoint.ConflictError](err) // one before that seemed to fail
		return err == nil || conflict
	})
	if _, err := other.Load(t.Context(), idOf(2)); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("half a request was executed: %v", err)
	}
}

func version(t *testing.T, server *pgtest.Server) (number int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int").Scan(&number); err != nil {
		t.Fatal(err)
	}
	return number
}
