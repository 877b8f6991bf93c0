package pgstore_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
	"github.com/parley-go/parley/internal/powercut"
)

func TestMain(m *testing.M) {
	if powercut.Booted() {
		os.Exit(powercut.Serve(serveDisk))
	}
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.FewerChecks(t, "25")
	contract(t, url, url, &pgstore.Options{})
}

// The contract through pgbouncer in transaction mode, which takes no listener: that connection goes
// past it.
func TestContractThroughPooler(t *testing.T) {
	server := pgtest.Private(t)
	pooler := server.Pooler(t)
	_, err := pgstore.Open(t.Context(), pooler, nil)
	if wantReason(t, err, pgstore.Unreachable); !strings.Contains(err.Error(), "set Options.Pooler") {
		t.Errorf("the error has no hint: %v", err)
	}
	for range 2 {
		if err := pgstore.Migrate(t.Context(), pooler, nil); err != nil {
			t.Error(err)
		}
	}
	pgtest.FewerChecks(t, "8")
	contract(t, server.URL(), pooler, &pgstore.Options{Pooler: true, ListenURL: server.URL()})
}

// contract tests stores that are opened at the address; url is the server's own.
func contract(t *testing.T, url, address string, o *pgstore.Options) {
	schemas := make(map[checkpoint.Store]string)
	latest := make(map[testing.TB]*pgstore.Store)
	openAt := func(t testing.TB, schema string) checkpoint.Store {
		opts := *o
		opts.Schema = schema
		s := open(t, address, &opts)
		schemas[s], latest[t] = schema, s
		return s
	}
	checkpointtest.Run(t, checkpointtest.Harness{
		Open: func(t testing.TB) checkpoint.Store {
			if s := latest[t]; s != nil { // the model opens many, one after the other
				shut(t, s)
			}
			return openAt(t, migrated(t, url))
		},
		Reopen: func(t testing.TB, s checkpoint.Store) checkpoint.Store {
			shut(t, s.(*pgstore.Store))
			return openAt(t, schemas[s])
		},
		// What is left of a process that is killed is what the server has.
		Crash: func(t testing.TB, s checkpoint.Store) checkpoint.Store { return openAt(t, schemas[s]) },
		Check: func(t testing.TB, s checkpoint.Store) { checkUsage(t, url, schemas[s]) },
	})
}

// migrated makes a schema with the tables of a store, and removes it when the test ends.
func migrated(t testing.TB, url string) string {
	t.Helper()
	schema := pgtest.Schema()
	given := os.Getenv("PARLEY_TEST_POSTGRES") != ""
	admin := url
	if !given { // tables of a test need not survive a crash of its own server, and are made faster then
		admin = with(t, url, "synchronous_commit", "off")
	}
	if err := pgstore.Migrate(context.Background(), admin, &pgstore.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	if given { // else all of the server goes
		t.Cleanup(func() { execute(t, url, "DROP SCHEMA "+schema+" CASCADE") })
	}
	return schema
}

// open opens a store, and closes it when the test ends.
func open(t testing.TB, url string, opts *pgstore.Options) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(context.Background(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

func shut(t testing.TB, s *pgstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// execute runs statements on a connection of their own.
func execute(t testing.TB, url string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// checkUsage fails the test where what is counted is not what is stored.
func checkUsage(t testing.TB, url, schema string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var wrong int
	err = conn.QueryRow(ctx, `WITH held AS (
			SELECT scope, (status BETWEEN 1 AND 4)::int AS active, octet_length(data) + 512 AS bytes FROM `+schema+`.record
			UNION ALL
			SELECT r.scope, 0, octet_length(k.data) + 512 FROM `+schema+`.record_row k JOIN `+schema+`.record r ON r.id = k.id
		), counted AS (
			SELECT scope, sum(active) AS active, sum(bytes) AS bytes FROM held WHERE scope <> decode(repeat('00', 32), 'hex') GROUP BY scope
			UNION ALL SELECT decode(repeat('00', 32), 'hex'), coalesce(sum(active), 0), coalesce(sum(bytes), 0) FROM held
		)
		SELECT count(*) FROM counted c FULL JOIN `+schema+`.usage u ON u.scope = c.scope
		WHERE coalesce(c.active, 0) <> coalesce(u.active, 0) OR coalesce(c.bytes, 0) <> coalesce(u.bytes, 0)`).Scan(&wrong)
	if err != nil || wrong > 0 {
		t.Errorf("%d scopes are counted wrong, error %v", wrong, err)
	}
	var orphans int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM `+schema+`.record_row k LEFT JOIN `+schema+`.record r ON r.id = k.id WHERE r.id IS NULL`).
		Scan(&orphans)
	if err != nil || orphans > 0 {
		t.Errorf("%d rows have no record, error %v", orphans, err)
	}
}

func wantReason(t *testing.T, err error, want pgstore.Reason) {
	t.Helper()
	var e *pgstore.ServerError
	if !errors.As(err, &e) || e.Reason != want {
		t.Fatalf("got %v, want %q", err, want)
	}
}

// wantHelp wants an error to say what whoever runs the server has to know.
func wantHelp(t *testing.T, err error, help string) {
	t.Helper()
	if !strings.Contains(err.Error(), help) {
		t.Errorf("%q does not say %q", err, help)
	}
}
