package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
	"github.com/parley-go/parley/internal/powercut"
)

// A diskOrder is for the process that has the disk, a server on it, and a store. It is answered with
// the reason of the error, nothing where there is none.
type diskOrder struct {
	Commit, Load int // the record
}

// serveDisk is that process.
func serveDisk(dir string) (func(json.RawMessage) any, error) {
	if err := errors.Join(os.Setenv("TMPDIR", dir), os.Chmod(dir, 0o755)); err != nil {
		return nil, err
	}
	server, err := pgtest.Start()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := pgstore.Migrate(ctx, server.URL(), nil); err != nil {
		return nil, err
	}
	s, err := pgstore.Open(ctx, server.URL(), &pgstore.Options{Logger: quiet, Lapse: time.Hour})
	if err != nil {
		return nil, err
	}
	return func(body json.RawMessage) any {
		defer runtime.KeepAlive(server) // it ends when nobody has it any more
		var o diskOrder
		err := json.Unmarshal(body, &o)
		switch {
		case err != nil:
		case o.Commit > 0:
			r := record(o.Commit)
			r.Data = make([]byte, 64<<10)
			for i := range r.Data { // what is kept as it is, and not made smaller
				r.Data[i] = byte(i * (i >> 8) * o.Commit)
			}
			err = s.Commit(ctx, puts(r))
		default:
			_, err = s.Load(ctx, idOf(o.Load))
		}
		var e *pgstore.ServerError
		switch {
		case errors.As(err, &e):
			return e.Reason
		case errors.Is(err, checkpoint.ErrNotFound):
			return "not found"
		case err != nil:
			return err.Error()
		}
		return ""
	}, nil
}

// A server whose disk is full says so, loses nothing that was acknowledged, and the store goes on by
// itself when there is room again.
func TestFullDisk(t *testing.T) {
	pgtest.URL(t) // skips where there is no server
	disk := powercut.NewDisk(t, powercut.Ext4, 192<<20)
	if err := os.Chmod(filepath.Dir(t.TempDir()), 0o711); err != nil { // the server is not root's
		t.Fatal(err)
	}
	m := disk.Boot(t)
	do := func(o diskOrder) (reason string) {
		t.Helper()
		if err := m.Call(o, &reason); err != nil {
			t.Fatal(err)
		}
		return reason
	}
	n := 0
	write := func() string { n++; return do(diskOrder{Commit: n}) }
	for range 10 {
		if reason := write(); reason != "" {
			t.Fatal(reason)
		}
	}
	m.Fill()
	reason, last := "", n
	for reason == "" && n < 1000 {
		if reason = write(); reason == "" {
			last = n
		}
	}
	if reason != string(pgstore.Full) {
		t.Errorf("on a full disk: %q, want %q", reason, pgstore.Full)
	}
	m.Free()
	eventually(t, "the store goes on", func() bool { return write() == "" })
	for acknowledged := range last {
		if reason := do(diskOrder{Load: acknowledged + 1}); reason != "" {
			t.Errorf("record %d was acknowledged: %s", acknowledged+1, reason)
		}
	}
}
