package bench_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

type input struct {
	Service string `json:"service"`
}

func deploy(ctx context.Context, in input) (string, error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
		return "", err
	}
	return "deployed", nil
}

// deployInSteps does five things, each once, and then asks as deploy does.
func deployInSteps(ctx context.Context, in input) (string, error) {
	for i := range stepsPerCall {
		_, err := interrupt.Once(ctx, fmt.Sprintf("step %d", i), func(context.Context, string) (int, error) { return i, nil },
			&interrupt.OnceOptions[int]{Idempotent: true})
		if err != nil {
			return "", err
		}
	}
	return deploy(ctx, in)
}

const stepsPerCall = 5

var callers = []int{1, 8, 64, 256}

func openBolt(b *testing.B) *boltstore.Store {
	store, err := boltstore.Open(filepath.Join(b.TempDir(), "db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	return store
}

func openGate(b *testing.B, store checkpoint.Store, dataKeys ...[]byte) *gate.Gate {
	tools := []*gate.Tool{gate.NewTool("deploy", deploy, nil), gate.NewTool("steps", deployInSteps, nil)}
	unlimited := gate.Capacity{
		Open: gate.Unlimited, OpenPerScope: gate.Unlimited, Bytes: gate.Unlimited, BytesPerScope: gate.Unlimited,
	}
	g, err := gate.Open(b.Context(), store, &gate.Options{
		Tools: tools, Keys: [][]byte{gate.NewKey()}, DataKeys: dataKeys, Logger: slog.New(slog.DiscardHandler), Capacity: unlimited,
		Lifetime: 24 * time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close(context.Background()) })
	return g
}

func newCall(tool string) gate.Call {
	return gate.Call{
		Tool: tool, Arguments: json.RawMessage(`{"service":"api"}`), Scope: "ann", Session: "s",
		Facilities: []interrupt.Facility{interrupt.FacilityPermission},
	}
}

// raise makes the first request of an interaction and returns the one that answers it.
func raise(ctx context.Context, g *gate.Gate, tool string) (gate.Call, error) {
	call := newCall(tool)
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		return call, err
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)}
	return call, nil
}

func answer(ctx context.Context, g *gate.Gate, call gate.Call) error {
	_, err := g.Invoke(ctx, call)
	return err
}

func interact(ctx context.Context, g *gate.Gate, tool string) error {
	call, err := raise(ctx, g, tool)
	if err != nil {
		return err
	}
	return answer(ctx, g, call)
}

// One operation is a whole interaction: a question is raised, answered by its caller, and carried
// out. store=raw and store=disk are its floors: see raw and BenchmarkInteraction's own end.
func BenchmarkInteraction(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("store=mem/callers=%d", n), func(b *testing.B) { interactions(b, openGate(b, memstore.New()), "deploy", n) })
		b.Run(fmt.Sprintf("store=bolt/callers=%d", n), func(b *testing.B) { interactions(b, openGate(b, openBolt(b)), "deploy", n) })
		b.Run(fmt.Sprintf("store=raw/callers=%d", n), func(b *testing.B) { rawInteractions(b, n) })
	}
	b.Run("store=disk/callers=1", func(b *testing.B) { fourSyncs(b) })
}

// The same with data keys: everything that people and tools wrote is sealed.
func BenchmarkEncrypted(b *testing.B) {
	for _, n := range []int{1, 64} {
		for _, sealed := range []bool{false, true} {
			var keys [][]byte
			if sealed {
				keys = [][]byte{gate.NewKey()}
			}
			b.Run(fmt.Sprintf("store=mem/callers=%d/sealed=%t", n, sealed), func(b *testing.B) {
				interactions(b, openGate(b, memstore.New(), keys...), "deploy", n)
			})
			b.Run(fmt.Sprintf("store=bolt/callers=%d/sealed=%t", n, sealed), func(b *testing.B) {
				interactions(b, openGate(b, openBolt(b), keys...), "deploy", n)
			})
		}
	}
}

// An interaction with recorded steps, and without: the difference is what [stepsPerCall] of them cost.
func BenchmarkOnce(b *testing.B) {
	for _, tool := range []string{"deploy", "steps"} {
		b.Run("store=mem/tool="+tool, func(b *testing.B) { interactions(b, openGate(b, memstore.New()), tool, 1) })
		b.Run("store=bolt/tool="+tool, func(b *testing.B) { interactions(b, openGate(b, openBolt(b)), tool, 1) })
	}
}

func interactions(b *testing.B, g *gate.Gate, tool string, callers int) {
	ctx := context.Background()
	measure(b, callers, func(int64) error { return interact(ctx, g, tool) })
}

// The two requests of an interaction, each on its own.
func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{1, 64} {
		for _, on := range []struct {
			store string
			open  func(b *testing.B) checkpoint.Store
		}{
			{"mem", func(*testing.B) checkpoint.Store { return memstore.New() }},
			{"bolt", func(b *testing.B) checkpoint.Store { return openBolt(b) }},
		} {
			b.Run(fmt.Sprintf("request=raise/store=%s/callers=%d", on.store, n), func(b *testing.B) {
				g := openGate(b, on.open(b))
				measure(b, n, func(int64) error {
					_, err := raise(b.Context(), g, "deploy")
					return err
				})
			})
			b.Run(fmt.Sprintf("request=answer/store=%s/callers=%d", on.store, n), func(b *testing.B) {
				g := openGate(b, on.open(b))
				calls := make([]gate.Call, b.N)
				together(b, 64, func(i int64) (err error) {
					calls[i], err = raise(b.Context(), g, "deploy")
					return err
				})
				measure(b, n, func(i int64) error { return answer(b.Context(), g, calls[i]) })
			})
		}
	}
}

// measure times b.N operations from that many goroutines: the time by operation, processor time,
// memory, and the time in which half and 99 of 100 operations were done.
func measure(b *testing.B, goroutines int, operation func(i int64) error) {
	b.ReportAllocs()
	times := make([]time.Duration, b.N)
	used := processorTime()
	b.ResetTimer()
	together(b, goroutines, func(i int64) error {
		began := time.Now()
		err := operation(i)
		times[i] = time.Since(began)
		return err
	})
	b.StopTimer()
	b.ReportMetric(float64(processorTime()-used)/float64(b.N), "cpu-ns/op")
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e6, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e6, "p99-ms")
}

// together does b.N operations from that many goroutines.
func together(b *testing.B, goroutines int, operation func(i int64) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				if err := operation(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func newID(b *testing.B) checkpoint.ID {
	id, err := checkpoint.NewID(time.Now(), rand.Reader)
	if err != nil {
		b.Error(err)
	}
	return id
}
