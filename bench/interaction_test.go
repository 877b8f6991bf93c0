package bench_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	bolt "go.etcd.io/bbolt"

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

var callers = []int{1, 8, 64, 256}

// One operation is a whole interaction: a question is raised, answered by its caller, and carried out.
func BenchmarkInteraction(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("store=mem/callers=%d", n), func(b *testing.B) { interactions(b, memstore.New(), n) })
		b.Run(fmt.Sprintf("store=bolt/callers=%d", n), func(b *testing.B) {
			store, err := boltstore.Open(filepath.Join(b.TempDir(), "db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			interactions(b, store, n)
		})
	}
}

func interactions(b *testing.B, store checkpoint.Store, callers int) {
	ctx := context.Background()
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: []*gate.Tool{gate.NewTool("deploy", deploy, nil)}, Keys: [][]byte{gate.NewKey()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(ctx)
	b.ReportAllocs()
	b.ResetTimer()
	together(b, callers, func() error {
		call := gate.Call{
			Tool: "deploy", Arguments: json.RawMessage(`{"service":"api"}`), Scope: "ann", Session: "s",
			Facilities: []interrupt.Facility{interrupt.FacilityPermission},
		}
		outcome, err := g.Invoke(ctx, call)
		if err != nil {
			return err
		}
		call.Token = outcome.Prompt.Token
		call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: json.RawMessage(`{"optionId":"allow_once"}`)}
		_, err = g.Invoke(ctx, call)
		return err
	})
}

// together does b.N operations from that many goroutines.
func together(b *testing.B, goroutines int, operation func() error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := operation(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// The floor of one caller on a file: two bbolt transactions of the same bytes and indexes, nothing else.
func BenchmarkFloorTwoCommits(b *testing.B) {
	db, err := bolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, &bolt.Options{
		FreelistType: bolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: 1 << 30,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	sizes := []int{1250, 1600} // what an open and a running interaction of this benchmark take
	for i := range b.N {
		key := binary.BigEndian.AppendUint64(nil, uint64(i))
		for _, size := range sizes {
			if err := db.Update(func(tx *bolt.Tx) error { return putAll(tx, key, make([]byte, size)) }); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func putAll(tx *bolt.Tx, key, row []byte) error {
	for name, value := range map[string][]byte{"records": row, "live": {}, "due": {}} {
		bucket, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		if err := bucket.Put(key, value); err != nil {
			return err
		}
	}
	return nil
}

// The floor of the disk: four times 4 KiB over a written file, each synced, as a bbolt interaction does.
func BenchmarkFloorFourSyncs(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for i := range 64 {
		if _, err := f.WriteAt(page, int64(i)*4096); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for i := range b.N * 4 {
		if _, err := f.WriteAt(page, int64(i%64)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
