package checkpoint_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
)

func sampleStep() *checkpoint.Step {
	return &checkpoint.Step{
		Key: "order <1>", ID: "00112233445566778899aabbccddeeff", Result: json.RawMessage(`{"n":1}`), Time: time.UnixMilli(1764500000000).UTC(),
	}
}

// R4: a step is read back as it was written; no result is not the result null.
func TestStepRoundTrip(t *testing.T) {
	for name, result := range map[string]json.RawMessage{"begun": nil, "null": json.RawMessage(`null`), "done": json.RawMessage(`{"n":1}`)} {
		step := sampleStep()
		step.Result = result
		row, err := checkpoint.EncodeStep(checkpoint.ID{1}, "name", step)
		if err != nil {
			t.Fatal(err)
		}
		if row.ID != (checkpoint.ID{1}) || row.Name != "name" {
			t.Errorf("%s: the row is %s %q", name, row.ID, row.Name)
		}
		back, err := checkpoint.DecodeStep(row)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step, back); diff != "" {
			t.Errorf("%s (-want +have):\n%s", name, diff)
		}
	}
}

// A step of format version 1 stays readable for ever.
func TestKeptStep(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("testdata", "step-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	step, err := checkpoint.DecodeStep(checkpoint.Row{ID: checkpoint.ID{1}, Data: kept})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleStep(), step); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

// What cannot be read as a step says of which interaction it is.
func TestDecodeStepRefuses(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "step-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"nothing":       "",
		"no JSON":       `{"v":1,`,
		"newer version": strings.Replace(string(good), `"v":1`, `"v":2`, 1),
		"no version":    strings.Replace(string(good), `"v":1,`, ``, 1),
		"unknown field": strings.Replace(string(good), `"key"`, `"other":1,"key"`, 1),
		"more":          string(good) + `{}`,
		"no key":        strings.Replace(string(good), `order <1>`, ``, 1),
		"no id":         strings.Replace(string(good), `00112233445566778899aabbccddeeff`, ``, 1),
		"no time":       `{"v":1,"key":"a","id":"b"}`,
		"null":          `null`,
	} {
		_, err := checkpoint.DecodeStep(checkpoint.Row{ID: checkpoint.ID{1}, Data: []byte(data)})
		var decode *checkpoint.DecodeError
		if !errors.As(err, &decode) || decode.ID != (checkpoint.ID{1}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever is read as a step is written again as the same, and nothing panics.
func FuzzDecodeStep(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		step, err := checkpoint.DecodeStep(checkpoint.Row{ID: checkpoint.ID{1}, Data: data})
		if err != nil {
			return
		}
		row, err := checkpoint.EncodeStep(checkpoint.ID{1}, "name", step)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		back, err := checkpoint.DecodeStep(row)
		if err != nil {
			t.Fatalf("%q was written and cannot be read: %v", row.Data, err)
		}
		again, err := checkpoint.EncodeStep(checkpoint.ID{1}, "name", back)
		if err != nil || string(again.Data) != string(row.Data) {
			t.Fatalf("%q was written as %q and then as %q: %v", data, row.Data, again.Data, err)
		}
	})
}
