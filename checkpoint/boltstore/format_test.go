package boltstore_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
)

var update = flag.Bool("update", false, "write the kept file of the present format version")

// kept is what the file of format version 1 in testdata holds.
var kept = struct {
	ledger  checkpoint.Ledger
	floor   time.Time
	records []checkpoint.Record
}{
	ledger:  checkpoint.Ledger{ID: [16]byte{0xa, 0xb}, Meta: []byte("meta of the gate")},
	floor:   time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
	records: []checkpoint.Record{keptRecord(1), keptRecord(2), keptRecord(3)},
}

func keptRecord(n int) checkpoint.Record {
	r := fullRecord()
	r.ID, r.Revision, r.Start = idOf(n), 1, checkpoint.Hash{byte(n)}
	switch n {
	case 2:
		r.Status, r.Due, r.Start, r.Claim = checkpoint.Finished, time.Time{}, checkpoint.Hash{}, checkpoint.Claim{}
	case 3:
		r.Data = make([]byte, 70<<10)
	}
	return r
}

func TestFormatVersion1(t *testing.T) {
	const name = "testdata/v1.db"
	if *update {
		writeKept(t, name)
	}
	s := open(t, copyFile(t, name), nil)
	ledger, m, err := s.Join(t.Context(), checkpoint.Ledger{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept.ledger, ledger); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if now := m.Now(time.Time{}); !now.Equal(kept.floor) {
		t.Errorf("now %v, want %v", now, kept.floor)
	}
	page, err := s.List(t.Context(), checkpoint.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept.records, page.Records, dataAsString); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if r, err := s.Find(t.Context(), checkpoint.Hash{3}); err != nil || r.ID != idOf(3) {
		t.Errorf("find: record %s, error %v", r.ID, err)
	}
	due, err := s.List(t.Context(), checkpoint.Query{DueBefore: kept.records[0].Due})
	if err != nil || len(due.Records) != 2 {
		t.Errorf("list by due: %d records, error %v, want 2", len(due.Records), err)
	}
}

// writeKept writes the file of the present format, as small as it can be.
func writeKept(t *testing.T, name string) {
	t.Helper()
	path := newPath(t)
	s := open(t, path, nil)
	if _, _, err := s.Join(t.Context(), kept.ledger); err != nil {
		t.Fatal(err)
	}
	b := put(kept.records...)
	b.Time = kept.floor
	commit(t, s, b)
	shut(t, s)
	from, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	to, err := bolt.Open(name, 0o644, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bolt.Compact(to, from, 0), from.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}
