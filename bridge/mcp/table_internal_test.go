package mcpbridge

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-go/parley/gate"
)

// R36: docs/errors.md says of every code what it is in MCP.
func TestErrorsTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		rows++
		code, told := gate.Code(strings.Trim(cells[1], " `")), cells[4]
		for _, open := range []bool{false, true} {
			want := "result"
			if n, protocol := number(&gate.Error{Code: code, StillOpen: open}); protocol {
				want = "−" + strconv.FormatInt(-n, 10)
			}
			switch code { // what looks further than at the code
			case gate.ErrConfirmationRequired:
				want = "−32021"
			case gate.ErrInvalidAnswer:
				want = "asked again"
			}
			if !strings.Contains(told, want) {
				t.Errorf("%s, open %v: the table says %q, want %q", code, open, told, want)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows", rows)
	}
}
