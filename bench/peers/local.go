package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A local peer runs in this process.
type local struct {
	setting string
	open    func(ctx context.Context, dir string, deployed *atomic.Int64) (asker, error)
}

// An asker raises questions whose code adds to deployed when it is reached.
type asker interface {
	raise(ctx context.Context) (question, error)
	close(ctx context.Context) error
}

// A question waits for its answer, a colour, and returns the result: that colour again, if this
// answer is the one that was carried out.
type question func(ctx context.Context, colour string) (string, error)

func (p local) cycles(ctx context.Context, dir string, l load) (m measured, err error) {
	var deployed atomic.Int64
	a, err := p.open(ctx, dir, &deployed)
	if err != nil {
		return measured{}, err
	}
	defer func() {
		if closing := a.close(ctx); err == nil {
			err = closing
		}
	}()
	if l.count > 0 {
		for range l.count {
			if err := cycle(ctx, a); err != nil {
				return measured{}, err
			}
		}
		return measured{Cycles: l.count, Setting: p.setting}, nil
	}
	runtime.GC() // not what the peer before left
	warm, err := during(ctx, a, l.callers, l.warmup)
	if err != nil {
		return measured{}, err
	}
	m, err = during(ctx, a, l.callers, l.duration)
	if err != nil {
		return measured{}, err
	}
	if ran := deployed.Load(); ran != int64(warm.Cycles+m.Cycles) {
		return measured{}, fmt.Errorf("answered %d questions, and the code behind them ran %d times", warm.Cycles+m.Cycles, ran)
	}
	m.Setting = p.setting
	return m, nil
}

func cycle(ctx context.Context, a asker) error {
	q, err := a.raise(ctx)
	if err != nil {
		return err
	}
	switch colour, err := q(ctx, "blue"); {
	case err != nil:
		return err
	case colour != "blue":
		return fmt.Errorf("answered blue, and the result is %q", colour)
	}
	return nil
}

// during lets that many callers do cycles until d is over, and finish those that they began: one
// each at least.
func during(ctx context.Context, a asker, callers int, d time.Duration) (measured, error) {
	var cycles atomic.Int64
	failed := make(chan error, callers)
	var wg sync.WaitGroup
	begin := time.Now()
	for range callers {
		wg.Go(func() {
			for more := true; more; more = time.Since(begin) < d {
				if err := cycle(ctx, a); err != nil {
					failed <- err
					return
				}
				cycles.Add(1)
			}
		})
	}
	wg.Wait()
	m := measured{Cycles: int(cycles.Load()), Seconds: time.Since(begin).Seconds()}
	select {
	case err := <-failed:
		return measured{}, err
	default:
		return m, nil
	}
}

func (p local) second(ctx context.Context, dir string, when occasion, trials int) (seen []trial, err error) {
	var deployed atomic.Int64
	a, err := p.open(ctx, dir, &deployed)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := a.close(ctx); err == nil {
			err = closing
		}
	}()
	for range trials {
		before := deployed.Load()
		q, err := a.raise(ctx)
		if err != nil {
			return nil, err
		}
		replies := twice(ctx, q, when)
		seen = append(seen, trial{Replies: replies, Effects: int(deployed.Load() - before)})
	}
	return seen, nil
}

// twice answers a question twice.
func twice(ctx context.Context, q question, when occasion) []reply {
	answer := func(colour string) reply {
		value, err := q(ctx, colour)
		if err != nil {
			return reply{Refused: refusal(err)}
		}
		return reply{Value: value}
	}
	switch when {
	case late:
		return []reply{answer("blue"), answer("green")}
	case again:
		return []reply{answer("blue"), answer("blue")}
	}
	replies := make([]reply, len(colours))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, colour := range colours {
		wg.Go(func() {
			<-start
			replies[i] = answer(colour)
		})
	}
	close(start)
	wg.Wait()
	return replies
}

// refusal names an error: a word where it has one, else its first line.
func refusal(err error) string {
	if code, ok := parleyCode(err); ok {
		return code
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
