package boltstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

// An order is what a machine with a store is told to do: one of these.
type order struct {
	Open    bool
	NoSync  bool              // with Open: commits do not wait for the disk
	Commit  *checkpoint.Batch `json:",omitempty"`
	List    *checkpoint.Query `json:",omitempty"`
	Check   bool
	Close   bool
	Limit   bool // files to hardly more than the store's file has now
	Unlimit bool
}

// A reply is what became of it.
type reply struct {
	Error       string        // empty: none
	Errno       syscall.Errno // what the system said, where it did
	Unavailable bool          // whether the error matches checkpoint.ErrUnavailable
	Ledger      [16]byte      // of Open
	Now         time.Time     // of Open: the store's time
	Page        checkpoint.Page
}

// serveStore is the machine's side.
func serveStore(dir string) (func(json.RawMessage) any, error) {
	m := &machine{dir: dir}
	return func(body json.RawMessage) any {
		var o order
		if err := json.Unmarshal(body, &o); err != nil {
			return reply{Error: err.Error()}
		}
		var r reply
		if err := m.do(o, &r); err != nil {
			r.Error = err.Error()
			r.Unavailable = errors.Is(err, checkpoint.ErrUnavailable)
			errors.As(err, &r.Errno)
		}
		return r
	}, nil
}

type machine struct {
	dir   string
	store *boltstore.Store
}

func (m *machine) do(o order, r *reply) (err error) {
	ctx := context.Background()
	switch {
	case o.Open:
		return m.open(o, r)
	case o.Commit != nil:
		return m.store.Commit(ctx, o.Commit)
	case o.List != nil:
		r.Page, err = m.store.List(ctx, *o.List)
		return err
	case o.Check:
		return m.store.Check(ctx)
	case o.Close:
		return m.store.Close()
	case o.Limit:
		return limitFiles(m.file())
	}
	return limitFiles("")
}

func (m *machine) file() string { return filepath.Join(m.dir, "ledger.db") }

func (m *machine) open(o order, r *reply) error {
	var err error
	if m.store, err = boltstore.Open(m.file(), nil); err != nil {
		return err
	}
	if o.NoSync {
		m.store.SkipSync()
	}
	proposed := checkpoint.Ledger{}
	now := time.Now()
	proposed.ID[0], proposed.ID[1] = byte(now.UnixNano()), byte(now.UnixNano()>>8)
	ledger, member, err := m.store.Join(context.Background(), proposed)
	if err != nil {
		return err
	}
	r.Ledger, r.Now = ledger.ID, member.Now(time.Time{})
	return nil
}
