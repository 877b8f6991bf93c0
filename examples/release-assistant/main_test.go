package main

import (
	"strings"
	"testing"
)

// The assistant waits where nobody answers, goes on in the next process with the question that is
// left, and ends.
func TestAssistant(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct{ input, want string }{
		{"", "migrate {\"service\":\"api\"} (2 open)"},
		{"y\n", "deploy {\"service\":\"api\"} (1 open)"},
		{"n\n", "The release: api migrated; A person was asked and rejected this call."},
	} {
		var out strings.Builder
		if err := assist(t.Context(), dir, strings.NewReader(step.input), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), step.want) {
			t.Errorf("after %q: have %s, want %s", step.input, out.String(), step.want)
		}
	}
}
