package gate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// noise is data that no compression makes smaller.
func noise(n int) []byte {
	data := make([]byte, n)
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

// R33, W5, W6, W8: what a run keeps has room in the ledger before it is written. Without it the run
// is as its last commit left it, what it asked is there, and it goes on when there is room.
func TestRunTakesRoom(t *testing.T) {
	var effects counter
	const room = 40_000
	limits := gate.Limits{Prompt: 4000, State: 1000, Blob: 100_000}
	for name, c := range map[string]gate.Capacity{"in all": {Bytes: room}, "per scope": {BytesPerScope: room}} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				store := process()
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Limits: limits, Capacity: c})
				f := face(t, g)
				within := func(what string) {
					t.Helper()
					if u, err := store.Usage(t.Context(), checkpoint.Hash{}); err != nil || u.Bytes > room {
						t.Errorf("after %s: %d bytes are kept, %v", what, u.Bytes, err)
					}
				}
				_, err := f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Keep: map[string][]byte{"input": noise(room)}})
				wantCode(t, "begin", err, gate.ErrBusy)

				run := mustBegin(t, f)
				wantCode(t, "keep", run.Keep(t.Context(), "model", noise(room)), gate.ErrBusy)
				if _, ok := run.Kept("model"); ok {
					t.Error("what was refused is kept")
				}
				if err := run.Keep(t.Context(), "model", noise(10_000)); err != nil {
					t.Fatal(err)
				}
				mustHold(t, f, inRun(run, "api"))
				_, err = run.Commit(t.Context(), gate.RunCommit{Blob: noise(room)})
				wantCode(t, "commit", err, gate.ErrBusy)
				within("a commit")

				run = mustResume(t, f, run.ID())
				wantBlob(t, run, "")
				if kept, _ := run.Kept("model"); !bytes.Equal(kept, noise(10_000)) {
					t.Error("what was kept is lost")
				}
				mustAsk(t, f, inRun(run, "api"))
				mustStop(t, run, string(noise(25_000))) // takes the place of what was kept
				within("a commit in the place of what was kept")
				run = mustResume(t, f, run.ID())
				mustStop(t, run, string(noise(26_000))) // takes the place of the one before
				within("a commit in the place of another")

				run = mustResume(t, f, run.ID())
				result, _ := json.Marshal(string(bytes.Repeat([]byte("x"), room)))
				wantCode(t, "finish", run.Finish(t.Context(), gate.RunEnd{Result: result}), gate.ErrBusy)
				run = mustResume(t, f, run.ID())
				wantBlob(t, run, string(noise(26_000)))
				if err := run.Finish(t.Context(), gate.RunEnd{Result: result[:1]}); err == nil {
					t.Error("a result that is no JSON was taken")
				}
				run = mustResume(t, f, run.ID())
				if err := run.Finish(t.Context(), gate.RunEnd{}); err != nil {
					t.Error(err)
				}
				within("the end")
			})
		})
	}
}
