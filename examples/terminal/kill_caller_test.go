package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/crash"
	"github.com/parley-go/parley/interrupt"
)

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

// run kills and restarts until it is stopped: a moment after a random number of requests. At last
// it leaves a child running.
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

// A caller lives through one interaction, and holds what it is told against what it was told
// before.
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

// take holds a reply against what was told before. round and answers are what was sent, if anything
// was.
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
