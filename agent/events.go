package agent

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// Events are what happens in a run from where it begins, or goes on, to where it stops. Range over
// them to show it as it happens, or take the end alone with [Events.Run]:
//
//	for event, err := range a.Start(ctx, start) {
//		if err != nil {
//			return err
//		}
//		show(event)
//	}
//	run, err := a.Start(ctx, start).Run()
//
// Nothing happens before the range begins, and what Start was given must not change until then.
// Events are ranged over once: a second range gets [ErrRanged] as its only pair, and nothing runs.
//
// Leaving the loop early, by a panic too, is the same as cancelling the context: what models and
// tools do is broken off, the run stops and is released, and what it asked until then is kept. The
// loop is left when that is done and no goroutine of the run is left; a tool that does not heed its
// context is waited for, and so is one that is not under the gate, whose context does not end.
// [Agent.Resume] then goes on with the run, whose id [RunGoing] told, unless it ended just before.
//
// A slow loop holds up nothing: models and tools run on, and the events wait for it in memory.
//
// The order is that in which things happened. RunGoing comes first; before it come only events of
// the runs that Start.CancelOpen ends. The text of a model's answer comes before the tool calls in
// it start, and of one call come ToolStarted, then ToolProgress and ToolText, then ToolEnded.
// Events of calls that run at the same time are mixed. What comes last is told after the run's
// commit (R25): Asked for each open question, and then RunWaiting, RunFinished or RunFailed, in
// whose turn of the loop the run can be resumed already.
//
// A run that goes on after a crash, an error or a loop that was left tells again what happened
// since its last commit, with the same Turn and StartID.
//
// An error comes as the last pair, without an event. Where it is known how the run stands, that is
// the event before it.
type Events iter.Seq2[Event, error]

// Run ranges over the events and returns where the run stands at the end. A run that comes with an
// error can be resumed, or has failed, as its Status says.
func (events Events) Run() (run *Run, err error) {
	for event, failed := range events {
		switch event := event.(type) {
		case RunWaiting:
			run = event.Run
		case RunFinished:
			run = event.Run
		case RunFailed:
			run = event.Run
		}
		err = failed
	}
	return run, err
}

// eventsOf are the events of work, which tells all but the last ones itself.
func eventsOf(ctx context.Context, work func(ctx context.Context, tell func(Event)) (*Run, error)) Events {
	var ranged atomic.Bool
	return func(yield func(Event, error) bool) {
		if ranged.Swap(true) {
			yield(nil, ErrRanged)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		told := queue{some: make(chan struct{}, 1)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run, err := work(ctx, func(e Event) { told.put(e, nil) })
			if run != nil {
				for _, q := range run.Questions {
					told.put(Asked{q}, nil)
				}
				told.put(stopped(run), nil)
			}
			if err != nil {
				told.put(nil, err)
			}
		}()
		defer func() { // also where the loop is left, by a panic or by the end of its goroutine
			cancel()
			<-ended
		}()
		for goesOn := true; goesOn; {
			select {
			case <-told.some:
			case <-ended:
				goesOn = false
			}
			for _, p := range told.take() {
				if !yield(p.event, p.err) {
					return
				}
			}
		}
	}
}

// A queue holds the events that the loop has not come to. It has no bound, so that a slow loop does
// not hold up a tool that holds its claim.
type queue struct {
	some chan struct{} // has one where there may be something to take

	mu    sync.Mutex // guards pairs
	pairs []pair
}

type pair struct {
	event Event
	err   error
}

func (q *queue) put(e Event, err error) {
	q.mu.Lock()
	q.pairs = append(q.pairs, pair{e, err})
	q.mu.Unlock()
	select {
	case q.some <- struct{}{}:
	default:
	}
}

func (q *queue) take() []pair {
	q.mu.Lock()
	defer q.mu.Unlock()
	pairs := q.pairs
	q.pairs = nil
	return pairs
}
