package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// step does one thing to the run.
func (p *playing) step() {
	p.rough = false
	proc := p.processes[p.IntN(len(p.processes))]
	switch roll := p.IntN(100); {
	case roll < 32:
		p.note("answer")
		p.goOn(proc, p.answers())
	case roll < 38:
		p.note("go on")
		p.goOn(proc, nil)
	case roll < 45:
		p.again(proc)
	case roll < 53:
		p.elsewhere(proc)
	case roll < 60:
		p.note("restart")
		p.restart(proc)
	case roll < 66:
		p.note("crash")
		p.crash()
	case roll < 82:
		p.faulty(proc)
	case roll < 90:
		p.together()
	case roll < 94:
		p.brokenOff(proc)
	case roll < 98 && len(p.processes) == 1:
		p.note("another process")
		p.start()
	case roll < 98:
		p.note("a process is killed")
		p.killed(proc)
	default:
		p.note("eleven minutes go by")
		time.Sleep(11 * time.Minute)
	}
}

// disturb notes that something was broken off.
func (p *playing) disturb() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.troubled, p.stale, p.rough = true, true, true
	p.disturbed++
}

// restart ends a process in order, and starts another one.
func (p *playing) restart(proc *process) {
	p.processes = slices.DeleteFunc(p.processes, func(one *process) bool { return one == proc })
	proc.close()
	p.start()
}

// killed is the death of one process.
func (p *playing) killed(proc *process) {
	p.disturb()
	p.disk.mu.Lock()
	proc.store.kill()
	p.disk.mu.Unlock()
	p.restart(proc)
}

// crash is the death of the machine.
func (p *playing) crash() {
	p.disturb()
	p.disk.mu.Lock()
	for _, proc := range p.processes {
		proc.store.kill()
	}
	p.disk.mu.Unlock()
	for _, proc := range p.processes {
		proc.close()
	}
	p.processes = nil
	p.disk = p.disk.crashed(p, p.Rand, p.forgets)
	p.start()
}

// resume goes on with the run, or begins it where there is none.
func (p *playing) resume(ctx context.Context, proc *process, answers []agent.Answer) (*agent.Run, error) {
	if !p.run.IsZero() {
		return proc.agent.Resume(ctx, agent.Resume{Scope: "ann", Run: p.run, Answers: answers, Facilities: everything}).Run()
	}
	start := agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("top")}, Facilities: everything}
	return proc.agent.Start(ctx, start).Run()
}

// goOn does so with nothing in the way.
func (p *playing) goOn(proc *process, answers []agent.Answer) {
	p.find(proc)
	before := p.open
	run, err := p.resume(context.Background(), proc, answers)
	switch {
	case errors.Is(err, gate.ErrInvalidContinuation) && p.stale && len(answers) > 0: // it went on further than anybody was told
		p.goOn(proc, nil)
	case err != nil && !isModels(err):
		p.violated("resume: %v", err)
	case err == nil:
		p.took(run)
		p.settled(before, answers)
	}
	p.find(proc)
}

// find finds the run in the store: where it was broken off while it began, nobody was told its id.
func (p *playing) find(proc *process) {
	if !p.run.IsZero() && !p.troubled {
		return
	}
	page, err := proc.agent.Runs(context.Background(), gate.RunQuery{Scope: "ann", Ended: true})
	switch {
	case err != nil:
		p.violated("list runs: %v", err)
	case len(page.Runs) > 1:
		p.violated("there are %d runs", len(page.Runs))
	case len(page.Runs) == 1:
		p.run = page.Runs[0].ID
	case len(p.effects) > 0, len(p.seen) > 0, p.ended != nil:
		p.violated("the run is gone, with %d effects", len(p.effects))
	default: // it did nothing yet that had to be durable
		p.run = checkpoint.ID{}
	}
}

