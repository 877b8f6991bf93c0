package bench_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// A raw ledger is the floor of a file: bbolt alone writes the bytes and index entries that parley
// needs for an interaction, of the sizes that parley has, under ids of the same form. Writers wait
// for two commits, which are grouped as etcd and others do it: while one transaction is synced, what
// comes is gathered for the next. What nobody waits for, the finish marks, goes into that as well.
type raw struct {
	db    *bolt.DB
	queue chan *rawWrite
	sizes []rawSize // of raise, answer and finish
	scope [32]byte
	lazy  []*rawWrite // under mu
	mu    sync.Mutex
	seq   uint64 // of the audit entries
}

// A rawSize is what one transition writes, in bytes.
type rawSize struct{ row, audit int }

// A rawWrite is one transition of one interaction.
type rawWrite struct {
	id   checkpoint.ID
	step int
	done chan error
}

const raised, answered, finished = 0, 1, 2

// rowHead is what a row of boltstore has beside its data, with an owner of some length.
const rowHead = 160

// sizesOf runs one interaction and looks at what it commits.
func sizesOf(b *testing.B) []rawSize {
	store := &recording{Store: memstore.New()}
	if err := interact(b.Context(), openGate(b, store), "deploy"); err != nil {
		b.Fatal(err)
	}
	if len(store.sizes) != 3 {
		b.Fatalf("an interaction has %d commits, want 3", len(store.sizes))
	}
	return store.sizes
}

type recording struct {
	checkpoint.Store
	sizes []rawSize
}

func (r *recording) Commit(ctx context.Context, batch *checkpoint.Batch) error {
	r.sizes = append(r.sizes, rawSize{row: rowHead + len(batch.Puts[0].Record.Data), audit: 4 + len(batch.Audit[0])})
	return r.Store.Commit(ctx, batch)
}

var rawBuckets = []string{"records", "live", "ended", "due", "audit", "usage", "meta"}

func openRaw(b *testing.B, path string) *raw {
	db, err := bolt.Open(path, 0o600, rawOptions())
	if err != nil {
		b.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range rawBuckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	r := &raw{db: db, queue: make(chan *rawWrite, 512), sizes: sizesOf(b)}
	var stopped sync.WaitGroup
	stopped.Go(r.serve)
	b.Cleanup(func() {
		close(r.queue)
		stopped.Wait()
		r.db.Close()
	})
	return r
}

// rawOptions are those of boltstore.
func rawOptions() *bolt.Options {
	return &bolt.Options{FreelistType: bolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: 1 << 30}
}

func (r *raw) serve() {
	for w := range r.queue {
		group := []*rawWrite{w}
	gather:
		for len(group) < 512 {
			select {
			case w, ok := <-r.queue:
				if !ok {
					break gather
				}
				group = append(group, w)
			default:
				break gather
			}
		}
		err := r.commit(group)
		for _, w := range group {
			w.done <- err
		}
	}
}

func (r *raw) commit(group []*rawWrite) error {
	return r.db.Update(func(tx *bolt.Tx) error {
		r.mu.Lock()
		lazy := r.lazy
		r.lazy = nil
		r.mu.Unlock()
		for _, w := range append(lazy, group...) {
			if err := r.put(tx, w); err != nil {
				return err
			}
		}
		return r.total(tx)
	})
}

// put writes one transition: the row over the one before, the indexes that change, an audit entry.
func (r *raw) put(tx *bolt.Tx, w *rawWrite) error {
	place := append(bytes.Clone(r.scope[:]), w.id[:]...)
	due := func(step int) []byte {
		return append(binary.BigEndian.AppendUint64(nil, uint64(step+1)<<40), w.id[:]...)
	}
	bucket := func(name string) *bolt.Bucket { return tx.Bucket([]byte(name)) }
	r.seq++
	audit := bucket("audit")
	audit.FillPercent = 1
	var errs [8]error
	errs[0] = bucket("records").Put(w.id[:], make([]byte, r.sizes[w.step].row))
	errs[1] = audit.Put(binary.BigEndian.AppendUint64(nil, r.seq), make([]byte, r.sizes[w.step].audit))
	switch w.step {
	case raised:
		errs[2] = bucket("live").Put(place, nil)
		errs[3] = bucket("due").Put(due(raised), nil)
	case answered: // when a sweep is to look at the claim is another time than the deadline
		errs[2] = bucket("due").Delete(due(raised))
		errs[3] = bucket("due").Put(due(answered), nil)
	case finished:
		errs[2] = bucket("live").Delete(place)
		errs[3] = bucket("ended").Put(place, nil)
		errs[4] = bucket("due").Delete(due(answered))
		errs[5] = bucket("due").Put(due(finished), nil)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// total writes what there is once in a transaction: usage of the scope and of all, the time, the
// number of the last audit entry.
func (r *raw) total(tx *bolt.Tx) error {
	usage, meta := tx.Bucket([]byte("usage")), tx.Bucket([]byte("meta"))
	if err := usage.Put(r.scope[:], make([]byte, 20)); err != nil {
		return err
	}
	if err := usage.Put(bytes.Repeat([]byte{1}, 32), make([]byte, 20)); err != nil {
		return err
	}
	if err := meta.Put([]byte("floor"), make([]byte, 12)); err != nil {
		return err
	}
	return meta.Put([]byte("audit"), make([]byte, 12))
}

func (r *raw) wait(id checkpoint.ID, step int) error {
	w := &rawWrite{id: id, step: step, done: make(chan error, 1)}
	r.queue <- w
	return <-w.done
}

func (r *raw) interact(id checkpoint.ID) error {
	for _, step := range []int{raised, answered} {
		if err := r.wait(id, step); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lazy = append(r.lazy, &rawWrite{id: id, step: finished})
	return nil
}

func rawInteractions(b *testing.B, callers int) {
	r := openRaw(b, filepath.Join(b.TempDir(), "db"))
	measure(b, callers, func(int64) error { return r.interact(newID(b)) })
}

// fourSyncs is the floor of the disk: four times 4 KiB over a written file, each synced, which is
// what two bbolt commits do.
func fourSyncs(b *testing.B) {
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
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	next := int64(0)
	measure(b, 1, func(int64) error {
		for range 4 {
			next++
			if _, err := f.WriteAt(page, next%64*4096); err != nil {
				return err
			}
			if err := datasync(f); err != nil {
				return err
			}
		}
		return nil
	})
}
