package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

// R38: an entry of format version 1 stays readable, and what is written today is that form.
func TestKeptAuditEntry(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("testdata", "audit-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkpoint.DecodeEntry(kept)
	if err != nil {
		t.Fatal(err)
	}
	want := &checkpoint.Entry{
		Time: time.Date(2026, 11, 30, 12, 0, 0, 123e6, time.UTC), Interaction: checkpoint.ID{1, 2, 3}, Action: checkpoint.ActionAnswered,
		Status: checkpoint.Running, Round: 2, Attempt: 1, Tool: "deploy", Scope: checkpoint.Hash{9}, By: "ann@example.com", Face: "inbox",
		Code: "failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	data, err := checkpoint.EncodeEntry(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(data)+"\n"); diff != "" {
		t.Errorf("encoded (-kept +got):\n%s", diff)
	}
}

// R38: what is not an entry is refused and never half read.
func TestAuditEntryRefusals(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "not JSON": "{", "null": "null", "no version": `{"status":"open"}`, "newer version": `{"v":2,"status":"open"}`,
		"unknown member": `{"v":1,"status":"open","token":"x"}`, "unknown status": `{"v":1,"status":"sleeping"}`,
		"something after": `{"v":1,"status":"open"} {}`,
	} {
		if e, err := checkpoint.DecodeEntry([]byte(data)); err == nil || e != nil {
			t.Errorf("%s: read as %+v, %v", name, e, err)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	kept, err := os.ReadFile(filepath.Join("testdata", "audit-v1.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kept)
	f.Add([]byte(`{"v":1,"status":"open"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := checkpoint.DecodeEntry(data)
		if err != nil {
			return
		}
		again, err := checkpoint.EncodeEntry(e)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		twice, err := checkpoint.DecodeEntry(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, twice); diff != "" {
			t.Errorf("changed by writing (-first +again):\n%s", diff)
		}
	})
}
