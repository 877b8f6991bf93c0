package boltstore_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

var update = flag.Bool("update", false, "write the kept file of the present format version")

// kept is what the files in testdata hold.
var kept = struct {
	ledger  checkpoint.Ledger
	floor   time.Time
	records []checkpoint.Record
	used    checkpoint.Usage // by the records
	// These are in files from format version 2 on.
	rows     []checkpoint.Row
	audit    []checkpoint.AuditEntry // those that are left
	rowsUsed int64
}{
	ledger:  checkpoint.Ledger{ID: [16]byte{0xa, 0xb}, Meta: []byte("meta of the gate")},
	floor:   time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
	records: []checkpoint.Record{keptRecord(1), keptRecord(2), keptRecord(3)},
	used:    checkpoint.Usage{Active: 2, Bytes: 4 + 4 + 70<<10 + 3*checkpoint.Charge},
	rows: []checkpoint.Row{
		{ID: idOf(1), Name: "large", Data: bytes.Repeat([]byte("L"), 70<<10)},
		{ID: idOf(1), Name: "small", Data: []byte("step")},
		{ID: idOf(1), Name: "\xff", Data: []byte{}},
	},
	audit:    []checkpoint.AuditEntry{{Seq: 2, Data: []byte("second")}, {Seq: 3, Data: []byte("third")}},
	rowsUsed: 70<<10 + 4 + 3*checkpoint.Charge,
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
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("ReadOnly=%t", readOnly), func(t *testing.T) {
			path := copyFile(t, "testdata/v1.db")
			s := open(t, path, &boltstore.Options{ReadOnly: readOnly})
			wantKept(t, s, 0)
			rows, err := s.Rows(t.Context(), idOf(1), "", 1000)
			if err != nil || len(rows) != 0 {
				t.Errorf("rows: %d, error %v, want none", len(rows), err)
			}
			entries, err := s.Audit(t.Context(), 0, 1000)
			if err != nil || len(entries) != 0 {
				t.Errorf("audit: %d, error %v, want none", len(entries), err)
			}
			check(t, s)
			if readOnly {
				return
			}
			// It is one of the present format now, and has what that has.
			gone := &checkpoint.Batch{Deletes: []checkpoint.Delete{{ID: idOf(1), Revision: 1}}, Audit: [][]byte{[]byte("gone")}}
			commit(t, s, gone)
			wantUsage(t, s, checkpoint.Usage{Active: 1, Bytes: 4 + 70<<10 + 2*checkpoint.Charge})
			shut(t, s)
			s = open(t, path, nil)
			wantUsage(t, s, checkpoint.Usage{Active: 1, Bytes: 4 + 70<<10 + 2*checkpoint.Charge})
			if entries, err := s.Audit(t.Context(), 0, 1000); err != nil || len(entries) != 1 {
				t.Errorf("audit: %d, error %v, want one", len(entries), err)
			}
		})
	}
}

func TestFormatVersion2(t *testing.T) {
	const name = "testdata/v2.db"
	if *update {
		writeKept(t, name)
	}
	for _, readOnly := range []bool{false, true} {
		s := open(t, copyFile(t, name), &boltstore.Options{ReadOnly: readOnly})
		wantKept(t, s, kept.rowsUsed)
		rows, err := s.Rows(t.Context(), idOf(1), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept.rows, rows, dataAsString); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		entries, err := s.Audit(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept.audit, entries); diff != "" {
			t.Errorf("audit (-want +got):\n%s", diff)
		}
	}
}

// wantKept fails the test where the store has not what the kept files of all versions hold. The
// first and the third record are of one scope, and its rows use so many bytes.
func wantKept(t *testing.T, s *boltstore.Store, rowsUsed int64) {
	t.Helper()
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
	wantUsage(t, s, checkpoint.Usage{Active: kept.used.Active, Bytes: kept.used.Bytes + rowsUsed})
}

// wantUsage asks for what is used in all, and by the one scope of the kept records.
func wantUsage(t *testing.T, s *boltstore.Store, want checkpoint.Usage) {
	t.Helper()
	for _, scope := range []checkpoint.Hash{{}, {1}} {
		if got, err := s.Usage(t.Context(), scope); err != nil || got != want {
			t.Errorf("usage of scope %x: %+v, error %v, want %+v", scope[:1], got, err, want)
		}
	}
}

func TestFormatIsDescribed(t *testing.T) {
	text := string(read(t, "../../docs/store-format.md"))
	for _, name := range boltstore.TableNames() {
		if !strings.Contains(text, "\n| `"+name+"` | ") {
			t.Errorf("docs/store-format.md has no row for the bucket %s", name)
		}
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
	for _, row := range kept.rows {
		b.Rows = append(b.Rows, checkpoint.RowPut{Row: row, Epoch: kept.records[0].Claim.Epoch})
	}
	b.Audit, b.TrimAudit = [][]byte{[]byte("first"), kept.audit[0].Data, kept.audit[1].Data}, 1
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
