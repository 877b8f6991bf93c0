package checkpointtest_test

import (
	"bytes"
	"context"
	"maps"
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
	rows   func(id checkpoint.ID, rows []checkpoint.Row) []checkpoint.Row
	audit  func(after uint64, page []checkpoint.AuditEntry) []checkpoint.AuditEntry
	usage  func(scope checkpoint.Hash, u checkpoint.Usage) checkpoint.Usage
}

func (s *broken) Rows(ctx context.Context, id checkpoint.ID, from string, limit int) ([]checkpoint.Row, error) {
	rows, err := s.Store.Rows(ctx, id, from, limit)
	if err == nil && s.rows != nil {
		rows = s.rows(id, rows)
	}
	return rows, err
}

func (s *broken) Audit(ctx context.Context, after uint64, limit int) ([]checkpoint.AuditEntry, error) {
	page, err := s.Store.Audit(ctx, after, limit)
	if err == nil && s.audit != nil {
		page = s.audit(after, page)
	}
	return page, err
}

func (s *broken) Usage(ctx context.Context, scope checkpoint.Hash) (checkpoint.Usage, error) {
	u, err := s.Store.Usage(ctx, scope)
	if err == nil && s.usage != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		u = s.usage(scope, u)
	}
	return u, err
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
	"scope ignored": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: withCurrent(func(p *checkpoint.Put, stored checkpoint.Record) {
			if stored.Revision > 0 {
				p.Record.Scope = stored.Scope
			}
		})}
	},
	"row kept after its record is gone": rowsKept,
	"epoch of a row ignored": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(s *memstore.Store, b *checkpoint.Batch) {
			b.Rows = slices.Clone(b.Rows)
			for i := range b.Rows {
				stored, _ := s.Load(context.Background(), b.Rows[i].Row.ID)
				for _, p := range b.Puts {
					if p.Record.ID == stored.ID {
						stored = p.Record
					}
				}
				b.Rows[i].Epoch = stored.Claim.Epoch
			}
		})}
	},
	"row without a record left out": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(s *memstore.Store, b *checkpoint.Batch) {
			b.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(p checkpoint.RowPut) bool {
				_, err := s.Load(context.Background(), p.Row.ID)
				return err != nil && len(b.Puts) == 0
			})
		})}
	},
	"lazy rows invisible": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(_ *memstore.Store, b *checkpoint.Batch) {
			if b.Lazy {
				b.Rows = nil
			}
		})}
	},
	"rows in no order": func() checkpoint.Store {
		return &broken{Store: memstore.New(), rows: func(_ checkpoint.ID, rows []checkpoint.Row) []checkpoint.Row {
			slices.Reverse(rows)
			return rows
		}}
	},
	"audit out of order": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(_ *memstore.Store, b *checkpoint.Batch) {
			b.Audit = slices.Clone(b.Audit)
			slices.Reverse(b.Audit)
		})}
	},
	"audit of a conflict": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: func(s *memstore.Store, b *checkpoint.Batch) error {
			if err := b.Validate(); err != nil {
				return err
			}
			mine := *b
			mine.Audit = nil
			s.Commit(context.Background(), &checkpoint.Batch{Audit: b.Audit})
			return s.Commit(context.Background(), &mine)
		}}
	},
	"trimmed too much": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(_ *memstore.Store, b *checkpoint.Batch) {
			if b.TrimAudit > 0 {
				b.TrimAudit++
			}
		})}
	},
	"trimmed in one step": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: func(s *memstore.Store, b *checkpoint.Batch) error {
			err := s.Commit(context.Background(), b)
			if err == nil && b.TrimAudit > 0 {
				err = s.Commit(context.Background(), &checkpoint.Batch{TrimAudit: b.TrimAudit})
			}
			return err
		}}
	},
	"audit numbers come again": func() checkpoint.Store {
		return &broken{Store: memstore.New(),
			audit: func(after uint64, page []checkpoint.AuditEntry) []checkpoint.AuditEntry {
				for i := range page {
					page[i].Seq = after + uint64(i) + 1
				}
				return page
			}}
	},
	"usage not counted down": func() checkpoint.Store {
		most := make(map[checkpoint.Hash]checkpoint.Usage)
		return &broken{Store: memstore.New(), usage: func(scope checkpoint.Hash, u checkpoint.Usage) checkpoint.Usage {
			most[scope] = checkpoint.Usage{Active: max(u.Active, most[scope].Active), Bytes: max(u.Bytes, most[scope].Bytes)}
			return most[scope]
		}}
	},
	"usage of one scope only": func() checkpoint.Store {
		return &broken{Store: memstore.New(), usage: func(scope checkpoint.Hash, u checkpoint.Usage) checkpoint.Usage {
			if scope.IsZero() {
				return checkpoint.Usage{}
			}
			return u
		}}
	},
	"meta lost": func() checkpoint.Store {
		return &broken{Store: memstore.New(), commit: changed(func(_ *memstore.Store, b *checkpoint.Batch) { b.Meta = nil })}
	},
}

// changed commits the batch after a change to a copy of it.
func changed(change func(s *memstore.Store, b *checkpoint.Batch)) func(*memstore.Store, *checkpoint.Batch) error {
	return func(s *memstore.Store, b *checkpoint.Batch) error {
		if err := b.Validate(); err != nil {
			return err
		}
		mine := *b
		change(s, &mine)
		return s.Commit(context.Background(), &mine)
	}
}

// rowsKept returns a store in which the rows of a deleted record come back.
func rowsKept() checkpoint.Store {
	kept := make(map[checkpoint.ID][]checkpoint.Row)
	s := &broken{Store: memstore.New()}
	s.commit = func(store *memstore.Store, b *checkpoint.Batch) error {
		if err := b.Validate(); err != nil {
			return err
		}
		rows := make(map[checkpoint.ID][]checkpoint.Row)
		for _, d := range b.Deletes {
			rows[d.ID], _ = store.Rows(context.Background(), d.ID, "", 1000)
		}
		err := store.Commit(context.Background(), b)
		if err == nil {
			maps.Copy(kept, rows)
		}
		return err
	}
	s.rows = func(id checkpoint.ID, rows []checkpoint.Row) []checkpoint.Row {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(rows) == 0 {
			return kept[id]
		}
		return rows
	}
	return s
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
