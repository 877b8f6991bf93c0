package gate_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
)

// newRole makes a role of the server with some rights on the tables, and returns where it connects.
func newRole(t *testing.T, server *pgtest.Server, schema string, rights ...string) string {
	t.Helper()
	role := pgtest.Schema() // a name that nobody has
	statements := []string{"CREATE ROLE " + role + " LOGIN", "GRANT USAGE ON SCHEMA " + schema + " TO " + role}
	for _, right := range rights {
		statements = append(statements, "GRANT "+right+" ON ALL TABLES IN SCHEMA "+schema+" TO "+role)
	}
	if err := server.SQL(statements...); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(server.URL(), "user=parley", "user="+role)
}

// R32: a gate with a role that may only read shows what is open and finished as the primary has it,
// and confirms an answer that is recorded; a new one is unavailable, with a hint where it belongs,
// and nothing runs.
func TestReadOnlyOnPostgres(t *testing.T) {
	server := pgtest.Private(t)
	schema := newSchema(t, server.URL())
	var effects counter
	tools := []*gate.Tool{deploy(&effects, nil)}
	writer := open(t, openPostgres(t, server.URL(), schema), gate.Options{Tools: tools})
	store, err := pgstore.Open(t.Context(), newRole(t, server, schema, "SELECT"), &pgstore.Options{Schema: schema, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	reader := open(t, store, gate.Options{Tools: tools, ReadOnly: true})

	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, writer, c)
	if again := mustAsk(t, reader, with(c, p)); again.Token != p.Token {
		t.Error("the open prompt has another token at the reader")
	}
	hint := "this gate only reads: send the request to one that writes"
	if e := mustFail(t, reader, with(c, p, allow), gate.ErrUnavailable); e.Message != hint {
		t.Errorf("a new answer: %v", e)
	}
	if e := wantCode(t, "a new answer", reader.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrUnavailable); e.Message != hint {
		t.Errorf("a new answer from another road: %v", e)
	}
	if e := mustFail(t, reader, c, gate.ErrUnavailable); e.Message != hint {
		t.Errorf("a new call: %v", e)
	}
	effects.want(t, 0)
	mustAnswer(t, writer, p, allow)
	if err := reader.Answer(t.Context(), answers(p, "ann", allow)); err != nil {
		t.Errorf("the recorded answer is not confirmed: %v", err)
	}
	wantCode(t, "another answer", reader.Answer(t.Context(), answers(p, "ann", reject)), gate.ErrAnswerConflict)
	mustFinish(t, writer, with(c, p), `"deployed api"`)
	if s, err := reader.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Status != checkpoint.Finished {
		t.Errorf("at the reader it is %v, %v", s.Status, err)
	}
	mustFail(t, reader, with(c, p), gate.ErrAlreadyCompleted)
	effects.want(t, 1)
}

// Tools are not registered on a store that cannot be read, whether it never could or cannot any
// more.
func TestUnreadableOnPostgres(t *testing.T) {
	server := pgtest.Private(t)
	schema := newSchema(t, server.URL())
	_, err := pgstore.Open(t.Context(), newRole(t, server, schema), &pgstore.Options{Schema: schema, ReadOnly: true})
	if e, ok := errors.AsType[*pgstore.ServerError](err); !ok || e.Reason != pgstore.Denied {
		t.Errorf("open the store: %v, want %s", err, pgstore.Denied)
	}
	store, err := pgstore.Open(t.Context(), server.URL(), &pgstore.Options{Schema: schema, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() // it cannot tell its end
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	var effects counter
	_, err = gate.Open(t.Context(), store, &gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Keys: [][]byte{testKey}})
	if e, ok := errors.AsType[*pgstore.ServerError](err); !ok || e.Reason != pgstore.Unreachable {
		t.Errorf("open the gate: %v, want %s", err, pgstore.Unreachable)
	}
}
