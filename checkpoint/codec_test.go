package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

var update = flag.Bool("update", false, "write the kept record of the present format version, where there is none")

// sample has every field set that record-v1.json was written with.
func sample() *checkpoint.Interaction {
	at := func(ms int64) time.Time { return time.UnixMilli(1764500000000 + ms).UTC() }
	hash := func(b byte) (h checkpoint.Hash) {
		for i := range h {
			h[i] = b
		}
		return h
	}
	return &checkpoint.Interaction{
		ID: checkpoint.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Revision: 7, Status: checkpoint.Running,
		Scope: hash(1), Start: hash(2), Created: at(0), Updated: at(1500), Due: at(600000),
		Claim: checkpoint.Claim{Owner: "boot.1", Epoch: 3, Attempt: 2},
		Tool:  "deploy", ToolRevision: "2", Arguments: json.RawMessage(`{"service":"<api> & \u2028"}`),
		Rounds: []checkpoint.Round{{
			Questions: []checkpoint.Question{{
				ID: "0102030405060708090a0b0c.1.1", Type: "tool_permission", Key: "k",
				Body: json.RawMessage(`{"toolName":"<deploy>"}`), Digest: hash(3),
			}},
			State: json.RawMessage(`null`), Digest: hash(4), Asked: at(10), Deadline: at(600000),
			Mint: checkpoint.Mint{Key: "abcd", Count: 1, Face: "mcp", Session: hash(5)},
			Answer: &checkpoint.Answer{
				Payloads: []json.RawMessage{json.RawMessage(`{"action":"accept","optionId":"allow_once"}`)},
				Digest:   hash(6), Time: at(1400),
				By: "ann@example.com", Face: "inbox", Elsewhere: true,
			},
		}, {
			Questions: []checkpoint.Question{{
				ID: "0102030405060708090a0b0c.2.1", Type: "url", Body: json.RawMessage(`{}`), Digest: hash(7),
			}},
			Digest: hash(8), Asked: at(1450), Mint: checkpoint.Mint{Key: "abcd", Session: hash(5)},
			Answer: &checkpoint.Answer{Payloads: []json.RawMessage{json.RawMessage(`{}`)}, Digest: hash(9), Time: at(1460)},
		}},
		Ending: &checkpoint.Ending{Code: "failed", Message: "no", Link: "https://example.com",
			Result: json.RawMessage(`1`), Time: at(1500)},
	}
}

// typed is the sample with a question of an application's type, in a version of its, and what it was
// shown as.
func typed() *checkpoint.Interaction {
	in := sample()
	q := &in.Rounds[0].Questions[0]
	q.Type, q.Version, q.Body = "acme_review", 3, json.RawMessage(`{"document":"<terms>"}`)
	q.Shown = &checkpoint.Shown{Type: "form", Body: json.RawMessage(`{"message":"<Terms>","schema":{"type":"object"}}`)}
	return in
}

// fallback is the sample with an answer to a question that was put as a fallback.
func fallback() *checkpoint.Interaction {
	in := sample()
	in.Rounds[0].Answer.Fallback = true
	return in
}

// What was written is read back as it was: state null is not no state, and no byte of a question is
// escaped or reordered.
func TestRecordRoundTrip(t *testing.T) {
	for name, in := range map[string]*checkpoint.Interaction{
		"everything":           sample(),
		"a type of somebody's": typed(),
		"a fallback":           fallback(),
		"little": {
			ID: checkpoint.ID{1}, Revision: 1, Status: checkpoint.Started, Created: time.UnixMilli(1).UTC(),
			Updated: time.UnixMilli(1).UTC(),
			Tool:    "t", Arguments: json.RawMessage(`{}`),
		},
	} {
		record, err := checkpoint.Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		back, err := checkpoint.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, back); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
}

