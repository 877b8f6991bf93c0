package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/crash"
	"github.com/parley-go/parley/interrupt"
)

// The kill loop: the demo's tool in a child process that is killed with SIGKILL at random moments and started again, while several callers
// give random, repeated, conflicting and invalid answers. No acknowledged answer is lost, no tool runs a second time outside what R27
// allows, and every interaction ends.

const killChildEnv = "PARLEY_KILL_CHILD"

// killTools are the demo's tool under each of the choices of R27. Each run that comes to its effect leaves a line in a file.
func killTools(dir string) []*gate.Tool {
	var tools []*gate.Tool
	for name, replay := range map[string]gate.Replay{"never": gate.NeverAgain, "recover": gate.Recover, "repeat": gate.Repeatable} {
		handle := handler(dir)
		tools = append(tools, gate.NewTool(name, func(ctx context.Context, r release) (report, error) {
			done, err := handle(ctx, r)
			if err != nil {
				return done, err
			}
			return done, logEffect(ctx, dir, name, r)
		}, &gate.ToolOptions{Schema: json.RawMessage(releaseSchema), Replay: replay}))
	}
	return tools
}

type effect struct {
	Tool, Version string
	Recovery      bool
}

// logEffect appends with one write: what a process wrote stays when it is killed.
func logEffect(ctx context.Context, dir, tool string, r release) error {
	resume, _ := interrupt.ResumeFrom(ctx)
	line, err := json.Marshal(effect{tool, r.Version, resume.Recovery})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// A killRequest is a call with its token, which a call's own JSON form leaves out.
type killRequest struct {
	Call  gate.Call
	Token gate.Token
}

// A killReply is what the child answers: an outcome, or a code.
type killReply struct {
	Token   gate.Token
	Code    gate.Code
	Message string
	Result  *report
	Prompt  *gate.Prompt
}

func killChild(dir string) error {
	ctx := context.Background()
	store, err := boltstore.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: killTools(dir), Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}, Lifetime: gate.NoExpiry,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return crash.Serve(os.Stdin, os.Stdout, func(request json.RawMessage) any {
		var r killRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return killReply{Code: "bad request", Message: err.Error()}
		}
		r.Call.Token = r.Token
		outcome, err := g.Invoke(ctx, r.Call)
		reply := killReply{Prompt: outcome.Prompt}
		if outcome.Prompt != nil {
			reply.Token = outcome.Prompt.Token
		}
		var e *gate.Error
		if errors.As(err, &e) {
			reply.Code, reply.Message = e.Code, e.Message
		}
		if outcome.Result != nil {
			reply.Result = new(report)
			if err := json.Unmarshal(outcome.Result, reply.Result); err != nil {
				return killReply{Code: "bad result", Message: err.Error()}
			}
		}
		return reply
	})
}

// A killer keeps one child alive and kills it.
type killer struct {
	dir   string
	stop  chan struct{}
	calls chan struct{} // one for every request that is made

	mu    sync.Mutex
	child *crash.Child
	kills int
}

func (k *killer) start() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), killChildEnv+"="+k.dir)
	cmd.Stderr = os.Stderr
	child, err := crash.Start(cmd)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.child = child
	return err
}

func (k *killer) current() *crash.Child {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.child
}

// run kills and restarts until it is stopped: a moment after a random number of requests. At last it leaves a child running.
func (k *killer) run(rng *rand.Rand) error {
	for {
		for range 1 + rng.IntN(24) {
			select {
			case <-k.stop:
				return nil
			case <-k.calls:
			}
		}
		<-time.After(time.Duration(rng.IntN(4000)) * time.Microsecond)
		if err := k.current().Kill(); err != nil {
			return err
		}
		k.mu.Lock()
		k.kills++
		k.mu.Unlock()
		if err := k.start(); err != nil {
			return err
		}
	}
}

// call asks the current child; a death is told by ok being false.
func (k *killer) call(c gate.Call) (reply killReply, ok bool, err error) {
	select {
	case k.calls <- struct{}{}:
	case <-time.After(5 * time.Millisecond): // it is killing
	}
	err = k.current().Call(killRequest{c, c.Token}, &reply)
	if reply.Prompt != nil {
		reply.Prompt.Token = reply.Token
	}
	if errors.Is(err, crash.ErrDied) {
		return killReply{}, false, nil
	}
	return reply, err == nil, err
}

