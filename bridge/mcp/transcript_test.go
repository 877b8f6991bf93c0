package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

var update = flag.Bool("update", false, "write what the server said into the transcripts")

// What goes over the wire in each protocol, message by message: a transcript is what a client sends
// and what the server then says. Clock, keys and randomness are the test's, so ids and tokens are
// the same in each run; STATE and KEY stand for the state and the key that the server gave out
// last.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			script, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := dialRaw(t, transcriptSite(t), true)
			last := strings.NewReplacer()
			for i, part := range script.Files {
				switch part.Name {
				case "client":
					for line := range strings.Lines(string(part.Data)) {
						c.send(last.Replace(line))
					}
				case "server":
					var said strings.Builder
					for range max(1, bytes.Count(part.Data, []byte("\n{"))+1) {
						text := c.read()
						said.WriteString(indent(t, text) + "\n")
						if r := givenOut(text); r != nil {
							last = r
						}
					}
					if *update {
						script.Files[i].Data = []byte(said.String())
					} else if diff := cmp.Diff(string(part.Data), said.String()); diff != "" {
						t.Fatalf("part %d (- the transcript, + the server):\n%s", i+1, diff)
					}
				default:
					t.Fatalf("part %q is neither client nor server", part.Name)
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

// givenOut returns what STATE and KEY stand for after a message; nil: it gave out none.
func givenOut(text string) *strings.Replacer {
	var r reply
	if json.Unmarshal([]byte(text), &r) != nil || r.Result.RequestState == "" {
		return nil
	}
	key := slices.Sorted(maps.Keys(r.Result.InputRequests))[0]
	return strings.NewReplacer("STATE", r.Result.RequestState, "KEY", key)
}

func transcriptSite(t *testing.T) *site {
	t.Helper()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var effects counter
	tools := []*gate.Tool{
		deploy(&effects, &gate.ToolOptions{Title: "Deploy", Description: "Deploys a service."}),
		everyKind(), twoAtOnce(), form(ticketSchema),
		raw("guided", func(context.Context) (any, error) { return nil, interrupt.URL("Connect", "https://example.com") },
			&gate.ToolOptions{Guidance: "connect your account on the settings page"}),
	}
	g := openGate(t, memstore.New(), gate.Options{
		Tools: tools, Now: func() time.Time { return now }, Random: rand.NewChaCha8([32]byte{}),
	})
	return newSite(t, g, &mcpbridge.Options{Now: func() time.Time { return now }}, tools...)
}
