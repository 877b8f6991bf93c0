package checkpointtest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// breakage names the variable that says which broken store TestBroken runs.
const breakage = "CHECKPOINTTEST_BREAKAGE"

// A broken store is a good one of which one method does something else.
type broken struct {
	*memstore.Store
	mu     sync.Mutex
	commit func(s *memstore.Store, b *checkpoint.Batch) error
	load   func(r checkpoint.Record) checkpoint.Record
	list   func(p checkpoint.Page) checkpoint.Page
}

func (s *broken) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if s.commit == nil || ctx.Err() != nil {
		return s.Store.Commit(ctx, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(s.Store, b)
}

func (s *broken) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	r, err := s.Store.Load(ctx, id)
	if err == nil && s.load != nil {
		r = s.load(r)
	}
	return r, err
}

func (s *broken) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	p, err := s.Store.List(ctx, q)
	if err == nil && s.list != nil {
		p = s.list(p)
	}
	return p, err
}

// each commits the batch put by put, and forgets what went before where one fails.
func each(s *memstore.Store, b *checkpoint.Batch) error {
	for _, p := range b.Puts {
		one := &checkpoint.Batch{Time: b.Time, Puts: []checkpoint.Put{p}}
		if err := s.Commit(context.Background(), one); err != nil {
			return err
		}
	}
	return s.Commit(context.Background(), &checkpoint.Batch{Time: b.Time, Deletes: b.Deletes})
}

// withCurrent commits the batch after changing each put by what is stored.
func withCurrent(
	change func(p *checkpoint.Put, stored checkpoint.Record),
) func(*memstore.Store, *checkpoint.Batch) error {
	return func(s *memstore.Store, b *checkpoint.Batch) error {
		mine := *b
		mine.Puts = slices.Clone(b.Puts)
		for i := range mine.Puts {
			stored, _ := s.Load(context.Background(), mine.Puts[i].Record.ID)
			change(&mine.Puts[i], stored)
		}
		return s.Commit(context.Background(), &mine)
	}
}

var breakages = map[string]func() checkpoint.Store{
	"batch not whole": func() checkpoint.Store { return &broken{Store: memstore.New(), commit: each} },
	"epoch ignored": func() checkpoint.Store {
		return &broken{Store: memstore.New(),
			commit: withCurrent(func(p *checkpoint.Put, stored checkpoint.Record) { p.Epoch = stored.Claim.Epoch })}
	},
	"start hash lost": func() checkpoint.Store {
		return &broken{Store: memstore.New(),
			commit: withCurrent(func(p *checkpoint.Put, _ checkpoint.Record) { p.Record.Start = checkpoint.Hash{} })}
	},
	"lazy batch lost": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: func(s *memstore.Store, b *checkpoint.Batch) error {
			if b.Lazy {
				return nil
			}
			return s.Commit(context.Background(), b)
		}}
	},
	"data shared": func() checkpoint.Store {
		shared := make(map[string][]byte)
		var mu sync.Mutex
		return &broken{Store: memstore.New(), load: func(r checkpoint.Record) checkpoint.Record {
			mu.Lock()
			defer mu.Unlock()
			key := r.ID.String() + string(rune(r.Revision))
			if shared[key] == nil {
				shared[key] = bytes.Clone(r.Data)
			}
			r.Data = shared[key]
			return r
		}}
	},
	"last of a page lost": func() checkpoint.Store {
		return &broken{Store: memstore.New(), list: func(p checkpoint.Page) checkpoint.Page {
			if p.Next != "" {
				p.Records = p.Records[:len(p.Records)-1]
			}
			return p
		}}
	},
}

// TestBroken is what TestNoticesBrokenStores starts.
func TestBroken(t *testing.T) {
	open := breakages[os.Getenv(breakage)]
	if open == nil {
		t.Skip("started by TestNoticesBrokenStores")
	}
	checkpointtest.Run(t, checkpointtest.Harness{Open: func(testing.TB) checkpoint.Store { return open() }})
}

func TestNoticesBrokenStores(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range breakages {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestBroken$", "-test.skip=/model",
				"-test.failfast")
			cmd.Env = append(os.Environ(), breakage+"="+name)
			out, err := cmd.CombinedOutput()
			if _, failed := err.(*exec.ExitError); !failed {
				t.Fatalf("the contract did not notice it: error %v\n%s", err, out)
			}
			if !bytes.Contains(out, []byte("promise: ")) {
				t.Errorf("no promise was printed:\n%s", out)
			}
		})
	}
}
