package lines_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-go/parley/internal/lines"
)

func TestReader(t *testing.T) {
	upper := func(line []byte) []byte {
		if bytes.HasPrefix(line, []byte("-")) {
			return nil
		}
		return bytes.ToUpper(line)
	}
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":            {"", ""},
		"lines":              {"a\nb\n", "A\nB\n"},
		"one is left out":    {"a\n-b\nc\n", "A\nC\n"},
		"the last has no LF": {"a\nb", "A\nB"},
		"empty ones":         {"\n\na\n", "\n\nA\n"},
		"a long one":         {long + "\na\n", strings.ToUpper(long) + "\nA\n"},
	} {
		for _, in := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
			got, err := io.ReadAll(lines.NewReader(in, 1<<20, upper))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s: have %d bytes, %v, want %d", name, len(got), err, len(tc.want))
			}
		}
	}
	// One that is too long is handed on, and not held.
	got, err := io.ReadAll(io.LimitReader(lines.NewReader(strings.NewReader(strings.Repeat("x", 1<<20)), 100<<10, upper), 128<<10))
	if err != nil || string(got) != strings.Repeat("x", 128<<10) {
		t.Errorf("have %d bytes, %v", len(got), err)
	}
	broken := lines.NewReader(iotest.ErrReader(io.ErrClosedPipe), 1, upper)
	if _, err := broken.Read(make([]byte, 1)); err != io.ErrClosedPipe {
		t.Errorf("have %v", err)
	}
}
