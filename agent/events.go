package agent

import (
	"context"
	"iter"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/parley-go/parley/gate"
)

// Events are what happens in a run, from where it begins or is resumed to where it stops. Range
// over all of them to show it as it happens, or take only the end with [Events.Run]:
//
//	for event, err := range a.Start(ctx, start).All() {
//		if err != nil {
//			return err
//		}
//		show(event)
//	}
//	run, err := a.Start(ctx, start).Run()
//
// Nothing happens before that, and what Start was given must not change until then. Events can be
// taken once: the second time there is only [ErrTaken], and nothing runs.
type Events struct {
	ctx   context.Context // of Start, Resume, Wait or Cancel
	work  func(ctx context.Context, tell func(Event)) (*Run, error)
	taken atomic.Bool
}

// eventsOf returns the events of work. Work tells them itself, all but those of where the run
// stands at the end, which is what it returns.
func eventsOf(ctx context.Context, work func(ctx context.Context, tell func(Event)) (*Run, error)) *Events {
	return &Events{ctx: ctx, work: work}
}

// Run lets the run go on until it stops, in the caller's goroutine, and returns where it stands
// then. Where it returns a run beside an error, the run's Status says whether it can be resumed.
func (e *Events) Run() (*Run, error) {
	if e.taken.Swap(true) {
		return nil, ErrTaken
	}
	return e.work(e.ctx, func(Event) {})
}

// All lets the run go on until it stops, and yields each event as it happens.
//
// Leaving the loop early, even by a panic, does the same as cancelling the context: models and
// tools are cancelled, the run stops, and the questions that were asked until then are kept. The
// loop is left when all goroutines of the run have ended. It waits for a tool that does not heed
// its context, and for one that is not under the gate, whose context is not cancelled.
// [Agent.Resume] can then go on with the run, under the id that [RunStarted] told, unless the run
// ended just before.
//
// A slow loop holds up nothing: models and tools run on, and the events wait in memory.
//
// Events come in the order in which things happen. RunStarted is the first; only events of a run
// that [Start].CancelOpen ends come before it. The text of a model's answer comes before the tool
// calls of that answer start. Of one call come ToolStarted, then ToolProgress and ToolText, then
// ToolEnded; events of calls that run at the same time are mixed. After the run's commit (R25) come
// an Asked for each open question, and then RunWaiting, RunFinished or RunFailed: when the loop
// gets that, the run can be resumed already.
//
// A run that is resumed after a crash, an error or a loop that was left tells again what happened
// since its last commit, with the same Turn and StartID.
//
// An error is the last pair, and comes without an event. Where it is known how the run stands, the
// event before it says so.
func (e *Events) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if e.taken.Swap(true) {
			yield(nil, ErrTaken)
			return
		}
		ctx, cancel := context.WithCancel(e.ctx)
		told := queue{some: make(chan struct{}, 1)}
		ended := make(chan struct{})
		var panicked *gate.PanicError
		go func() {
			defer close(ended)
			defer func() {
				if value := recover(); value != nil { // it is the loop's, as if there were no goroutine
					panicked = &gate.PanicError{Value: value, Stack: debug.Stack()}
				}
			}()
			told.end(e.work(ctx, func(e Event) { told.put(e, nil) }))
		}()
		defer func() { // deferred, because a loop can also be left by a panic or runtime.Goexit
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
		if panicked != nil {
			panic(panicked)
		}
	}
}

// A queue holds the events that the loop has not taken yet. It has no bound: a slow loop would
// otherwise hold up a tool, and with it the tool's claim.
type queue struct {
	some chan struct{} // holds a value where there may be something to take

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

// end puts the events of where the run stands at the end.
func (q *queue) end(run *Run, err error) {
	if run != nil {
		for _, question := range run.Questions {
			q.put(Asked{question}, nil)
		}
		q.put(stopped(run), nil)
	}
	if err != nil {
		q.put(nil, err)
	}
}

func (q *queue) take() []pair {
	q.mu.Lock()
	defer q.mu.Unlock()
	pairs := q.pairs
	q.pairs = nil
	return pairs
}