// A record of format version 1 stays readable for ever, with the fields that came later and without
// them (R14). Each file was written when its fields were introduced.
func TestKeptRecord(t *testing.T) {
	for name, want := range map[string]*checkpoint.Interaction{
		"record-v1.json": sample(), "record-v1-shown.json": typed(), "record-v1-fallback.json": fallback(),
	} {
		path := filepath.Join("testdata", name)
		record, err := checkpoint.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && *update {
			kept, err = record.Data, os.WriteFile(path, record.Data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		record.Data = bytes.TrimSpace(kept)
		in, err := checkpoint.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, in); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
}

// What a record of an earlier release does not hold is not written either: its data stays as it was,
// byte for byte (R14).
func TestNewFieldsAreLeftOut(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("testdata", "record-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := checkpoint.Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(record.Data)); diff != "" {
		t.Errorf("(-kept +written):\n%s", diff)
	}
}

// R37: the plain fields are compared with the data on load; what cannot be read says why, and which
// interaction it is.
func TestDecodeRefuses(t *testing.T) {
	replace := func(old, new string) func(*checkpoint.Record) {
		return func(r *checkpoint.Record) { r.Data = bytes.Replace(r.Data, []byte(old), []byte(new), 1) }
	}
	for name, spoil := range map[string]func(*checkpoint.Record){
		"another id":         func(r *checkpoint.Record) { r.ID[0]++ },
		"another revision":   func(r *checkpoint.Record) { r.Revision++ },
		"another status":     func(r *checkpoint.Record) { r.Status = checkpoint.Open },
		"no status":          func(r *checkpoint.Record) { r.Status = 0 },
		"another scope":      func(r *checkpoint.Record) { r.Scope[0]++ },
		"another start":      func(r *checkpoint.Record) { r.Start[0]++ },
		"another due":        func(r *checkpoint.Record) { r.Due = r.Due.Add(time.Millisecond) },
		"another owner":      func(r *checkpoint.Record) { r.Claim.Owner = "boot.2" },
		"another epoch":      func(r *checkpoint.Record) { r.Claim.Epoch++ },
		"another attempt":    func(r *checkpoint.Record) { r.Claim.Attempt++ },
		"empty":              func(r *checkpoint.Record) { r.Data = nil },
		"truncated":          func(r *checkpoint.Record) { r.Data = r.Data[:len(r.Data)/2] },
		"something after it": func(r *checkpoint.Record) { r.Data = append(r.Data, " {}"...) },
		"a newer version":    replace(`"v":1`, `"v":2`),
		"no version":         replace(`"v":1,`, ``),
		"an unknown field":   replace(`"v":1`, `"v":1,"x":1`),
		"an unknown status":  replace(`"running"`, `"resting"`),
		"a short id":         replace(`"0102030405060708090a0b0c"`, `"01"`),
		"a short hash":       replace(strings.Repeat("01", 32), "01"),
		"a hash of letters":  replace(strings.Repeat("01", 32), strings.Repeat("zz", 32)),
		"a time of day":      replace(`"2025-`, `"today-`),
		"not an object":      func(r *checkpoint.Record) { r.Data = []byte(`[]`) },
	} {
		record, err := checkpoint.Encode(sample())
		if err != nil {
			t.Fatal(err)
		}
		was := bytes.Clone(record.Data)
		spoil(&record)
		if record.Data != nil && bytes.Equal(was, record.Data) && strings.HasPrefix(name, "a ") {
			t.Errorf("%s: nothing was spoiled", name)
		}
		_, err = checkpoint.Decode(record)
		var e *checkpoint.DecodeError
		if !errors.As(err, &e) || e.ID != record.ID || e.Reason == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record that contradicts itself is refused: who reads it would stumble over what is missing.
func TestDecodeRefusesContradictions(t *testing.T) {
	for name, spoil := range map[string]func(*checkpoint.Interaction){
		"running without rounds":  func(in *checkpoint.Interaction) { in.Rounds = nil },
		"answered without rounds": func(in *checkpoint.Interaction) { in.Status, in.Rounds = checkpoint.Answered, nil },
		"expired without rounds":  func(in *checkpoint.Interaction) { in.Status, in.Rounds = checkpoint.Expired, nil },
		"open without rounds":     func(in *checkpoint.Interaction) { in.Status, in.Rounds = checkpoint.Open, nil },
		"open and answered":       func(in *checkpoint.Interaction) { in.Status = checkpoint.Open },
		"started with rounds":     func(in *checkpoint.Interaction) { in.Status = checkpoint.Started },
		"running and unanswered":  func(in *checkpoint.Interaction) { in.Rounds[1].Answer = nil },
		"a hole":                  func(in *checkpoint.Interaction) { in.Status, in.Rounds[0].Answer = checkpoint.Open, nil },
		"no questions":            func(in *checkpoint.Interaction) { in.Rounds[0].Questions = nil },
		"half an answer":          func(in *checkpoint.Interaction) { in.Rounds[0].Answer.Payloads = nil },
		"finished without end":    func(in *checkpoint.Interaction) { in.Status, in.Ending = checkpoint.Finished, nil },
		"failed without end":      func(in *checkpoint.Interaction) { in.Status, in.Ending = checkpoint.Failed, nil },
	} {
		in := sample()
		spoil(in)
		record, err := checkpoint.Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		var e *checkpoint.DecodeError
		if _, err := checkpoint.Decode(record); !errors.As(err, &e) || e.Reason == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Encoding refuses what it could not read back.
func TestEncodeRefuses(t *testing.T) {
	in := sample()
	in.Status = 99
	if _, err := checkpoint.Encode(in); err == nil {
		t.Error("an unknown status was written")
	}
	in = sample()
	in.Arguments = json.RawMessage(`{`)
	if _, err := checkpoint.Encode(in); err == nil {
		t.Error("arguments that are not JSON were written")
	}
}

func TestIDs(t *testing.T) {
	early, err := checkpoint.NewID(time.UnixMilli(1000), strings.NewReader("zzzzzz"))
	if err != nil {
		t.Fatal(err)
	}
	late, err := checkpoint.NewID(time.UnixMilli(1001), strings.NewReader("aaaaaa"))
	if err != nil {
		t.Fatal(err)
	}
	if early.Compare(late) >= 0 || early.String() != "0000000003e87a7a7a7a7a7a" {
		t.Errorf("%s, %s", early, late)
	}
	if back, err := checkpoint.ParseID(early.String()); err != nil || back != early {
		t.Errorf("%s, %v", back, err)
	}
	for _, bad := range []string{"", "00", early.String() + "00", "zz" + early.String()[2:]} {
		if _, err := checkpoint.ParseID(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := checkpoint.NewID(time.Now(), strings.NewReader("")); err == nil {
		t.Error("an id without randomness")
	}
}

// No bytes in a record make Decode do more than return an error, and what it reads is written back
// the same.
func FuzzDecode(f *testing.F) {
	record, err := checkpoint.Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(record.Data))
	f.Add([]byte(`{"v":1}`))
	shown, err := checkpoint.Encode(typed())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(shown.Data))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := record
		r.Data = data
		in, err := checkpoint.Decode(r)
		if err != nil {
			return
		}
		again, err := checkpoint.Encode(in)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if _, err := checkpoint.Decode(again); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
	})
}
