package canon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"testing"

	"github.com/parley-go/parley/internal/canon"
)

// A form is its own form, is valid JSON, and means what the input meant, number for number.
func FuzzJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		form, err := canon.JSON(in, nil)
		if err != nil {
			if e, ok := errors.AsType[*canon.Error](err); !ok || e.Reason == "" || len(err.Error()) > 1000 {
				t.Fatalf("error is %T: %.200v", err, err)
			}
			return
		}
		again, err := canon.JSON(form, nil)
		if err != nil || !bytes.Equal(form, again) {
			t.Fatalf("form %q has the form %q, %v", form, again, err)
		}
		if a, b := meaning(t, in), meaning(t, form); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q means %v, its form %q means %v", in, a, form, b)
		}
	})
}

// meaning decodes a text with another parser, with numbers as reduced fractions.
func meaning(t *testing.T, text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return fractions(t, v)
}

func fractions(t *testing.T, v any) any {
	switch v := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(string(v))
		if !ok {
			t.Fatalf("%q is not a number", v)
		}
		return r.RatString()
	case []any:
		for i := range v {
			v[i] = fractions(t, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = fractions(t, v[name])
		}
	}
	return v
}
