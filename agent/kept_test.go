package agent_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

var update = flag.Bool("update", false, "write the kept files that are not there")

// keptWorld is a process on a file, in which nothing expires.
func keptWorld(t *testing.T, path string, effects *atomic.Int64) (*world, func()) {
	t.Helper()
	store, err := boltstore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	pay := deploy(effects, nil)
	request := map[string]string{"request": "go"}
	m := after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("x", "x", request)))
	faces := []tool.BaseTool{agent.Tool(pay), mustAgentTool(t, expert("x", pay))}
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{pay}, plain: faces, model: m,
		gate: gate.Options{Lifetime: gate.NoExpiry, StartRetention: gate.NoExpiry},
	})
	return w, func() {
		w.close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A run that stopped under an earlier release goes on for ever. Each file was written when the form
// of what a run keeps changed: under eino v0.7.36, with two questions, one of them of an agent in a
// tool.
//
//   - v1: checkpoints in a map of gob's, compressed with DEFLATE
//   - v2: checkpoints one after the other, compressed with S2
func TestKeptRun(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			var effects atomic.Int64
			kept, path := filepath.Join("testdata", "run-"+version+".db.gz"), filepath.Join(t.TempDir(), "parley.db")
			if _, err := os.Stat(kept); os.IsNotExist(err) && *update {
				writeKept(t, kept, &effects)
			}
			packed, err := os.Open(kept)
			if err != nil {
				t.Fatal(err)
			}
			defer packed.Close()
			content, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			copyTo(t, path, func(to io.Writer) error { _, err := io.Copy(to, content); return err })
			w, end := keptWorld(t, path, &effects)
			defer end()
			page, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
			if err != nil || len(page.Runs) != 1 || len(page.Runs[0].Questions) != 2 {
				t.Fatalf("have %+v, %v", page, err)
			}
			run := w.resume(page.Runs[0].ID)
			run = w.resume(run.ID, to(run.Questions[0], allow), to(run.Questions[1], allow))
			wantFinished(t, run, "[deployed a][[deployed x]]")
			if effects.Load() != 2 {
				t.Errorf("%d effects", effects.Load())
			}
		})
	}
}

// writeKept makes the kept file; a file of a store is mostly empty.
func writeKept(t *testing.T, kept string, effects *atomic.Int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.db")
	w, end := keptWorld(t, path, effects)
	w.start()
	end()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copyTo(t, kept, func(to io.Writer) error {
		packer := gzip.NewWriter(to)
		_, err := packer.Write(content)
		return errors.Join(err, packer.Close())
	})
}

func copyTo(t *testing.T, path string, write func(to io.Writer) error) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// begun is a run of the agent's face that its caller has.
func begun(t *testing.T) (*agent.Agent, *gate.Run, func()) {
	t.Helper()
	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(ctx, g, chat("release", agent.Model(scripted.New(scripted.Say("done"))), compose.ToolsNodeConfig{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	face, err := g.NewFace("agent:release", nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := face.BeginRun(ctx, gate.RunStart{Scope: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return a, run, func() {
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// stopped is a run of the agent's face with these notes and this checkpoint.
func stopped(t *testing.T, notes, blob []byte) (*agent.Agent, *gate.Run, func()) {
	t.Helper()
	if !json.Valid(notes) {
		t.Skip("the gate refuses notes that are not JSON")
	}
	a, run, end := begun(t)
	if _, err := run.Commit(context.Background(), gate.RunCommit{Notes: notes, Blob: blob}); err != nil {
		t.Fatal(err)
	}
	return a, run, end
}

// A run that somebody else ended, with a result that is none of an agent's, is told as that wherever
// it is looked at, and the listing goes on.
func TestResultOfAnotherProgram(t *testing.T) {
	for _, result := range []json.RawMessage{[]byte(`{"a":1}`), []byte(`7`), nil} {
		a, run, end := begun(t)
		if err := run.Finish(t.Context(), gate.RunEnd{Result: result}); err != nil {
			t.Fatal(err)
		}
		have, err := a.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID()}).Run()
		wantCode(t, "resume "+string(result), err, agent.ErrCheckpoint)
		if have == nil || have.Status != agent.Finished || have.Message != "" {
			t.Errorf("resumed: %+v", have)
		}
		_, err = a.Inspect(t.Context(), "ann", run.ID())
		wantCode(t, "inspect "+string(result), err, agent.ErrCheckpoint)
		page, err := a.Runs(t.Context(), gate.RunQuery{Scope: "ann", Ended: true})
		if err != nil || len(page.Runs) != 1 || len(page.Runs[0].Problems) != 1 || !errors.Is(page.Runs[0].Problems[0].Err, agent.ErrCheckpoint) {
			t.Errorf("listed: %+v, %v", page, err)
		}
		end()
	}
}

// Whatever stands in the notes of a run, it is listed, and resumed or refused.
func FuzzNotes(f *testing.F) {
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":1,"turns":{"release":1},"calls":[{"v":1,"start":"s","tool":"t","call":"c","arguments":"a","interaction":"zz"}]}`))
	f.Fuzz(func(t *testing.T, notes []byte) {
		a, run, end := stopped(t, notes, nil)
		defer end()
		page, err := a.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
		if err != nil || len(page.Runs) != 1 {
			t.Fatalf("have %+v, %v", page, err)
		}
		_, _ = a.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID()}).Run()
	})
}

// Whatever stands in the checkpoint of a run, it is gone on with or refused, and is as it was then.
func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("x"))
	f.Add([]byte{})
	f.Add([]byte("\x81\x05agent\x01x"))                         // a checkpoint of one byte
	f.Add([]byte("\x81\x05agent\x01x\x81\x05agent\x01y"))       // twice
	f.Add([]byte("\x81\x05agent\xff\xff\xff\xff\xff\xff\x7fx")) // more than there is
	f.Fuzz(func(t *testing.T, blob []byte) {
		a, run, end := stopped(t, []byte(`{"v":1}`), blob)
		defer end()
		if _, err := a.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID()}).Run(); err == nil {
			return
		}
		again, err := a.Inspect(t.Context(), "ann", run.ID())
		if err != nil || again.Status != agent.Waiting {
			t.Fatalf("have %+v, %v", again, err)
		}
	})
}
