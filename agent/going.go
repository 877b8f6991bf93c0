package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A going is one going of a run, from its start or resume to where it stops. It travels in the
// context of everything that eino runs.
type going struct {
	face       *gate.Face
	run        *gate.Run
	scope      string
	facilities []interrupt.Facility
	noted      notes // with the run, when it was gone on with
	store      capture
	begun      []*schema.Message // what Start was given; nil where the run is resumed
	refused    []Problem         // answers that were refused before it went on
	caller     context.Context   // ends when the caller's does; eino's own does not
	tell       func(Event)
	cancelled  bool // the run is being cancelled: what waits is told, and nothing else happens

	mu      sync.Mutex          // guards what follows
	answers map[string]Answer   // by start ID
	turns   map[string]int      // answers of a model so far, by the path of its agent
	latest  map[string][]string // the ids of the calls of the latest one, in its order
	unused  map[string]string   // under which name it is kept, where it is new and none of its calls has come
	calls   map[string]envelope // that wait, by start ID
	trouble map[string]error    // why a call that waits cannot go on, by start ID
	told    map[string]bool     // the calls of whose waiting eino told, by start ID
}

type goingKey struct{}

func with(ctx context.Context, g *going) context.Context {
	return context.WithValue(ctx, goingKey{}, g)
}

func from(ctx context.Context) *going {
	g, _ := ctx.Value(goingKey{}).(*going)
	return g
}

// callerContext is ctx, which eino gave, and ends with the caller's, too.
func (g *going) callerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.caller, cancel)
	return ctx, func() { stop(); cancel() }
}

// brokenOff is why the run does not go on here: its caller has left, or it was lost. nil: it does.
func (g *going) brokenOff() error {
	ctx, cancel := g.run.Context(g.caller) // which tells at once
	defer cancel()
	return context.Cause(ctx)
}

// answered notes that the model of the agent with that path gave its nth answer.
func (g *going) answered(path string, n int, answer *schema.Message) {
	var calls []string
	for _, call := range answer.ToolCalls {
		calls = append(calls, call.ID)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns[path], g.latest[path] = n, calls
}

// keeps notes that the latest answer is kept under that name.
func (g *going) keeps(path, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unused[path] = name
}

// ended forgets the turns of an agent in a tool that came to its end: its place is never another's.
func (g *going) ended(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.turns, func(of string, _ int) bool { return strings.HasPrefix(of, path+"\x01") })
}

// used notes that a call of the latest answer has come, so that it has to stay.
func (g *going) used(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unused, path)
}

// forget drops the answers that led to no call of a tool: where eino cannot go on from one, such as
// from a call of a tool that there is not, the run would fail with it for ever.
func (g *going) forget(ctx context.Context) error {
	g.mu.Lock()
	unused := slices.Sorted(maps.Values(g.unused))
	g.mu.Unlock()
	for _, name := range unused {
		if err := g.run.Keep(ctx, name, nil); err != nil {
			return fmt.Errorf("forget the model's answer: %w", err)
		}
	}
	return nil
}

// position is where a call stands in the latest answer.
func (g *going) position(path, call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Index(g.latest[path], call)
}

// turnsOf is how many answers there are. One that failed is none: nothing follows from it, and a
// run that is resumed does not meet it again.
func (g *going) turnsOf(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns[path]
}

// maxCall is the longest id of a call that is part of a start ID as it is.
const maxCall = 64

// startID is the key of one tool call in the run: the model's id for it, and which of the model's
// answers it is from, since models use their ids again. Ids can be chosen by whoever wrote what the
// model read: no two calls have one start ID, however they are chosen.
func (g *going) startID(by place, turn int, call string) string {
	if len(call) > maxCall {
		sum := sha256.Sum256([]byte(call))
		call = "sha256:" + hex.EncodeToString(sum[:]) // longer than one that is not shortened
	}
	if by.isDeep {
		return fmt.Sprintf("%s/%s/%d/%s", g.run.ID(), shortened(by.path), turn, call)
	}
	return fmt.Sprintf("%s/%d/%s", g.run.ID(), turn, call)
}

func shortened(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// answer takes the caller's answer to a call, once.
func (g *going) answer(start string) (Answer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.answers[start]
	delete(g.answers, start)
	return a, ok
}

// waits notes a call of the agent with that path that waits; why is set where that is not for a
// person.
func (g *going) waits(path string, e envelope, why error) {
	e.path = path
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[e.Start] = e
	if why != nil {
		g.trouble[e.Start] = why
	}
}

// surfaces notes that an interrupt of eino's is a call that waits. It reports whether it is one.
func (g *going) surfaces(info any) bool {
	start, _ := info.(string)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.calls[start]
	g.told[start] = true
	return ok
}

// swallowed reports whether a call that waits was taken for one that has ended.
func (g *going) swallowed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for start, e := range g.calls {
		if !g.told[start] {
			return fmt.Errorf("call of tool %q: %w", e.Tool, ErrSwallowed)
		}
	}
	return nil
}

// waitsIn is swallowed for the calls of one agent, whose model is to be asked what comes after
// them.
func (g *going) waitsIn(path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.calls {
		if e.path == path {
			return fmt.Errorf("call of tool %q: %w", e.Tool, ErrSwallowed)
		}
	}
	return nil
}

// notes are what the run's record keeps of it.
func (g *going) notes() notes {
	g.mu.Lock()
	defer g.mu.Unlock()
	past := slices.Clone(g.noted.Past)
	for _, e := range g.noted.Calls {
		if _, waits := g.calls[e.Start]; !waits && e.Interaction != "" {
			past = append(past, e.Interaction)
		}
	}
	return notes{
		V: notesVersion, Conversation: g.noted.Conversation, Streaming: g.noted.Streaming, Turns: maps.Clone(g.turns),
		Calls: slices.SortedFunc(maps.Values(g.calls), inOrder), Past: past,
	}
}

// problems are why calls that wait cannot go on.
func (g *going) problems() []Problem {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.refused)
	for _, e := range slices.SortedFunc(maps.Values(g.calls), inOrder) {
		if err, ok := g.trouble[e.Start]; ok {
			id, _ := checkpoint.ParseID(e.Interaction) // zero where there is none
			all = append(all, Problem{Origin: e.origin(), Interaction: id, Err: err})
		}
	}
	return all
}
