package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

// going has every field set that goes together while a run goes on.
func going() *checkpoint.Run {
	return &checkpoint.Run{
		ID: checkpoint.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Revision: 3, Status: checkpoint.RunLive, Scope: checkpoint.Hash{1},
		Created: time.UnixMilli(1764500000000).UTC(), Updated: time.UnixMilli(1764500001000).UTC(), Due: time.UnixMilli(1764586400000).UTC(),
		Claim: checkpoint.Claim{Owner: "o", Epoch: 2, Attempt: 1}, Face: "agent:release", Notes: json.RawMessage(`{"plan":"<1>"}`),
		Blob: &checkpoint.Blob{Size: 5, Digest: checkpoint.Hash{2}}, Deadline: time.UnixMilli(1764500600000).UTC(), Endless: true,
	}
}

// keyed has a key, too.
func keyed() *checkpoint.Run {
	r := going()
	r.Start = checkpoint.Hash{3}
	return r
}

func over() *checkpoint.Run {
	r := going()
	r.Status, r.Blob, r.Claim.Owner = checkpoint.RunEnded, nil, ""
	r.Ending = &checkpoint.Ending{Code: "failed", Message: "m", Result: json.RawMessage(`"last"`), Time: r.Updated}
	return r
}

func mustEncodeRun(t testing.TB, r *checkpoint.Run) checkpoint.Record {
	t.Helper()
	record, err := checkpoint.EncodeRun(r)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// R37: a run is read back as it was written, and not where the plain fields beside it say otherwise.
func TestRunRoundTrip(t *testing.T) {
	for name, r := range map[string]*checkpoint.Run{"going": going(), "keyed": keyed(), "over": over()} {
		record := mustEncodeRun(t, r)
		back, err := checkpoint.DecodeRun(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
	for name, change := range map[string]func(r *checkpoint.Record){
		"id": func(r *checkpoint.Record) { r.ID[0]++ }, "revision": func(r *checkpoint.Record) { r.Revision++ },
		"status": func(r *checkpoint.Record) { r.Status = checkpoint.RunEnded }, "scope": func(r *checkpoint.Record) { r.Scope[0]++ },
		"due":            func(r *checkpoint.Record) { r.Due = r.Due.Add(time.Second) },
		"claim":          func(r *checkpoint.Record) { r.Claim.Epoch++ },
		"an interaction": func(r *checkpoint.Record) { r.Status = checkpoint.Open },
		"a start hash":   func(r *checkpoint.Record) { r.Start[0]++ },
		"version":        func(r *checkpoint.Record) { r.Data = bytes.Replace(r.Data, []byte(`"v":1`), []byte(`"v":2`), 1) },
		"unknown member": func(r *checkpoint.Record) { r.Data = bytes.Replace(r.Data, []byte(`"v":1`), []byte(`"v":1,"x":1`), 1) },
		"data after it":  func(r *checkpoint.Record) { r.Data = append(bytes.Clone(r.Data), '1') },
		"no data":        func(r *checkpoint.Record) { r.Data = nil },
	} {
		record := mustEncodeRun(t, going())
		change(&record)
		var e *checkpoint.DecodeError
		if _, err := checkpoint.DecodeRun(record); !errors.As(err, &e) || e.ID != record.ID {
			t.Errorf("%s: have %v, want a DecodeError", name, err)
		}
	}
	for name, change := range map[string]func(r *checkpoint.Run){
		"ended without an end": func(r *checkpoint.Run) { r.Status = checkpoint.RunEnded },
		"an end while it goes": func(r *checkpoint.Run) { r.Ending = &checkpoint.Ending{} },
		"another state":        func(r *checkpoint.Run) { r.Status = checkpoint.Started },
		"negative blob":        func(r *checkpoint.Run) { r.Blob.Size = -1 },
		"ended with its key": func(r *checkpoint.Run) {
			*r = *over()
			r.Start = checkpoint.Hash{3}
		},
	} {
		r := going()
		change(r)
		if _, err := checkpoint.EncodeRun(r); err == nil {
			t.Errorf("%s: was written", name)
		}
	}
	if _, err := checkpoint.Decode(mustEncodeRun(t, going())); err == nil {
		t.Error("a run was read as an interaction")
	}
}

// A run of format version 1 stays readable for ever. The files were written by the release that
// introduced the version.
func TestKeptRun(t *testing.T) {
	for name, r := range map[string]*checkpoint.Run{"run-v1.json": going(), "run-v1-keyed.json": keyed(), "run-v1-ended.json": over()} {
		path := filepath.Join("testdata", name)
		kept, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && *update {
			kept = mustEncodeRun(t, r).Data
			err = os.WriteFile(path, kept, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		record := mustEncodeRun(t, r)
		record.Data = bytes.TrimSpace(kept)
		back, err := checkpoint.DecodeRun(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
}

func FuzzDecodeRun(f *testing.F) {
	record := mustEncodeRun(f, going())
	f.Add([]byte(record.Data))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := record
		r.Data = data
		run, err := checkpoint.DecodeRun(r)
		if err != nil {
			return
		}
		again, err := checkpoint.EncodeRun(run)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if _, err := checkpoint.DecodeRun(again); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
	})
}
