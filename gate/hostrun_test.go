package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

func mustBegin(t *testing.T, f *gate.Face) *gate.Run {
	t.Helper()
	run, err := f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Notes: json.RawMessage(`{"plan":1}`), Keep: map[string][]byte{"input": []byte("hello")}})
	if err != nil {
		t.Fatalf("begin run: %v", err)
	}
	t.Cleanup(func() { run.Release(context.Background()) })
	return run
}

func mustResume(t *testing.T, f *gate.Face, id checkpoint.ID) *gate.Run {
	t.Helper()
	run, err := f.ResumeRun(t.Context(), "ann", id)
	if err != nil {
		t.Fatalf("resume run: %v", err)
	}
	t.Cleanup(func() { run.Release(context.Background()) })
	return run
}

func face(t *testing.T, g *gate.Gate) *gate.Face {
	t.Helper()
	f, err := g.NewFace("agent", nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// inRun is a call of the run with a start ID.
func inRun(run *gate.Run, service string) gate.Call {
	c := call("deploy", `{"service":"`+service+`"}`)
	c.Run, c.StartID = run, run.ID().String()+service
	return c
}

// mustHold invokes and wants a prompt that is held.
func mustHold(t *testing.T, f host, c gate.Call) {
	t.Helper()
	o, err := f.Invoke(t.Context(), c)
	if err != nil || !o.Held || o.Prompt != nil {
		t.Fatalf("invoke in a run: want a held prompt, have %+v, %v", o, err)
	}
}

func mustStop(t *testing.T, run *gate.Run, blob string) []gate.Outcome {
	t.Helper()
	open, err := run.Commit(t.Context(), gate.RunCommit{Notes: json.RawMessage(`{"plan":2}`), Blob: []byte(blob)})
	if err != nil {
		t.Fatalf("commit run: %v (cause %v)", err, errors.Unwrap(err))
	}
	return open
}

func wantBlob(t *testing.T, run *gate.Run, want string) {
	t.Helper()
	if blob, err := run.Blob(); err != nil || string(blob) != want {
		t.Fatalf("blob: want %q, have %q, %v (cause %v)", want, blob, err, errors.Unwrap(err))
	}
}

// R25: the prompts of a run's calls are written with its blob in one commit, and shown by nobody
// before (W1, W5). Each is answered alone, the others keep their tokens (W2, P1), and the run ends
// (W6, W4, V5).
func TestRunHoldsPrompts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		store := &faulty{Store: process()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
		f := face(t, g)
		run := mustBegin(t, f)
		mustHold(t, f, inRun(run, "api"))
		mustHold(t, f, inRun(run, "web"))
		list, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"})
		if err != nil || len(list.Interactions) != 2 {
			t.Fatalf("list: want 2, have %+v, %v", list, err)
		}
		for _, s := range list.Interactions {
			if s.Prompt != nil || s.Status != checkpoint.Started {
				t.Errorf("before the commit there is %v with prompt %v", s.Status, s.Prompt)
			}
		}
		before, _ := store.counts()
		prompts := mustStop(t, run, "state 1")
		if after, _ := store.counts(); after-before != 1 {
			t.Errorf("stopping took %d durable commits, want 1", after-before)
		}
		if len(prompts) != 2 || prompts[0].Prompt.Token == "" {
			t.Fatalf("want 2 prompts with tokens, have %+v", prompts)
		}
		if _, err := f.Invoke(t.Context(), inRun(run, "db")); !errors.Is(err, gate.ErrUnavailable) {
			t.Errorf("invoke in a run that stopped: %v", err)
		}

		again := mustResume(t, f, run.ID())
		wantBlob(t, again, "state 1")
		if string(again.Notes()) != `{"plan":2}` {
			t.Errorf("notes: have %s", again.Notes())
		}
		c := with(inRun(again, "web"), prompts[1].Prompt, allow)
		mustFinish(t, f, c, `"deployed web"`)
		mustAsk(t, f, inRun(again, "api"))
		left := mustStop(t, again, "state 2")
		if len(left) != 1 || left[0].Prompt.Token != prompts[0].Prompt.Token {
			t.Fatalf("the question that was not answered: want its token again, have %+v", left)
		}

		last := mustResume(t, f, run.ID())
		wantBlob(t, last, "state 2")
		mustFinish(t, f, with(inRun(last, "api"), left[0].Prompt, allow), `"deployed api"`)
		if err := last.Finish(t.Context(), gate.RunEnd{Result: json.RawMessage(`"both"`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ResumeRun(t.Context(), "ann", run.ID()); !errors.Is(err, gate.ErrAlreadyCompleted) {
			t.Errorf("resume of an ended run: %v", err)
		}
		s, err := f.InspectRun(t.Context(), "ann", run.ID())
		if err != nil || s.Status != checkpoint.RunEnded || string(s.Result) != `"both"` || s.Claimed {
			t.Errorf("inspect: have %+v, %v", s, err)
		}
		page, err := f.Runs(t.Context(), gate.RunQuery{Scope: "ann"})
		if err != nil || len(page.Runs) != 0 {
			t.Errorf("runs that go on: have %+v, %v", page, err)
		}
		if rows, err := store.Rows(t.Context(), run.ID(), "", 10); err != nil || len(rows) != 0 {
			t.Errorf("rows of an ended run: %d, %v", len(rows), err)
		}
		effects.want(t, 2)
	})
}

// R23: of many that resume at once one goes on, the others get busy (W2, W3); so does who comes
// while it goes on.
func TestRunIsResumedOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		faces := []*gate.Face{face(t, open(t, process(), gate.Options{})), face(t, open(t, process(), gate.Options{}))}
		run := mustBegin(t, faces[0])
		mustStop(t, run, "x")
		var wg sync.WaitGroup
		results, runs := make(chan error, 16), make(chan *gate.Run, 16)
		for i := range cap(results) {
			wg.Go(func() {
				won, err := faces[i%2].ResumeRun(context.Background(), "ann", run.ID())
				results <- err
				if err == nil {
					runs <- won
				}
			})
		}
		wg.Wait()
		close(results)
		close(runs)
		won := 0
		for err := range results {
			if err == nil {
				won++
			} else if !errors.Is(err, gate.ErrBusy) {
				t.Errorf("want busy, have %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d went on, want 1", won)
		}
		for run := range runs {
			run.Release(t.Context())
		}
	})
}

// R23: a run whose process died is taken over with what it kept; what it asked was never shown
// (W2, W8).
func TestRunAfterACrash(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		store := &faulty{Store: process()}
		tools := []*gate.Tool{deploy(&effects, &gate.ToolOptions{Replay: gate.Repeatable})}
		first, err := gate.Open(t.Context(), store, &gate.Options{Tools: tools, Keys: [][]byte{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		run := mustBegin(t, face(t, first))
		if err := run.Keep(t.Context(), "model", []byte("answer 1")); err != nil {
			t.Fatal(err)
		}
		mustHold(t, face(t, first), inRun(run, "api"))
		store.crash()

		g := open(t, process(), gate.Options{Tools: tools})
		f := face(t, g)
		again := mustResume(t, f, run.ID())
		wantBlob(t, again, "")
		if kept, ok := again.Kept("model"); !ok || string(kept) != "answer 1" {
			t.Errorf("kept: have %q, %v", kept, ok)
		}
		if kept, ok := again.Kept("input"); !ok || string(kept) != "hello" {
			t.Errorf("kept from the beginning: have %q, %v", kept, ok)
		}
		if _, ok := again.Kept("another"); ok {
			t.Error("what was not kept is there")
		}
		mustHold(t, f, inRun(again, "api"))
		prompts := mustStop(t, again, "state")
		if len(prompts) != 1 {
			t.Fatalf("want one prompt, have %+v", prompts)
		}
		if _, err := run.Commit(t.Context(), gate.RunCommit{Blob: []byte("late")}); !errors.Is(err, gate.ErrBusy) {
			t.Errorf("commit by the one that is gone: %v", err)
		}
		last := mustResume(t, f, run.ID())
		wantBlob(t, last, "state")
		if _, ok := last.Kept("model"); ok {
			t.Error("a commit did not remove what was kept")
		}
		last.Release(t.Context())
		mustResume(t, f, run.ID()).Release(t.Context()) // W7
	})
}

// W5, W8: what was kept by an attempt that came further stays until another one comes to it; the
// end removes it all.
func TestKeptBeyondACommit(t *testing.T) {
	store := memstore.New()
	f := face(t, open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}}))
	run := mustBegin(t, f)
	for _, name := range []string{"answer 1", "answer 2"} {
		if err := run.Keep(t.Context(), name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	run.Release(t.Context())
	again := mustResume(t, f, run.ID())
	if _, ok := again.Kept("answer 1"); !ok {
		t.Error("the first answer is not kept")
	}
	mustStop(t, again, "behind the first answer")
	last := mustResume(t, f, run.ID())
	if _, ok := last.Kept("answer 1"); ok {
		t.Error("the first answer is kept after the commit behind it")
	}
	if kept, ok := last.Kept("answer 2"); !ok || string(kept) != "answer 2" {
		t.Errorf("the second answer: have %q, %v", kept, ok)
	}
	last.Release(t.Context())
	end := mustResume(t, f, run.ID())
	if err := end.Finish(t.Context(), gate.RunEnd{}); err != nil {
		t.Fatal(err)
	}
	if rows, err := store.Rows(t.Context(), run.ID(), "", 10); err != nil || len(rows) > 0 {
		t.Errorf("rows after the end: %v, %v", rows, err)
	}
}

// R25: a commit that is not applied shows nothing, one whose success is hidden is read back, and
// one that conflicts with a call is written without it (W5).
func TestRunCommitThatFails(t *testing.T) {
	stopping := func(b *checkpoint.Batch) bool {
		return writes(b, checkpoint.RunLive) && len(b.Puts) > 1
	}
	for _, tt := range []struct {
		name  string
		fault func(b *checkpoint.Batch, held checkpoint.ID) (before, after error)
		want  gate.Code // "": it is written
		shown int
		blob  string
	}{
		{"not applied", func(b *checkpoint.Batch, _ checkpoint.ID) (error, error) { return errInjected, nil }, gate.ErrUnavailable, 0, ""},
		{"hidden", func(b *checkpoint.Batch, _ checkpoint.ID) (error, error) { return nil, errInjected }, "", 2, "state"},
		{"a call is lost", func(b *checkpoint.Batch, held checkpoint.ID) (error, error) {
			for _, put := range b.Puts {
				if put.Record.ID == held {
					return &checkpoint.ConflictError{ID: held}, nil
				}
			}
			return nil, nil
		}, "", 1, "state"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				var effects counter
				store := &faulty{Store: process()}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
				f := face(t, g)
				run := mustBegin(t, f)
				o, err := f.Invoke(t.Context(), inRun(run, "api"))
				if err != nil || !o.Held {
					t.Fatal(o, err)
				}
				mustHold(t, f, inRun(run, "web"))
				store.set(func(b *checkpoint.Batch) (before, after error) {
					if !stopping(b) {
						return nil, nil
					}
					return tt.fault(b, o.Interaction)
				})
				prompts, err := run.Commit(t.Context(), gate.RunCommit{Blob: []byte("state")})
				store.set(nil)
				if tt.want != "" {
					wantCode(t, "commit", err, tt.want)
				} else if err != nil {
					t.Fatalf("commit: %v (cause %v)", err, errors.Unwrap(err))
				}
				if len(prompts) != tt.shown {
					t.Errorf("%d prompts are shown, want %d", len(prompts), tt.shown)
				}
				again := mustResume(t, f, run.ID())
				wantBlob(t, again, tt.blob)
				if tt.shown != 1 { // W7: what was asked is found by who calls again
					mustAsk(t, f, inRun(again, "api"))
				}
				mustAsk(t, f, inRun(again, "web"))
				again.Release(t.Context())
				effects.want(t, 0)
			})
		})
	}
}

