package gate_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
)

// A timeless store leaves the time to the gate's clock, which a test sets.
type timeless struct{ *pgstore.Store }

type timelessMember struct{ checkpoint.Member }

func (timelessMember) Now(local time.Time) time.Time { return local }

func (s timeless) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := s.Store.Join(ctx, proposed)
	return ledger, timelessMember{member}, err
}

// openPostgres opens a store, as one process of many, and closes it when the test ends.
func openPostgres(t *testing.T, url, schema string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), url, &pgstore.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler), Connections: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

func newSchema(t *testing.T, url string) string {
	t.Helper()
	schema := pgtest.Schema()
	if err := pgstore.Migrate(t.Context(), url, &pgstore.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	return schema
}

// The model again, with two gates in two processes of one database.
func TestModelOnPostgres(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.FewerChecks(t, "10")
	model(t, func() [2]checkpoint.Store {
		schema := newSchema(t, url)
		return [2]checkpoint.Store{timeless{openPostgres(t, url, schema)}, timeless{openPostgres(t, url, schema)}}
	})
}

// R24: an answer that is given at one replica continues the handler that waits at another, within a
// tenth of a second.
func TestWaitOnPostgres(t *testing.T) {
	url := pgtest.URL(t)
	schema := newSchema(t, url)
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil)}
	waits := open(t, openPostgres(t, url, schema), gate.Options{Tools: tools, PollInterval: time.Hour})
	other := open(t, openPostgres(t, url, schema), gate.Options{Tools: tools})
	var took []time.Duration
	for range 5 {
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, waits, c)
		c.Token = p.Token
		type end struct {
			outcome gate.Outcome
			err     error
			at      time.Time
		}
		done := make(chan end, 1)
		go func() {
			outcome, err := waits.Wait(context.Background(), c)
			done <- end{outcome, err, time.Now()}
		}()
		began := time.Now()
		mustAnswer(t, other, p, allow)
		select {
		case e := <-done:
			if e.err != nil || string(e.outcome.Result) != `"deployed api"` {
				t.Fatalf("%+v, %v", e.outcome, e.err)
			}
			took = append(took, e.at.Sub(began))
		case <-time.After(30 * time.Second):
			t.Fatal("the answer woke nobody")
		}
	}
	effects.want(t, 5)
	t.Logf("answered and carried out after %v", took)
	if best := slices.Min(took); best > 100*time.Millisecond { // the others may have met a machine that does other work
		t.Errorf("the best took %v", best)
	}
}
