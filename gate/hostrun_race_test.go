package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R23, R25, W1k: hosts in several processes that all want the one run of a key, begin it, go on
// with it and end it, carry every run's work out once, and never have one at the same time.
func TestHostsRaceForARun(t *testing.T) {
	const ends = 12
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var mu sync.Mutex // guards what follows
		effects, having := map[string]int{}, map[checkpoint.ID]bool{}
		ended := 0
		work := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
			if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy")); err != nil {
				return "", err
			}
			mu.Lock()
			defer mu.Unlock()
			effects[in.Service]++
			return "deployed", nil
		}, nil)
		var wg sync.WaitGroup
		for range 2 {
			f := face(t, open(t, process(), gate.Options{Tools: []*gate.Tool{work}}))
			for range 3 {
				wg.Go(func() {
					for goesOn := true; goesOn; {
						h := &keyHost{face: f}
						run, err := h.take(t)
						if err != nil && !errors.Is(err, gate.ErrBusy) && !errors.Is(err, gate.ErrAlreadyCompleted) {
							t.Errorf("take: %v (cause %v)", err, errors.Unwrap(err))
							return
						}
						if err == nil {
							mu.Lock()
							if having[run.ID()] {
								t.Error("two hosts have one run")
							}
							having[run.ID()] = true
							mu.Unlock()
							end := oneGoing(t, f, run, func() {
								mu.Lock()
								defer mu.Unlock()
								having[run.ID()] = false
							})
							if end {
								mu.Lock()
								ended++
								mu.Unlock()
							}
						}
						mu.Lock()
						goesOn = ended < ends && !t.Failed()
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		for id, n := range effects {
			if n != 1 {
				t.Errorf("run %s: %d effects", id, n)
			}
		}
		if len(effects) < ended {
			t.Errorf("%d runs ended, %d had an effect", ended, len(effects))
		}
	})
}

// oneGoing goes on with a run to where it stops, and reports whether it ended. stops is called
// before anybody else can have it.
func oneGoing(t *testing.T, f *gate.Face, run *gate.Run, stops func()) (ended bool) {
	c := inRun(run, run.ID().String())
	o, err := f.Invoke(context.Background(), c)
	if err == nil && o.Prompt != nil {
		o, err = f.Invoke(context.Background(), with(c, o.Prompt, allow))
	}
	stops()
	switch {
	case err == nil && o.Held:
		_, err = run.Commit(context.Background(), gate.RunCommit{Blob: []byte("state")})
	case err == nil, errors.Is(err, gate.ErrAlreadyCompleted):
		err, ended = run.Finish(context.Background(), gate.RunEnd{}), true
	}
	if err != nil {
		t.Errorf("go on: %v (cause %v)", err, errors.Unwrap(err))
	}
	return ended && err == nil
}
