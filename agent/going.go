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

// A going is the time in which a run goes on, from its start or resume to where it stops, and what
// is known in it. The context of everything that eino runs carries it.
type going struct {
	gate       *gate.Gate
	face       *gate.Face
	run        *gate.Run
	scope      string
	facilities []interrupt.Facility
	noted      notes // of the run's last commit
	store      capture
	begun      []*schema.Message // what Start was given; nil where the run is resumed
	given      []Answer          // by the caller
	refused    []Problem         // those of them that were refused before it went on
	caller     context.Context   // ends with the caller's, and when the run is lost; eino's contexts do not
	tell       func(Event)
	cancelled  bool // set by Cancel: the tools that wait are told so, and nothing else happens

	mu      sync.Mutex          // guards what follows
	answers map[string]Answer   // by start ID
	turns   map[string]int      // how many answers a model gave so far, by the path of its agent
	latest  map[string][]string // the ids of the calls of its latest answer, in their order
	unused  map[string]string   // the name under which that answer is kept, while no call of it was made
	calls   map[string]envelope // the calls that wait, by start ID
	trouble map[string]error    // why a call that waits cannot go on, by start ID
	told    map[string]bool     // the calls that eino told to be interrupted, by start ID
}

type goingKey struct{}

func with(ctx context.Context, g *going) context.Context {
	return context.WithValue(ctx, goingKey{}, g)
}

func from(ctx context.Context) *going {
	g, _ := ctx.Value(goingKey{}).(*going)
	return g
}

// callerContext is ctx, which is eino's, but also ends with the caller's.
func (g *going) callerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.caller, cancel)
	return ctx, func() { stop(); cancel() }
}

// brokenOff returns why the run does not go on here: its caller has left, or the run was lost. It
// returns nil where the run goes on.
func (g *going) brokenOff() error {
	ctx, cancel := g.run.Context(g.caller) // g.caller itself may learn of a lost run a little later
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

// ended forgets the turns of an agent in a tool that has come to its end. No other agent can come
// to its place.
func (g *going) ended(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.turns, func(of string, _ int) bool { return strings.HasPrefix(of, path+"\x01") })
}

// used notes that a call of the latest answer is made. From then on the answer has to stay kept.
func (g *going) used(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unused, path)
}

// forget drops the answers of which no tool call was made. Eino may be unable to go on from such an
// answer, for example because it calls a tool that does not exist; the run would then fail with it
// every time.
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

// position is where a call is among the calls of the latest answer.
func (g *going) position(path, call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Index(g.latest[path], call)
}

// turnsOf is how many answers the model of the agent with that path gave. One that failed does not
// count: nothing follows from it, and a run that is resumed does not meet it again.
func (g *going) turnsOf(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns[path]
}

// maxCall is the longest id of a call that becomes part of a start ID unchanged.
const maxCall = 64

// startID is the start ID of one tool call of the run. It is made of the place of the caller, the
// model's id for the call, and the turn, because models use their ids again. Whoever wrote what the
// model read may have chosen the id, so no two calls may get the same start ID by any choice of
// ids.
func (g *going) startID(by place, turn int, call string) string {
	if len(call) > maxCall {
		sum := sha256.Sum256([]byte(call))
		call = "sha256:" + hex.EncodeToString(sum[:]) // longer than maxCall, so no id is taken for it
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

// waits notes that a call waits, made by the agent with that path. why is set where it does not
// wait for a person.
func (g *going) waits(path string, e envelope, why error) {
	e.path = path
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[e.Start] = e
	if why != nil {
		g.trouble[e.Start] = why
	}
}

// surfaces notes that eino told of an interrupt. It reports whether that is a call that waits.
func (g *going) surfaces(info any) bool {
	start, _ := info.(string)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.calls[start]
	g.told[start] = true
	return ok
}

// swallowed returns ErrSwallowed where a call waits and eino did not tell of its interrupt:
// something took it for one that has ended.
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

// waitsIn returns ErrSwallowed where a call of the agent with that path waits. Its model, which is
// about to be asked what comes next, would otherwise be told that the call has ended.
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
	past := slices.Clone(g.noted.Past[max(0, len(g.noted.Past)-maxPast):])
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

// problems are the answers that were refused, and why calls that wait cannot go on.
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