// took looks at where the run stands.
func (p *playing) took(run *agent.Run) {
	p.run, p.open, p.stale = run.ID, run.Questions, false
	p.note("  %s, %d open, problems %v", run.Status, len(run.Questions), run.Problems)
	for _, q := range run.Questions {
		id, at := idOf(q), q.Interaction.String()+roundOf("", q.Prompt.Round)
		if token, known := p.tokens[at]; known && token != q.Prompt.Token {
			p.violated("the token of %s, round %d, is another one", id, q.Prompt.Round)
		}
		if known, ok := p.shown[id]; ok && known != q.Interaction {
			p.violated("call %s asks in two interactions", id)
		}
		if q.Prompt.Token == "" {
			p.violated("the question of %s has no token", id)
		}
		p.tokens[at], p.shown[id] = q.Prompt.Token, q.Interaction
		p.seen = append(p.seen, q)
	}
	if run.Status == agent.Finished || run.Status == agent.Failed {
		if p.ended != nil && p.ended.Message != run.Message {
			p.violated("the run ended twice, with %q and %q", p.ended.Message, run.Message)
		}
		p.ended = run
	}
}

func idOf(q agent.Question) string {
	var in job
	_ = json.Unmarshal(q.Prompt.Arguments, &in) // what it asks is judged with its effect
	return in.ID
}

// settled notes the questions that a no has closed: nothing that comes later makes a yes of it.
func (p *playing) settled(before []agent.Question, answers []agent.Answer) {
	for _, q := range before {
		at := roundOf(idOf(q), q.Prompt.Round)
		given := slices.ContainsFunc(answers, func(a agent.Answer) bool { return a.Interaction == q.Interaction })
		still := slices.ContainsFunc(p.open, func(o agent.Question) bool {
			return o.Interaction == q.Interaction && o.Prompt.Round == q.Prompt.Round
		})
		p.mu.Lock()
		if given && !still && !p.yes[at] {
			p.no[at] = true
		}
		p.mu.Unlock()
	}
}

// answers are those to some of the open questions, in some order.
func (p *playing) answers() []agent.Answer {
	var all []agent.Answer
	for _, i := range p.Perm(len(p.open)) {
		if p.chance(60) {
			all = append(all, p.answerTo(p.open[i], p.mind()))
		}
	}
	return all
}

// mind is what a person makes of a question.
func (p *playing) mind() string {
	return []string{"allow", "allow", "allow", "allow", "reject", "decline", "cancel", "invalid"}[p.IntN(8)]
}

// answerTo answers a prompt whole.
func (p *playing) answerTo(q agent.Question, mind string) agent.Answer {
	a := agent.Answer{Interaction: q.Interaction, Token: q.Prompt.Token, Answers: gate.Answers{}}
	for _, one := range q.Prompt.Questions {
		permission := one.Type == interrupt.TypeToolPermission
		switch {
		case mind == "decline":
			a.Answers[one.ID] = interrupt.Decline(one.ID)
		case mind == "cancel":
			a.Answers[one.ID] = interrupt.Cancel(one.ID)
		case permission && mind == "allow":
			a.Answers[one.ID] = json.RawMessage(allow)
		case permission && mind == "reject":
			a.Answers[one.ID] = json.RawMessage(reject)
		case permission:
			a.Answers[one.ID] = json.RawMessage(`{"optionId":"perhaps"}`)
		default:
			a.Answers[one.ID] = json.RawMessage(`{"selectionIdx":1}`)
		}
	}
	p.note("  %s: %s, round %d", mind, idOf(q), q.Prompt.Round)
	if mind == "allow" {
		p.mu.Lock()
		p.yes[roundOf(idOf(q), q.Prompt.Round)] = true
		p.mu.Unlock()
	}
	return a
}

