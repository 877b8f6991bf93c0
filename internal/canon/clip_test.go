package canon_test

import (
	"testing"

	"github.com/parley-go/parley/internal/canon"
)

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		in   string
		most int
		want string
	}{
		{"", 0, ""},
		{"a", 0, "…"},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aäb", 2, "a…"}, // ä is two bytes
		{"aäb", 3, "aä…"},
		{"€", 2, "…"},
		{"\x80\x80\x80", 2, "…"}, // no character begins there
	} {
		if got := canon.Clip(tc.in, tc.most); got != tc.want {
			t.Errorf("%q cut to %d is %q, want %q", tc.in, tc.most, got, tc.want)
		}
	}
}