// R21, R34, R37: a run of another scope or face is not told from none; a blob that is too large, or
// is not what was written, is refused and changes nothing.
func TestRunBadInput(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		store := process()
		g := open(t, store, gate.Options{Limits: gate.Limits{Blob: 1000}, Tools: []*gate.Tool{deploy(&counter{}, nil)}})
		f := face(t, g)
		run := mustBegin(t, f)
		mustStop(t, run, strings.Repeat("state", 100))
		other, err := g.NewFace("other", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, resume := range map[string]func() (*gate.Run, error){
			"another scope": func() (*gate.Run, error) { return f.ResumeRun(t.Context(), "bob", run.ID()) },
			"another face":  func() (*gate.Run, error) { return other.ResumeRun(t.Context(), "ann", run.ID()) },
			"unknown":       func() (*gate.Run, error) { return f.ResumeRun(t.Context(), "ann", checkpoint.ID{1}) },
		} {
			_, err := resume()
			wantCode(t, name, err, gate.ErrInvalidContinuation)
		}
		_, err = f.InspectRun(t.Context(), "bob", run.ID())
		wantCode(t, "inspect another scope's", err, gate.ErrInvalidContinuation)
		_, err = f.BeginRun(t.Context(), gate.RunStart{})
		wantCode(t, "no scope", err, gate.ErrUnauthorized)
		_, err = f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Notes: json.RawMessage("{")})
		wantCode(t, "notes that are not JSON", err, gate.ErrInvalidArguments)
		_, err = f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Notes: bytes.Repeat([]byte("1"), 1001)})
		wantCode(t, "large notes", err, gate.ErrTooLarge)

		again := mustResume(t, f, run.ID())
		bobs := inRun(again, "api")
		bobs.Scope = "bob"
		mustFail(t, f, bobs, gate.ErrInvalidArguments)
		_, err = again.Commit(t.Context(), gate.RunCommit{Blob: make([]byte, 1001)})
		wantCode(t, "large blob", err, gate.ErrTooLarge)

		record, err := store.Load(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := store.Rows(t.Context(), run.ID(), "", 10)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		good := rows[0]
		for name, data := range map[string][]byte{
			"truncated": good.Data[:len(good.Data)/2], "flipped": flip(good.Data), "another format": {9}, "missing": nil,
		} {
			put := checkpoint.RowPut{Row: checkpoint.Row{ID: good.ID, Name: good.Name, Data: data}, Epoch: record.Claim.Epoch}
			if err := store.Commit(t.Context(), &checkpoint.Batch{Time: time.Now(), Rows: []checkpoint.RowPut{put}}); err != nil {
				t.Fatal(err)
			}
			bad := mustResume(t, f, run.ID())
			_, err := bad.Blob()
			wantCode(t, name, err, gate.ErrUnavailable)
			bad.Release(t.Context())
			if record, err = store.Load(t.Context(), run.ID()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func flip(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	return data
}

// R37: what is kept of a run is sealed where the ledger is, opens nowhere else, and is sealed anew
// under a new first key.
func TestRunIsSealed(t *testing.T) {
	key, next := bytes.Repeat([]byte("k"), 32), bytes.Repeat([]byte("n"), 32)
	store := memstore.New()
	g, err := gate.Open(t.Context(), store, &gate.Options{Keys: [][]byte{testKey}, DataKeys: [][]byte{key}})
	if err != nil {
		t.Fatal(err)
	}
	f := face(t, g)
	run, err := f.BeginRun(t.Context(), gate.RunStart{Scope: "ann", Notes: json.RawMessage(`"the secret plan"`)})
	if err != nil {
		t.Fatal(err)
	}
	mustStop(t, run, "the secret state")
	again := mustResume(t, f, run.ID())
	if err := again.Keep(t.Context(), "model", []byte("the secret answer")); err != nil {
		t.Fatal(err)
	}
	again.Release(t.Context())
	record, err := store.Load(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Rows(t.Context(), run.ID(), "", 10)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for _, data := range [][]byte{record.Data, rows[0].Data, rows[1].Data} {
		if bytes.Contains(data, []byte("secret")) || bytes.Contains(data, []byte("plan")) {
			t.Errorf("plain text is kept: %q", data)
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{next, key}})
	if err != nil || report.Sealed != 1 || report.Unread != 0 {
		t.Fatalf("reencrypt: %+v, %v", report, err)
	}
	g = open(t, store, gate.Options{DataKeys: [][]byte{next}})
	last := mustResume(t, face(t, g), run.ID())
	wantBlob(t, last, "the secret state")
	if kept, ok := last.Kept("model"); !ok || string(kept) != "the secret answer" {
		t.Errorf("kept: %q, %v", kept, ok)
	}
	last.Release(t.Context())
}

// R25: a run that is released, or whose state is too large, leaves what it asked for its calls to
// find (W7).
func TestRunReleasedWithPrompts(t *testing.T) {
	for name, stop := range map[string]func(run *gate.Run){
		"release": func(run *gate.Run) { run.Release(t.Context()) },
		"too large": func(run *gate.Run) {
			_, err := run.Commit(t.Context(), gate.RunCommit{Blob: make([]byte, 1001)})
			wantCode(t, "commit", err, gate.ErrTooLarge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				var effects counter
				g := open(t, process(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Limits: gate.Limits{Blob: 1000}})
				f := face(t, g)
				run := mustBegin(t, f)
				mustHold(t, f, inRun(run, "api"))
				stop(run)
				again := mustResume(t, f, run.ID())
				wantBlob(t, again, "")
				prompt := mustAsk(t, f, inRun(again, "api"))
				mustFinish(t, f, with(inRun(again, "api"), prompt, allow), `"deployed api"`)
				effects.want(t, 1)
			})
		})
	}
}

// R39: a run goes when nobody went on with it for long after its prompts, an ended one after its
// retention (W9); one that goes on stays.
func TestRunsAreSwept(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		c := newClock()
		g := open(t, process(), gate.Options{Now: c.Now, Tools: []*gate.Tool{deploy(&counter{}, nil)}})
		f := face(t, g)
		ended := mustBegin(t, f)
		c.add(time.Millisecond) // ids are in the order of time
		waiting := mustBegin(t, f)
		c.add(time.Millisecond)
		going := mustBegin(t, f)
		if err := ended.Finish(t.Context(), gate.RunEnd{}); err != nil {
			t.Fatal(err)
		}
		mustHold(t, f, inRun(waiting, "api"))
		mustStop(t, waiting, "x")
		want := func(after string, ids ...checkpoint.ID) {
			t.Helper()
			for range 3 { // sweeps ride on requests, a page at a time
				if _, err := f.Runs(t.Context(), gate.RunQuery{Scope: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			page, err := f.Runs(t.Context(), gate.RunQuery{Scope: "ann", Ended: true})
			if err != nil || len(page.Runs) != len(ids) {
				t.Fatalf("after %s: want %d runs, have %+v, %v", after, len(ids), page.Runs, err)
			}
			for i, s := range page.Runs {
				if s.ID != ids[i] {
					t.Errorf("after %s: have %v", after, s.ID)
				}
			}
		}
		want("nothing", ended.ID(), waiting.ID(), going.ID())
		c.add(24*time.Hour + time.Second)
		want("the retention", waiting.ID(), going.ID())
		c.add(30 * 24 * time.Hour)
		want("a month", going.ID())
		_, err := f.ResumeRun(t.Context(), "ann", waiting.ID())
		wantCode(t, "resume a swept run", err, gate.ErrInvalidContinuation)
		going.Release(t.Context())
	})
}

// R32: Close waits for a run, whose prompts that were on their way are written.
func TestCloseWaitsForRuns(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		g := open(t, process(), gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}})
		f := face(t, g)
		run := mustBegin(t, f)
		mustHold(t, f, inRun(run, "api"))
		closed := make(chan error, 1)
		go func() { closed <- g.Close(context.Background()) }()
		for { // until the close has begun
			if _, err := g.Inspect(t.Context(), "ann", "none"); errors.Is(err, gate.ErrUnavailable) {
				break
			}
		}
		if _, err := f.Invoke(t.Context(), inRun(run, "web")); !errors.Is(err, gate.ErrUnavailable) {
			t.Errorf("a call while closing: %v", err)
		}
		select {
		case <-closed:
			t.Fatal("Close did not wait for the run")
		default:
		}
		if prompts := mustStop(t, run, "x"); len(prompts) != 1 {
			t.Errorf("want the prompt that was on its way, have %v", prompts)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
