package canon_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/parley-go/parley/internal/canon"
)

// Two members stand in the order of the UTF-16 code units of their names (RFC 8785, section 3.2.3),
// whatever the names are.
func TestOrderIsThatOfUTF16(t *testing.T) {
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]rune{
		'a', 'b', '\u007f', '\u0080', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uefff', '\uf000', '\uffff', '\U00010000', '\U0010ffff',
	}), 0, 4), func(runes []rune) string { return string(runes) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		if a == b {
			return
		}
		object, err := json.Marshal(map[string]int{a: 1, b: 2})
		if err != nil {
			t.Fatal(err)
		}
		form, err := canon.JSON(object, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) < 0
		if have := strings.Index(string(form), ":1") < strings.Index(string(form), ":2"); have != first {
			t.Errorf("%q and %q: %s", a, b, form)
		}
	})
}
