package mcpbridge

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was recorded of a round is read as it was written, by every later release.
func TestKeptReplies(t *testing.T) {
	text, err := os.ReadFile("testdata/replies/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept []json.RawMessage
	if err := json.Unmarshal(text, &kept); err != nil || len(kept) != 5 {
		t.Fatalf("%d replies, %v", len(kept), err)
	}
	for _, want := range kept {
		var r reply
		if err := json.Unmarshal(want, &r); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" || r.V != replyVersion {
			t.Errorf("version %d, -want +got:\n%s", r.V, diff)
		}
	}
}
