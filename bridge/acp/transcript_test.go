package acpbridge_test

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

var update = flag.Bool("update", false, "write what the agent said into the transcripts")

// What goes over the wire, message by message: a transcript is what an editor writes and what the
// agent then says, until it asks or has answered the editor's latest request. Clock, keys and
// randomness are the test's, so ids are the same in each run. $/cancel_request is left out: the SDK
// sends it when it comes to it.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			script, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e := transcriptEditor(t, strings.HasPrefix(name, "fallback"))
			latest := ""
			for i, part := range script.Files {
				switch part.Name {
				case "editor":
					for line := range strings.Lines(string(part.Data)) {
						var m message
						if json.Unmarshal([]byte(line), &m) == nil && m.Method != "" && m.ID != nil {
							latest = string(m.ID)
						}
						e.write("%s", strings.TrimSuffix(line, "\n"))
					}
				case "agent":
					said := e.saidUntil(latest)
					if *update {
						script.Files[i].Data = []byte(said)
					} else if diff := cmp.Diff(string(part.Data), said); diff != "" {
						t.Fatalf("part %d (- the transcript, + the agent):\n%s", i+1, diff)
					}
				default:
					t.Fatalf("part %q is neither editor nor agent", part.Name)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(script), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// saidUntil is what the agent says until it asks, or answers that request.
func (e *editor) saidUntil(id string) string {
	var said strings.Builder
	for {
		m := e.next()
		if m.Method == "$/cancel_request" {
			continue
		}
		said.WriteString(m.Text)
		if m.Method != "" && m.ID != nil || m.Method == "" && string(m.ID) == id {
			return said.String()
		}
	}
}

func transcriptEditor(t *testing.T, fallback bool) *editor {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var effects counter
	g := openGate(t, memstore.New(), gate.Options{
		Tools: []*gate.Tool{
			deploy(&effects, &gate.ToolOptions{Title: "Deploy", Mask: []string{"token"}, Remember: &gate.RememberOptions{}}),
			region(), form(ticketSchema), page(),
		},
		Now: func() time.Time { return now }, Random: rand.NewChaCha8([32]byte{}),
	})
	opts := &acpbridge.Options{Now: func() time.Time { return now }}
	if fallback {
		opts.Fallback = acpbridge.Fallbacks{Selection: true, Form: true, URL: true}
	}
	return open(t, g, opts, caller(nil))
}
