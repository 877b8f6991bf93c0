package pgstore_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// with is the URL with one more parameter, which the server takes as a setting.
func with(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

// Settings that lose what was acknowledged, tables that are not there, and servers that cannot be
// written to are refused when the store is opened.
func TestRefused(t *testing.T) {
	address := pgtest.URL(t)
	schema := migrated(t, address)
	newer := migrated(t, address)
	execute(t, address, "UPDATE "+newer+".format SET version = 99")
	half := migrated(t, address)
	execute(t, address, "UPDATE "+half+".format SET version = 0")
	for name, tc := range map[string]struct {
		url, schema string
		want        pgstore.Reason
		help        string
	}{
		"not durable":  {with(t, address, "synchronous_commit", "off"), schema, pgstore.Unsafe, "synchronous_commit off"},
		"read only":    {with(t, address, "default_transaction_read_only", "on"), schema, pgstore.Standby, "name the primary"},
		"no schema":    {address, pgtest.Schema(), pgstore.Unmigrated, "Migrate makes the tables"},
		"half a way":   {address, half, pgstore.Unmigrated, "Migrate makes the tables"},
		"no database":  {with(t, address, "database", "nobody_made_it"), schema, pgstore.Unmigrated, "does not exist"},
		"newer":        {address, newer, pgstore.Newer, "newer parley"},
		"no such user": {with(t, address, "user", "nobody_there"), schema, pgstore.Denied, "nobody_there"},
		"no server":    {"postgres://127.0.0.1:1/x", schema, pgstore.Unreachable, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := pgstore.Open(t.Context(), tc.url, &pgstore.Options{Schema: tc.schema, Connections: 6})
			if err == nil {
				shut(t, s)
			}
			wantReason(t, err, tc.want)
			wantHelp(t, err, tc.help)
		})
	}
	if err := pgstore.Migrate(t.Context(), address, &pgstore.Options{Schema: newer}); err == nil {
		t.Error("a newer schema was migrated")
	}
}

func TestMalformedOptions(t *testing.T) {
	for name, o := range map[string]*pgstore.Options{
		"negative":     {Connections: -1},
		"too few":      {Connections: 5},
		"short lapse":  {Lapse: time.Second, Timeout: time.Second},
		"long schema":  {Schema: string(make([]byte, 49))},
		"listen where": {ListenURL: "postgres://[x"},
		"quiet listen": {Quiet: true, ListenURL: "postgres://x"},
	} {
		_, err := pgstore.Open(t.Context(), "postgres://127.0.0.1:1/x", o)
		if _, tried := errors.AsType[*pgstore.ServerError](err); err == nil || tried {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All processes may migrate at once, also while others use the store.
func TestMigrateTogether(t *testing.T) {
	address := pgtest.URL(t)
	o := &pgstore.Options{Schema: pgtest.Schema()}
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			if err := pgstore.Migrate(t.Context(), address, o); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	s := open(t, address, o)
	commit(t, s, puts(record(1)))
	if err := pgstore.Migrate(t.Context(), address, o); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), record(1).ID); err != nil {
		t.Fatal(err)
	}
}

// A schema may have any name that the server takes, also where others wait for its notices.
func TestSchemaNames(t *testing.T) {
	url := pgtest.URL(t)
	for _, name := range []string{"two\nlines", `"quoted"`, "a'; DROP", "Größe $1 %s", "parley.x"} {
		o := &pgstore.Options{Schema: pgtest.Schema()[:24] + name, Logger: quiet}
		for range 2 {
			if err := pgstore.Migrate(t.Context(), url, o); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
		t.Cleanup(func() { execute(t, url, "DROP SCHEMA "+pgx.Identifier{o.Schema}.Sanitize()+" CASCADE") })
		one, two := open(t, url, o), open(t, url, o)
		listening(t, two, one)
	}
}

// A pooler in transaction mode gives each transaction another connection of the server.
func TestMigrateThroughPooler(t *testing.T) {
	pooler := pgtest.Private(t).Pooler(t)
	var together sync.WaitGroup
	o := &pgstore.Options{Schema: pgtest.Schema()}
	for range 8 {
		together.Go(func() {
			for range 3 {
				if err := pgstore.Migrate(t.Context(), pooler, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	together.Wait()
}

// R32: a role that may only read has a gate's ledger, sees what is stored, and writes nothing; a
// role without the right to make tables does everything else.
func TestRoles(t *testing.T) {
	address := pgtest.URL(t)
	schema := migrated(t, address)
	reader, writer := pgtest.Schema(), pgtest.Schema() // names that nobody has
	execute(t, address,
		"CREATE ROLE "+reader+" LOGIN", "GRANT USAGE ON SCHEMA "+schema+" TO "+reader,
		"GRANT SELECT ON ALL TABLES IN SCHEMA "+schema+" TO "+reader,
		"CREATE ROLE "+writer+" LOGIN", "GRANT USAGE ON SCHEMA "+schema+" TO "+writer,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+schema+" TO "+writer)
	t.Cleanup(func() {
		execute(t, address, "DROP OWNED BY "+reader+", "+writer, "DROP ROLE "+reader, "DROP ROLE "+writer)
	})
	r := open(t, with(t, address, "user", reader), &pgstore.Options{Schema: schema, ReadOnly: true})
	if _, _, err := r.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}}); !isReadOnly(err) {
		t.Errorf("join a store that has no ledger: %v", err)
	}
	if err := pgstore.Migrate(t.Context(), with(t, address, "user", writer), &pgstore.Options{Schema: schema}); err != nil {
		t.Errorf("nothing is to be migrated: %v", err)
	}
	w := open(t, with(t, address, "user", writer), &pgstore.Options{Schema: schema})
	_, m, err := w.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	b := puts(record(1))
	b.Owner, b.Audit = m.Owner(), [][]byte{[]byte("a")}
	commit(t, w, b)
	ledger, mine, err := r.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{2}})
	if err != nil || ledger.ID != [16]byte{1} {
		t.Fatalf("join to read: %v, %v", ledger, err)
	}
	if alive, err := mine.Alive(t.Context(), m.Owner()); err != nil || !alive {
		t.Errorf("the writer is alive: %t, %v", alive, err)
	}
	if _, err := r.Load(t.Context(), record(1).ID); err != nil {
		t.Error(err)
	}
	if err := r.Commit(t.Context(), puts(record(2))); !isReadOnly(err) {
		t.Errorf("commit: %v", err)
	}
	if err := mine.Leave(); err != nil {
		t.Error(err)
	}
	// A role that may not write, in a store that was not told so.
	_, err = pgstore.Open(t.Context(), with(t, address, "user", reader), &pgstore.Options{Schema: schema})
	wantReason(t, err, pgstore.Denied)
	wantHelp(t, err, "grant it")
	err = pgstore.Migrate(t.Context(), with(t, address, "user", writer), &pgstore.Options{Schema: pgtest.Schema()})
	wantReason(t, err, pgstore.Denied)
}

// A closed store says so.
func TestClosed(t *testing.T) {
	s := open(t, pgtest.URL(t), &pgstore.Options{Schema: migrated(t, pgtest.URL(t))})
	_, m, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	shut(t, s)
	_, err1 := s.Load(t.Context(), record(1).ID)
	_, err2 := m.Alive(t.Context(), m.Owner())
	_, _, err3 := s.Join(context.Background(), checkpoint.Ledger{})
	for i, err := range []error{err1, err2, err3, s.Commit(t.Context(), puts(record(1)))} {
		if !isUnavailable(err) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if err := m.Leave(); err != nil {
		t.Error(err)
	}
}
