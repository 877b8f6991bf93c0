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

// decided has every field set that goes together.
func decided() *checkpoint.Decision {
	return &checkpoint.Decision{
		ID: checkpoint.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Revision: 3, Scope: checkpoint.Hash{1}, Start: checkpoint.Hash{2},
		Due:  time.UnixMilli(1764586400000).UTC(),
		Tool: "deploy", ToolRevision: "2", Key: "k", ToolName: "<deploy>", Title: "Deploy & go",
		Remember:  checkpoint.Remember{Arguments: []string{"region", "service"}, Seconds: 86400},
		Arguments: json.RawMessage(`{"service":"<api>"}`),
		Kind:      "reject_always", OptionID: "never", Option: "Always reject", Time: time.UnixMilli(1764500000000).UTC(),
		By: "ann@example.com", Face: "inbox", Elsewhere: true, Interaction: checkpoint.ID{9}, Round: 2,
	}
}

func mustEncode(t testing.TB, d *checkpoint.Decision) checkpoint.Record {
	t.Helper()
	record, err := checkpoint.EncodeDecision(d)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// R19: a decision is read back as it was written, and a store sees what it sweeps and finds by.
func TestDecisionRoundTrip(t *testing.T) {
	anything := decided()
	anything.Remember, anything.Arguments = checkpoint.Remember{AnyArguments: true, Seconds: 1}, nil
	exact := decided()
	exact.Remember.Arguments, exact.Kind, exact.By, exact.Elsewhere = nil, "allow_always", "", false
	for name, d := range map[string]*checkpoint.Decision{"everything": decided(), "any arguments": anything, "little": exact} {
		record := mustEncode(t, d)
		if record.Status != checkpoint.Remembered || record.Start != d.Start || record.Scope != d.Scope || !record.Due.Equal(d.Due) {
			t.Errorf("%s: plain fields %+v", name, record)
		}
		back, err := checkpoint.DecodeDecision(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
}

// A decision of format version 1 stays readable for ever. The file was written by the release that
// introduced the version.
func TestKeptDecision(t *testing.T) {
	path := filepath.Join("testdata", "decision-v1.json")
	kept, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && *update {
		kept = mustEncode(t, decided()).Data
		err = os.WriteFile(path, kept, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	record := mustEncode(t, decided())
	record.Data = bytes.TrimSpace(kept)
	d, err := checkpoint.DecodeDecision(record)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decided(), d); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

// R19, R37: what is no decision, or says other than the plain fields beside it, does not answer
// for anybody.
func TestDecodeDecisionRefuses(t *testing.T) {
	replace := func(old, new string) func(*checkpoint.Record) {
		return func(r *checkpoint.Record) { r.Data = bytes.Replace(r.Data, []byte(old), []byte(new), 1) }
	}
	for name, spoil := range map[string]func(*checkpoint.Record){
		"an interaction":     func(r *checkpoint.Record) { r.Status = checkpoint.Open },
		"claimed":            func(r *checkpoint.Record) { r.Claim.Epoch = 1 },
		"another id":         func(r *checkpoint.Record) { r.ID[0]++ },
		"another revision":   func(r *checkpoint.Record) { r.Revision++ },
		"another scope":      func(r *checkpoint.Record) { r.Scope[0]++ },
		"another start":      func(r *checkpoint.Record) { r.Start[0]++ },
		"a later expiry":     func(r *checkpoint.Record) { r.Due = r.Due.Add(time.Hour) },
		"empty":              func(r *checkpoint.Record) { r.Data = nil },
		"something after it": func(r *checkpoint.Record) { r.Data = append(r.Data, " {}"...) },
		"a newer version":    replace(`"v":1`, `"v":2`),
		"no version":         replace(`"v":1,`, ``),
		"an unknown field":   replace(`"v":1`, `"v":1,"x":1`),
		"another kind":       replace(`"reject_always"`, `"allow_once"`),
		"no kind":            replace(`"kind":"reject_always",`, ``),
		"no option":          replace(`"optionId":"never",`, ``),
		"no tool":            replace(`"tool":"deploy",`, ``),
		"no tool name":       replace(`"toolName":"<deploy>",`, ``),
		"no arguments":       replace(`"arguments":{"service":"<api>"},`, ``),
		"widened twice":      replace(`"seconds"`, `"anyArguments":true,"seconds"`),
	} {
		record := mustEncode(t, decided())
		was := record
		spoil(&record)
		if cmp.Equal(was, record) {
			t.Errorf("%s: nothing was spoiled", name)
		}
		var e *checkpoint.DecodeError
		if _, err := checkpoint.DecodeDecision(record); !errors.As(err, &e) || e.ID != record.ID || e.Reason == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A decision is no interaction, and is not read as one.
func TestDecisionIsNoInteraction(t *testing.T) {
	if in, err := checkpoint.Decode(mustEncode(t, decided())); err == nil {
		t.Errorf("read as %+v", in)
	}
	in := sample()
	in.Status = checkpoint.Remembered
	record, err := checkpoint.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Decode(record); err == nil {
		t.Error("an interaction in a decision's state was read")
	}
	record.Claim = checkpoint.Claim{}
	if _, err := checkpoint.DecodeDecision(record); err == nil {
		t.Error("an interaction was read as a decision")
	}
}

// Encoding refuses what it could not read back.
func TestEncodeDecisionRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*checkpoint.Decision){
		"no start":        func(d *checkpoint.Decision) { d.Start = checkpoint.Hash{} },
		"no expiry":       func(d *checkpoint.Decision) { d.Due = time.Time{} },
		"a once kind":     func(d *checkpoint.Decision) { d.Kind = "allow_once" },
		"no tool":         func(d *checkpoint.Decision) { d.Tool = "" },
		"any and some":    func(d *checkpoint.Decision) { d.Remember.AnyArguments = true },
		"nothing to hold": func(d *checkpoint.Decision) { d.Arguments = nil },
		"no JSON":         func(d *checkpoint.Decision) { d.Arguments = json.RawMessage(`{`) },
	} {
		d := decided()
		spoil(d)
		if _, err := checkpoint.EncodeDecision(d); err == nil {
			t.Errorf("%s: was written", name)
		}
	}
}

// R19: what a question said of remembering, and that a decision answered it, are in the record.
func TestRememberedRound(t *testing.T) {
	in := sample()
	in.Rounds[0].Questions[0].Remember = &checkpoint.Remember{AnyArguments: true, Seconds: 60}
	in.Rounds[0].Answer.Remembered = []checkpoint.ID{{7}}
	record, err := checkpoint.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	back, err := checkpoint.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, back); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	in.Rounds[0].Answer.Remembered = []checkpoint.ID{{7}, {8}}
	if record, err = checkpoint.Encode(in); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Decode(record); err == nil {
		t.Error("two decisions on one question")
	}
}

// No bytes in a record make DecodeDecision do more than return an error, and what it reads is
// written back the same.
func FuzzDecodeDecision(f *testing.F) {
	record := mustEncode(f, decided())
	f.Add([]byte(record.Data))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := record
		r.Data = data
		d, err := checkpoint.DecodeDecision(r)
		if err != nil {
			return
		}
		again, err := checkpoint.EncodeDecision(d)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if _, err := checkpoint.DecodeDecision(again); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
	})
}