// again gives an answer to a question that may be closed, with another mind perhaps.
func (p *playing) again(proc *process) {
	if len(p.seen) == 0 {
		return
	}
	q := p.seen[p.IntN(len(p.seen))]
	p.note("answer again")
	if slices.ContainsFunc(p.open, func(o agent.Question) bool { return o.Interaction == q.Interaction }) {
		q = p.open[slices.IndexFunc(p.open, func(o agent.Question) bool { return o.Interaction == q.Interaction })]
		p.goOn(proc, []agent.Answer{p.answerTo(q, p.mind())})
		return
	}
	// It is closed: a yes does not count any more.
	at := roundOf(idOf(q), q.Prompt.Round)
	p.mu.Lock()
	was := p.yes[at]
	p.mu.Unlock()
	a := p.answerTo(q, p.mind())
	p.mu.Lock()
	p.yes[at] = was
	p.mu.Unlock()
	p.find(proc)
	run, err := p.resume(context.Background(), proc, []agent.Answer{a})
	if err == nil {
		p.took(run)
	} else if !errors.Is(err, gate.ErrInvalidContinuation) && !isModels(err) {
		p.violated("answered again: %v", err)
	}
}

// isModels reports whether an error is that of a model that is down. eino does not wrap what comes
// out of a stream.
func isModels(err error) bool { return strings.Contains(err.Error(), errModel.Error()) }

// elsewhere answers by another road.
func (p *playing) elsewhere(proc *process) {
	if len(p.open) == 0 {
		return
	}
	p.note("answer elsewhere")
	q := p.open[p.IntN(len(p.open))]
	a := p.answerTo(q, p.mind())
	if p.chance(50) {
		a.Token, a.By = "", "somebody else"
		run, err := p.resume(context.Background(), proc, []agent.Answer{a})
		if err == nil {
			p.took(run)
		}
		return // else it is refused, and stays open
	}
	_ = proc.gate.Answer(context.Background(), gate.AnswerRequest{
		Interaction: q.Interaction, Round: q.Prompt.Round, Scope: "ann", By: "the inbox", Answers: a.Answers,
	})
}

// faulty goes on while the disk fails or the process dies at one of its commits.
func (p *playing) faulty(proc *process) {
	p.find(proc)
	f := []fault{dieBefore, dieAfter, dieBefore, dieAfter, failBefore, failAfter}[p.IntN(6)]
	after := p.IntN(8)
	p.note("fault %d after %d commits", f, after)
	answers := p.answers()
	p.disturb()
	proc.store.arm(f, after)
	run, err := p.resume(context.Background(), proc, answers)
	p.note("  %v", err)
	proc.store.arm(noFault, 0)
	if err == nil {
		p.took(run)
	}
	switch {
	case !proc.store.isDead():
	case p.chance(50):
		p.crash()
	default:
		p.killed(proc)
	}
}

// together resumes twice at once.
func (p *playing) together() {
	one, other := p.processes[p.IntN(len(p.processes))], p.processes[p.IntN(len(p.processes))]
	if p.find(one); p.run.IsZero() {
		return
	}
	p.note("two at once")
	first := p.answers()
	second := first
	if p.chance(50) {
		second = p.answers()
	}
	var wg sync.WaitGroup
	later := time.Duration(p.IntN(4)) * 20 * time.Millisecond // while tools of the first run, or at once
	wg.Go(func() { p.race(one, first) })
	wg.Go(func() {
		time.Sleep(later)
		p.race(other, second)
	})
	wg.Wait()
	p.goOn(one, nil)
}

func (p *playing) race(proc *process, answers []agent.Answer) {
	_, err := p.resume(context.Background(), proc, answers)
	if err != nil && !errors.Is(err, gate.ErrBusy) && !errors.Is(err, gate.ErrInvalidContinuation) && !isModels(err) {
		p.violated("resumed twice at once: %v", err)
	}
}

// brokenOff goes on until a tool is entered, and then its caller leaves.
func (p *playing) brokenOff(proc *process) {
	p.find(proc)
	p.note("break off")
	p.disturb()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.mu.Lock()
	p.cancel = cancel
	p.mu.Unlock()
	run, err := p.resume(ctx, proc, p.answers())
	p.mu.Lock()
	p.cancel = nil
	p.mu.Unlock()
	if p.note("  %v", err); err == nil {
		p.took(run)
	}
}
