package mcpbridge_test

import (
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
)

// R20, R25: the server is another process at every round, and each goes on where the last one was.
func TestRestartBetweenRounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	state, answers := "", mcp.InputResponseMap(nil)
	for i, content := range []string{
		allow, `{"choice":"0"}`, `{"name":"Ann","sure":true}`, "", "the end",
	} {
		store, err := boltstore.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		tool := everyKind()
		g, err := gate.Open(t.Context(), store, &gate.Options{Tools: []*gate.Tool{tool}, Keys: [][]byte{testKey}, Logger: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		s := newSite(t, g, nil, tool)
		cs := connect(t, s, modern, &person{}, byHand)
		result := send(t, cs, with("every_kind", `{}`, state, answers))
		if i == 4 {
			wantText(t, result, `{"choice":"north","form":{"name":"Ann","sure":true}}`)
		} else {
			var key string
			key, _ = only(t, result)
			state, answers = result.RequestState, mcp.InputResponseMap{key: accept(content)}
		}
		cs.Close()
		if err := s.bridge.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// R22: two servers on one store behind one address serve each other's rounds.
func TestTwoServers(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		store := memstore.New()
		twoServers(t, store, store)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.URL(t)
		opts := &pgstore.Options{Schema: pgtest.Schema(), Logger: logger(t)}
		if err := pgstore.Migrate(t.Context(), url, opts); err != nil {
			t.Fatal(err)
		}
		var stores []checkpoint.Store // each as another process opens it
		for range 2 {
			store, err := pgstore.Open(t.Context(), url, opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			stores = append(stores, store)
		}
		twoServers(t, stores...)
	})
}

func twoServers(t *testing.T, stores ...checkpoint.Store) {
	var sites []*site
	for _, store := range stores {
		tool := everyKind()
		g := openGate(t, store, gate.Options{Tools: []*gate.Tool{tool}})
		sites = append(sites, newSite(t, g, &mcpbridge.Options{Authorize: byUser}, tool))
	}
	p := answering("accept:"+allow, `accept:{"choice":"1"}`, `accept:{"name":"Ann","sure":true}`, "accept")
	cs := as(t, serve(t, &users{}, sites...), "ann", modern, p)
	wantText(t, call(t, cs, "every_kind", `{}`), `{"choice":"south","form":{"level":"lo","name":"Ann","sure":true}}`)
	p.want(t, 4)
}