func TestKillLoop(t *testing.T) {
	interactions := 300
	if testing.Short() {
		interactions = 30
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &killer{dir: t.TempDir(), stop: make(chan struct{}), calls: make(chan struct{})}
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	killing := make(chan error, 1)
	go func() { killing <- k.run(rand.New(rand.NewPCG(seed, 0))) }()

	const callers = 6
	var wg sync.WaitGroup
	ends := make(chan string, interactions)
	for n := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(n+1)))
			for i := n; i < interactions; i += callers {
				c := newCaller(k, rng, i)
				if err := c.live(); err != nil {
					t.Errorf("interaction %d (%s): %v", i, c.call.Tool, err)
				}
				ends <- c.end
			}
		})
	}
	wg.Wait()
	close(k.stop)
	if err := <-killing; err != nil {
		t.Error(err)
	}
	if err := k.current().Kill(); err != nil {
		t.Error(err)
	}
	close(ends)
	count := map[string]int{}
	for end := range ends {
		count[end]++
	}
	t.Logf("%d kills; %d interactions ended: %v", k.kills, interactions, count)
	if k.kills < interactions/20 {
		t.Errorf("only %d kills: the test proves little", k.kills)
	}
	checkEffects(t, k)
	checkStore(t, k.dir)
}

// checkEffects holds the effects against R27: a tool of which nothing may run again had its effect once at most, others again
// only where a process was killed, and where it recovers, only in recovery.
func checkEffects(t *testing.T, k *killer) {
	text, err := os.ReadFile(filepath.Join(k.dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	ordinary, all := map[effect]int{}, map[string]int{}
	for line := range bytes.Lines(text) {
		var e effect
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all[e.Tool]++
		if !e.Recovery {
			ordinary[effect{e.Tool, e.Version, false}]++
		}
		if e.Tool != "recover" && e.Recovery {
			t.Errorf("%s %s ran in recovery", e.Tool, e.Version)
		}
	}
	for e, n := range ordinary {
		if n > 1 && e.Tool != "repeat" {
			t.Errorf("%s %s had its effect %d times as if nothing had been", e.Tool, e.Version, n)
		}
		if n > 1+k.kills {
			t.Errorf("%s %s had its effect %d times with %d kills", e.Tool, e.Version, n, k.kills)
		}
	}
	t.Logf("effects: %v", all)
}

func checkStore(t *testing.T, dir string) {
	store, err := boltstore.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	page, err := store.List(t.Context(), checkpoint.Query{Statuses: []checkpoint.Status{checkpoint.Open, checkpoint.Answered}})
	if err != nil || len(page.Records) > 0 {
		t.Errorf("interactions that have not ended: %d, %v", len(page.Records), err)
	}
}

// A caller lives through one interaction, and holds what it is told against what it was told before.
type caller struct {
	k    *killer
	rng  *rand.Rand
	call gate.Call
	// told holds, by round, the answers that were acknowledged.
	told   map[int]gate.Answers
	tokens map[int]gate.Token
	prompt *gate.Prompt
	end    string
}

func newCaller(k *killer, rng *rand.Rand, i int) *caller {
	tool := []string{"never", "recover", "repeat"}[i%3]
	version := fmt.Sprintf("1.0.%d", i)
	return &caller{k: k, rng: rng, told: map[int]gate.Answers{}, tokens: map[int]gate.Token{}, call: gate.Call{
		Tool: tool, Arguments: fmt.Appendf(nil, `{"service":"api","version":%q}`, version), Scope: "ann", Session: "s", StartID: tool + version,
		Facilities: []interrupt.Facility{interrupt.FacilityPermission, interrupt.FacilitySelection, interrupt.FacilityForm, interrupt.FacilityURL},
	}}
}

// live takes steps until the interaction has ended.
func (c *caller) live() error {
	for step := 0; c.end == ""; step++ {
		if step > 2000 {
			return errors.New("does not end")
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *caller) step() error {
	dice := c.rng.IntN(100)
	if c.prompt == nil { // after the start or a death: find out where it stands
		return c.rejoin()
	}
	switch {
	case dice < 60:
		return c.answer()
	case dice < 70:
		return c.rejoin()
	case dice < 80:
		return c.repeat()
	case dice < 90:
		return c.contradict()
	default:
		return c.garble()
	}
}

func (c *caller) rejoin() error {
	reply, ok, err := c.k.call(c.call)
	if !ok {
		return err
	}
	return c.take(reply, 0, nil)
}

// answer gives a random valid answer to the open prompt.
func (c *caller) answer() error {
	p := c.prompt
	call := c.call
	call.Token, call.Answers = p.Token, gate.Answers{p.Questions[0].ID: c.payload(p.Questions[0])}
	reply, ok, err := c.k.call(call)
	if !ok {
		c.prompt = nil // recorded or not: nobody can know yet
		return err
	}
	return c.take(reply, p.Round, call.Answers)
}

// repeat gives an acknowledged answer again.
func (c *caller) repeat() error {
	for round, answers := range c.told {
		call := c.call
		call.Token, call.Answers = c.tokens[round], answers
		reply, ok, err := c.k.call(call)
		if !ok {
			c.prompt = nil
			return err
		}
		if reply.Code == gate.ErrAnswerConflict {
			return fmt.Errorf("the acknowledged answer of round %d is a conflict: it was lost", round)
		}
		return c.take(reply, 0, nil)
	}
	return nil
}

// contradict gives another answer to an acknowledged round.
func (c *caller) contradict() error {
	for round := range c.told {
		call := c.call
		call.Token = c.tokens[round]
		call.Answers = gate.Answers{}
		for id := range c.told[round] {
			call.Answers[id] = interrupt.Decline("")
		}
		reply, ok, err := c.k.call(call)
		if !ok {
			c.prompt = nil
			return err
		}
		if reply.Code != gate.ErrAnswerConflict {
			return fmt.Errorf("another answer to round %d: %+v", round, reply)
		}
		return nil
	}
	return nil
}

// garble gives an invalid answer to the open prompt.
func (c *caller) garble() error {
	call := c.call
	call.Token, call.Answers = c.prompt.Token, gate.Answers{c.prompt.Questions[0].ID: json.RawMessage(`{"nonsense":1}`)}
	reply, ok, err := c.k.call(call)
	if !ok {
		c.prompt = nil
		return err
	}
	if reply.Code != gate.ErrInvalidAnswer {
		return fmt.Errorf("an invalid answer: %+v", reply)
	}
	return nil
}

// take holds a reply against what was told before. round and answers are what was sent, if anything was.
func (c *caller) take(reply killReply, round int, answers gate.Answers) error {
	if answers != nil && (reply.Prompt != nil || reply.Result != nil) {
		c.told[round] = answers
	}
	switch {
	case reply.Prompt != nil:
		p := reply.Prompt
		for known := range c.told {
			if known >= p.Round {
				return fmt.Errorf("round %d is asked again although its answer was acknowledged", known)
			}
		}
		if was, ok := c.tokens[p.Round]; ok && was != p.Token {
			return fmt.Errorf("round %d has another token", p.Round)
		}
		c.tokens[p.Round], c.prompt = p.Token, p
		return nil
	case reply.Result != nil:
		c.end = "result"
		return c.checkResult(reply.Result)
	}
	switch reply.Code {
	case gate.ErrBusy:
		return nil
	case gate.ErrRejected, gate.ErrDeclined, gate.ErrCancelled, gate.ErrAlreadyCompleted:
		c.end = string(reply.Code)
		return nil
	case gate.ErrOutcomeUnknown:
		c.end = string(reply.Code)
		if c.call.Tool != "never" {
			return fmt.Errorf("a tool that can go on: %+v", reply)
		}
		return nil
	case gate.ErrRecoveryOnly:
		c.end = string(reply.Code)
		if c.call.Tool != "recover" {
			return fmt.Errorf("a tool that does not recover: %+v", reply)
		}
		return nil
	}
	return fmt.Errorf("unexpected: %+v", reply)
}

// checkResult holds what the tool reports against the acknowledged answers.
func (c *caller) checkResult(r *report) error {
	for round, answers := range c.told {
		for _, payload := range answers {
			var p struct {
				SelectionIdx *int
				Content      *notes
			}
			if err := json.Unmarshal(payload, &p); err != nil {
				return err
			}
			if p.SelectionIdx != nil && whereTo().Options[*p.SelectionIdx].Title != r.Rollout {
				return fmt.Errorf("round %d: chose %d, the tool saw %q", round, *p.SelectionIdx, r.Rollout)
			}
			if p.Content != nil && *p.Content != r.notes {
				return fmt.Errorf("round %d: filled in %+v, the tool saw %+v", round, *p.Content, r.notes)
			}
		}
	}
	return nil
}

// payload is a random valid answer; now and then a no.
func (c *caller) payload(q gate.Question) json.RawMessage {
	switch c.rng.IntN(40) {
	case 0:
		return interrupt.Decline(q.ID)
	case 1:
		return interrupt.Cancel(q.ID)
	}
	switch q.Type {
	case interrupt.TypeToolPermission:
		if c.rng.IntN(20) == 0 {
			return json.RawMessage(`{"optionId":"reject_once"}`)
		}
		return json.RawMessage(`{"optionId":"allow_once"}`)
	case interrupt.TypeUserSelection:
		return fmt.Appendf(nil, `{"selectionIdx":%d}`, c.rng.IntN(3))
	case interrupt.TypeForm:
		return formPayload(c.rng)
	default:
		return json.RawMessage(`{}`)
	}
}

func formPayload(rng *rand.Rand) json.RawMessage {
	content := notes{Notes: fmt.Sprintf("note %d <&>", rng.IntN(1000)), Instances: 1 + rng.IntN(20), Notify: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		content.Channel = []string{"stable", "beta", "nightly"}[rng.IntN(3)]
	}
	payload, err := json.Marshal(map[string]notes{"content": content})
	if err != nil {
		panic(err)
	}
	return payload
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(killChildEnv); dir != "" {
		if err := killChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
