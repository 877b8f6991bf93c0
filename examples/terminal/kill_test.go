package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

// The kill loop: the demo's tool in a child process that is killed with SIGKILL at random moments
// and started again, while several callers give random, repeated, conflicting and invalid answers.
// No acknowledged answer is lost, no tool runs a second time outside what R27 allows, and every
// interaction ends.

func TestKillLoop(t *testing.T) {
	interactions := 300
	if testing.Short() {
		interactions = 30
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &killer{dir: t.TempDir(), stop: make(chan struct{}), calls: make(chan struct{})}
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	killing := make(chan error, 1)
	go func() { killing <- k.run(rand.New(rand.NewPCG(seed, 0))) }()

	const callers = 6
	var wg sync.WaitGroup
	ends := make(chan string, interactions)
	for n := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(n+1)))
			for i := n; i < interactions; i += callers {
				c := newCaller(k, rng, i)
				if err := c.live(); err != nil {
					t.Errorf("interaction %d (%s): %v", i, c.call.Tool, err)
				}
				ends <- c.end
			}
		})
	}
	wg.Wait()
	close(k.stop)
	if err := <-killing; err != nil {
		t.Error(err)
	}
	if err := k.current().Kill(); err != nil {
		t.Error(err)
	}
	close(ends)
	count := map[string]int{}
	for end := range ends {
		count[end]++
	}
	t.Logf("%d kills; %d interactions ended: %v", k.kills, interactions, count)
	if k.kills < interactions/20 {
		t.Errorf("only %d kills: the test proves little", k.kills)
	}
	checkEffects(t, k)
	checkStore(t, k.dir)
}

// checkEffects holds the effects against R27: a tool of which nothing may run again had its effect
// once at most, others again only where a process was killed, and where it recovers, only in
// recovery.
func checkEffects(t *testing.T, k *killer) {
	text, err := os.ReadFile(filepath.Join(k.dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	ordinary, all := map[effect]int{}, map[string]int{}
	for line := range bytes.Lines(text) {
		var e effect
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all[e.Tool]++
		if !e.Recovery {
			ordinary[effect{e.Tool, e.Version, false}]++
		}
		if e.Tool != "recover" && e.Recovery {
			t.Errorf("%s %s ran in recovery", e.Tool, e.Version)
		}
	}
	for e, n := range ordinary {
		if n > 1 && e.Tool != "repeat" {
			t.Errorf("%s %s had its effect %d times as if nothing had been", e.Tool, e.Version, n)
		}
		if n > 1+k.kills {
			t.Errorf("%s %s had its effect %d times with %d kills", e.Tool, e.Version, n, k.kills)
		}
	}
	t.Logf("effects: %v", all)
}

func checkStore(t *testing.T, dir string) {
	store, err := boltstore.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	page, err := store.List(t.Context(), checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Open, checkpoint.Answered}})
	if err != nil || len(page.Records) > 0 {
		t.Errorf("interactions that have not ended: %d, %v", len(page.Records), err)
	}
}
