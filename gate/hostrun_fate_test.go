package gate_test

import (
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// W5, W8: what was kept goes with the next commit, also where nobody knows whether it was kept: it
// may be written by then, or be on its way.
func TestKeptInDoubtGoesWithTheCommit(t *testing.T) {
	for name, late := range map[string]bool{"written": false, "on its way": true} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				store := &faulty{Store: process()}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}})
				f := face(t, g)
				run := mustBegin(t, f)
				var lost *checkpoint.Batch
				store.set(func(b *checkpoint.Batch) (before, after error) {
					if len(b.Rows) != 1 || len(b.Puts) > 0 {
						return nil, nil
					}
					if lost = b; late {
						return errInjected, nil
					}
					store.failLoads(errInjected) // nor can it be read back
					return nil, errInjected
				})
				wantCode(t, "keep", run.Keep(t.Context(), "model", []byte("answer")), gate.ErrUnavailable)
				store.heal()
				mustStop(t, run, "state")
				if late {
					if err := store.Commit(t.Context(), lost); err == nil {
						t.Error("what was kept before the commit was written after it")
					}
				}
				again := mustResume(t, f, run.ID())
				if kept, ok := again.Kept("model"); ok {
					t.Errorf("kept over the commit: %q", kept)
				}
			})
		})
	}
}

// W5: a commit returns what is open when it is written, once: neither what was answered or expired
// meanwhile, nor what a call of the run went on with.
func TestRunReturnsWhatIsOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(t *testing.T, g *gate.Gate, c *clock, f *gate.Face, run *gate.Run, p *gate.Prompt)
		want      int
	}{
		"open": {func(*testing.T, *gate.Gate, *clock, *gate.Face, *gate.Run, *gate.Prompt) {}, 1},
		"found once more": {func(t *testing.T, _ *gate.Gate, _ *clock, f *gate.Face, run *gate.Run, _ *gate.Prompt) {
			mustAsk(t, f, inRun(run, "api"))
		}, 1},
		"answered elsewhere": {func(t *testing.T, g *gate.Gate, _ *clock, _ *gate.Face, _ *gate.Run, p *gate.Prompt) {
			mustAnswer(t, g, p, allow)
		}, 0},
		"carried out": {func(t *testing.T, _ *gate.Gate, _ *clock, f *gate.Face, run *gate.Run, p *gate.Prompt) {
			mustFinish(t, f, with(inRun(run, "api"), p, allow), `"deployed api"`)
		}, 0},
		"expired": {func(_ *testing.T, _ *gate.Gate, c *clock, _ *gate.Face, _ *gate.Run, _ *gate.Prompt) {
			c.add(time.Hour)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				c := newClock()
				g := open(t, process(), gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}, Now: c.Now})
				f := face(t, g)
				run := mustBegin(t, f)
				mustHold(t, f, inRun(run, "api"))
				mustStop(t, run, "1")
				run = mustResume(t, f, run.ID())
				p := mustAsk(t, f, inRun(run, "api"))
				tt.meanwhile(t, g, c, f, run, p)
				if open := mustStop(t, run, "2"); len(open) != tt.want {
					t.Errorf("want %d prompts, have %+v", tt.want, open)
				}
			})
		})
	}
}

// W6, H5: a run that ends with prompts that nobody saw ends their calls, in one commit; one whose
// claim was lost keeps the others and the run from nothing.
func TestRunEndsTheCallsThatAsked(t *testing.T) {
	for name, taken := range map[string]bool{"all": false, "but one": true} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				store := &faulty{Store: process()}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}})
				f := face(t, g)
				run := mustBegin(t, f)
				var ids []checkpoint.ID
				for _, service := range []string{"api", "web"} {
					o, err := f.Invoke(t.Context(), inRun(run, service))
					if err != nil || !o.Held {
						t.Fatal(o, err)
					}
					ids = append(ids, o.Interaction)
				}
				if taken {
					store.set(func(b *checkpoint.Batch) (before, after error) {
						for _, put := range b.Puts {
							if put.Record.ID == ids[0] {
								return &checkpoint.ConflictError{ID: ids[0]}, nil
							}
						}
						return nil, nil
					})
				}
				before, _ := store.counts()
				if err := run.Finish(t.Context(), gate.RunEnd{}); err != nil {
					t.Fatal(err)
				}
				if after, _ := store.counts(); after-before > 2 || !taken && after-before != 1 {
					t.Errorf("%d commits", after-before)
				}
				for i, id := range ids {
					s, err := g.InspectID(t.Context(), "ann", id)
					if err != nil {
						t.Fatal(err)
					}
					if ended := s.Status == checkpoint.Failed && s.Code == gate.ErrUnavailable && s.Prompt == nil; ended == (taken && i == 0) {
						t.Errorf("call %d: %+v", i, s)
					}
				}
			})
		})
	}
}

// W7, H8: where the claim of one of the calls whose prompts are owed was lost, the others are
// written.
func TestOwedPromptOfALostCall(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		store := &faulty{Store: process()}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&counter{}, nil)}})
		f := face(t, g)
		run := mustBegin(t, f)
		o, err := f.Invoke(t.Context(), inRun(run, "api"))
		if err != nil || !o.Held {
			t.Fatal(o, err)
		}
		mustHold(t, f, inRun(run, "web"))
		store.set(func(*checkpoint.Batch) (before, after error) { return errInjected, nil })
		_, err = run.Commit(t.Context(), gate.RunCommit{})
		wantCode(t, "commit", err, gate.ErrUnavailable)
		store.set(func(b *checkpoint.Batch) (before, after error) {
			for _, put := range b.Puts {
				if put.Record.ID == o.Interaction {
					return &checkpoint.ConflictError{ID: o.Interaction}, nil
				}
			}
			return nil, nil
		})
		again := mustResume(t, f, run.ID())
		mustAsk(t, f, inRun(again, "web"))
		mustFail(t, f, inRun(again, "api"), gate.ErrOutcomeUnknown)
	})
}
