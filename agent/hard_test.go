package agent_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
	"github.com/parley-go/parley/interrupt"
)

// A slots store is what eino asks for, in memory.
type slots struct{ sync.Map }

func (s *slots) Get(_ context.Context, id string) ([]byte, bool, error) {
	blob, ok := s.Load(id)
	if !ok {
		return nil, false, nil
	}
	return blob.([]byte), true, nil
}

func (s *slots) Set(_ context.Context, id string, blob []byte) error {
	s.Store(id, bytes.Clone(blob))
	return nil
}

// einoAlone is an agent whose tool pays when it is resumed, as eino's documentation shows it. It
// returns a function that answers the one question.
func einoAlone(t *testing.T, payments *atomic.Int64) func() error {
	t.Helper()
	pay := native{"pay", func(ctx context.Context) (string, error) {
		was, _, _ := tool.GetInterruptState[string](ctx)
		target, has, _ := tool.GetResumeContext[string](ctx)
		if !was || !target || !has {
			return "", tool.StatefulInterrupt(ctx, "pay?", "pay")
		}
		payments.Add(1)
		return "paid", nil
	}}
	build := chat("A", after(scripted.Do(call("c", "pay", `{}`))), compose.ToolsNodeConfig{Tools: []tool.BaseTool{pay}})
	store := &slots{}
	runner := func() *adk.Runner { // with an agent of its own: one agent in several runs at once is a data race of eino's
		a, err := build(context.Background())
		if err != nil {
			t.Error(err)
		}
		return adk.NewRunner(context.Background(), adk.RunnerConfig{Agent: a, CheckPointStore: store})
	}
	id := ""
	events := runner().Run(t.Context(), []*schema.Message{schema.UserMessage("x")}, adk.WithCheckPointID("cp"))
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Action != nil && event.Action.Interrupted != nil {
			id = event.Action.Interrupted.InterruptContexts[0].ID
		}
	}
	return func() error {
		events, err := runner().ResumeWithParams(context.Background(), "cp", &adk.ResumeParams{Targets: map[string]any{id: "yes"}})
		if err != nil {
			return err
		}
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			if event.Err != nil {
				return event.Err
			}
		}
		return nil
	}
}

// R26, R27: the same answer three times pays once; eino alone pays three times.
func TestThreeAnswersPayOnce(t *testing.T) {
	var alone, effects atomic.Int64
	answer := einoAlone(t, &alone)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(call("c", "deploy", deployInput{"a"}))),
	})
	run := w.start()
	for range 3 {
		if err := answer(); err != nil {
			t.Fatal(err)
		}
		wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "[deployed a]")
	}
	if alone.Load() != 3 || effects.Load() != 1 {
		t.Errorf("eino alone paid %d times (want 3), ours %d times (want 1)", alone.Load(), effects.Load())
	}
}

// R23: of sixteen that resume at once one goes on and pays, the others get busy or are told the end;
// with eino alone all sixteen pay.
func TestSixteenResumesPayOnce(t *testing.T) {
	var alone, effects atomic.Int64
	answer := einoAlone(t, &alone)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(call("c", "deploy", deployInput{"a"}))),
	})
	run := w.start()
	yes := to(of(t, run, "c"), allow)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := answer(); err != nil {
				t.Error(err)
			}
			again, err := w.tryResume(run.ID, yes)
			if err != nil && !errors.Is(err, gate.ErrBusy) || err == nil && again.Status != agent.Finished {
				t.Errorf("have %+v, %v", again, err)
			}
		})
	}
	wg.Wait()
	if alone.Load() != 16 || effects.Load() != 1 {
		t.Errorf("eino alone paid %d times (want 16), ours %d times (want 1)", alone.Load(), effects.Load())
	}
}

// Tool calls that cannot be told apart are refused before any runs, and the run can go on when the
// model does better.
func TestToolCallIDs(t *testing.T) {
	for name, bad := range map[string]*schema.Message{
		"empty": scripted.Do(call("", "deploy", deployInput{"a"})),
		"twice": scripted.Do(call("c", "deploy", deployInput{"a"}), call("c", "deploy", deployInput{"b"})),
	} {
		for _, streaming := range []bool{false, true} {
			var effects atomic.Int64
			good := false
			m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
				if r := results(input); r != "" {
					return scripted.Say(r), nil
				}
				if good {
					return scripted.Do(call("c", "deploy", deployInput{"a"})), nil
				}
				return bad, nil
			})
			w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m, streaming: streaming})
			run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
			wantCode(t, name, err, agent.ErrToolCallIDs)
			list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
			if err != nil || len(list.Interactions) > 0 {
				t.Errorf("%s: %d interactions, %v", name, len(list.Interactions), err)
			}
			good = true
			wantWaiting(t, w.resume(run.ID), "c")
		}
	}
}

// Models use their ids again: a call of a later turn is another call.
func TestToolCallIDsOfLaterTurns(t *testing.T) {
	var effects atomic.Int64
	m := scripted.New(
		scripted.Do(call("c", "deploy", deployInput{"a"})), scripted.Do(call("c", "deploy", deployInput{"a"})), scripted.Say("done"))
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
	run := w.start()
	run = w.resume(run.ID, to(of(t, run, "c"), allow))
	wantWaiting(t, run, "c")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "c"), allow)), "done")
	if effects.Load() != 2 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R21: a run that is unknown, of another scope, swept or tampered with is refused, and loses nothing.
func TestResumeBadRuns(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	now := time.Now()
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(call("c", "deploy", deployInput{"a"}))),
		gate: gate.Options{Now: func() time.Time { return now }},
	})
	run := w.start()
	yes := to(of(t, run, "c"), allow)
	_, err := w.tryResume(checkpoint.ID{1})
	wantCode(t, "unknown", err, gate.ErrInvalidContinuation)
	_, err = w.agent.Resume(t.Context(), agent.Resume{Scope: "bob", Run: run.ID, Answers: []agent.Answer{yes}}).Run()
	wantCode(t, "another scope", err, gate.ErrInvalidContinuation)
	foreign := yes
	foreign.Interaction = checkpoint.ID{2}
	_, err = w.tryResume(run.ID, foreign)
	wantCode(t, "an interaction that is not of the run", err, gate.ErrInvalidContinuation)
	_, err = w.tryResume(run.ID, yes, yes)
	wantCode(t, "answered twice", err, gate.ErrInvalidAnswer)

	record, err := store.Load(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Rows(t.Context(), run.ID, "blob", 1)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	put := func(data []byte) {
		t.Helper()
		batch := &checkpoint.Batch{Time: now, Rows: []checkpoint.RowPut{{
			Row: checkpoint.Row{ID: run.ID, Name: rows[0].Name, Data: data}, Epoch: record.Claim.Epoch,
		}}}
		if err := store.Commit(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"truncated": rows[0].Data[:40], "tampered": flip(rows[0].Data)} {
		put(data)
		_, err := w.tryResume(run.ID, yes)
		wantCode(t, name, err, gate.ErrUnavailable)
		if record, err = store.Load(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
	}
	put(rows[0].Data)
	wantFinished(t, w.resume(run.ID, yes), "[deployed a]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
	now = now.Add(25 * time.Hour)
	for range 3 {
		if _, err := w.agent.Runs(t.Context(), gate.RunQuery{Scope: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.tryResume(run.ID)
	wantCode(t, "swept", err, gate.ErrInvalidContinuation)
}

func flip(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	return data
}

// R24: a question is answered by another road, with or without the run being resumed by it; the run
// then goes on without an answer.
func TestAnswerByAnotherRoad(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "deploy", deployInput{"b"}))),
	})
	run := w.start()
	q := of(t, run, "a")
	err := w.gate.Answer(t.Context(), gate.AnswerRequest{
		Interaction: q.Interaction, Round: 1, Scope: "ann", By: "the inbox", Answers: to(q, allow).Answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	run = w.resume(run.ID)
	wantWaiting(t, run, "b")
	byID := to(of(t, run, "b"), reject)
	byID.Token, byID.By = "", "ann herself"
	run = w.resume(run.ID, byID)
	if run.Status != agent.Finished || !strings.HasPrefix(run.Message, "[deployed a][A person was asked and rejected") {
		t.Fatalf("have %+v", run)
	}
}

// R16: an answer that is refused is told, and the question is still open with its token.
func TestRefusedAnswer(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
	})
	run := w.start()
	q := of(t, run, "a")
	forged := to(q, allow)
	forged.Token = gate.Token(strings.Repeat("x", gate.TokenLength))
	for name, tt := range map[string]struct {
		answer agent.Answer
		want   gate.Code
	}{
		"an option that there is not": {to(q, `{"optionId":"maybe"}`), gate.ErrInvalidAnswer},
		"a forged token":              {forged, gate.ErrInvalidContinuation},
	} {
		again := w.resume(run.ID, tt.answer)
		if len(again.Problems) != 1 || again.Problems[0].Call != "a" {
			t.Fatalf("%s: have %+v", name, again)
		}
		wantCode(t, name, again.Problems[0].Err, tt.want)
		if open := of(t, again, "a"); open.Prompt.Token != q.Prompt.Token {
			t.Errorf("%s: the question has another token", name)
		}
	}
	wantFinished(t, w.resume(run.ID, to(q, allow)), "[deployed a]")
}

// R16, R24: an answer by another road that is refused is told in the same way; one that comes when
// the question has expired does not hold up what follows from that.
func TestRefusedAnswerByAnotherRoad(t *testing.T) {
	var effects atomic.Int64
	now := time.Now()
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
		gate: gate.Options{Now: func() time.Time { return now }, AuthorizeAnswer: func(_ context.Context, who gate.Answerer) error {
			if who.By != "ann" {
				return errors.New("not she")
			}
			return nil
		}},
	})
	start := releaseIt
	start.Conversation = "talk"
	run, err := w.agent.Start(t.Context(), start).Run()
	if err != nil {
		t.Fatal(err)
	}
	q := of(t, run, "a")
	by := func(who, payload string) agent.Answer {
		answer := to(q, payload)
		answer.Token, answer.By = "", who
		return answer
	}
	for name, tt := range map[string]struct {
		answer agent.Answer
		want   gate.Code
	}{
		"an option that there is not": {by("ann", `{"optionId":"maybe"}`), gate.ErrInvalidAnswer},
		"somebody else":               {by("bob", allow), gate.ErrUnauthorized},
	} {
		again := w.resume(run.ID, tt.answer)
		if len(again.Problems) != 1 || again.Problems[0].Call != "a" || of(t, again, "a").Prompt.Token != q.Prompt.Token {
			t.Fatalf("%s: have %+v", name, again)
		}
		wantCode(t, name, again.Problems[0].Err, tt.want)
	}
	start.CancelOpen = true
	_, err = w.agent.Start(t.Context(), start).Run()
	wantCode(t, "a new message may not cancel", err, gate.ErrUnauthorized)
	now = now.Add(time.Hour)
	if ended := w.resume(run.ID, by("ann", allow)); ended.Status != agent.Finished || !strings.HasPrefix(ended.Message, "[Nobody answered") {
		t.Errorf("have %+v", ended)
	}
	if effects.Load() != 0 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R17: a tool that keeps its question open where it was declined keeps it open in a run, too.
func TestKeptOpen(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepOpen: true})}, model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
	})
	run := w.start()
	q := of(t, run, "a")
	again := w.resume(run.ID, to(q, `{"action":"decline"}`))
	if len(again.Problems) != 1 || of(t, again, "a").Prompt.Token != q.Prompt.Token {
		t.Fatalf("have %+v", again)
	}
	wantCode(t, "declined", again.Problems[0].Err, gate.ErrDeclined)
	wantFinished(t, w.resume(run.ID, to(q, allow)), "[deployed a]")
}

// A tool whose revision changed has a problem of its own; the rest of the run goes on.
func TestRevisionChanged(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	m := after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("p", "plan", struct{}{})))
	plan := gate.NewTool("plan", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("plan", "Plan it"))
		return "planned", err
	}, nil)
	first := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "1"}), plan}, model: m})
	run := first.start()
	wantWaiting(t, run, "a", "p")
	w := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "2"}), plan}, model: m})
	again := w.resume(run.ID, to(of(t, run, "a"), allow), to(of(t, run, "p"), allow))
	if again.Status != agent.Waiting || len(again.Problems) != 1 || again.Problems[0].Call != "a" || len(again.Questions) != 0 {
		t.Fatalf("have %+v", again)
	}
	wantCode(t, "revision", again.Problems[0].Err, gate.ErrRevisionChanged)
	seen, err := w.agent.Inspect(t.Context(), "ann", run.ID)
	if err != nil || len(seen.Questions) != 1 || seen.Questions[0].Call != "a" {
		t.Errorf("inspect: %+v, %v", seen, err)
	}
	back := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: "1"}), plan}, model: m})
	wantFinished(t, back.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][planned]")
}

// A hard failure beside an open question loses neither: that of a tool under the gate is told to the
// model, that of another one stops the run, and the question is found again.
func TestFailureBesideAQuestion(t *testing.T) {
	var effects, panics atomic.Int64
	bad := gate.NewTool("bad", func(context.Context, struct{}) (string, error) {
		panics.Add(1)
		panic("private")
	}, nil)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil), bad},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("b", "bad", struct{}{}))),
	})
	run := w.start()
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][The call failed: the tool failed]")
	if panics.Load() != 1 {
		t.Errorf("the tool that failed ran %d times", panics.Load())
	}

	fails := true
	outside := native{"outside", func(context.Context) (string, error) {
		if fails {
			return "", errors.New("down")
		}
		return "up", nil
	}}
	w = open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil)}, eino: []tool.BaseTool{outside},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("o", "outside", struct{}{}))),
	})
	run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	if err == nil || run == nil || run.Status != agent.Waiting {
		t.Fatalf("have %+v, %v", run, err)
	}
	list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) != 1 || list.Interactions[0].Prompt == nil {
		t.Fatalf("the question is lost: %+v, %v", list, err)
	}
	fails = false
	run = w.resume(run.ID)
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][up]")
}

// R27: a tool that asks while it is to recover is refused, which the model is told; the question
// beside it stays open with its token.
func TestAsksInRecovery(t *testing.T) {
	var effects atomic.Int64
	store := memstore.New()
	m := after(scripted.Do(call("a", "t", struct{}{}), call("b", "deploy", deployInput{"b"})))
	died := make(chan struct{})
	asks := func(first bool) *gate.Tool {
		return gate.NewTool("t", func(ctx context.Context, _ struct{}) (string, error) {
			if first {
				close(died)
				<-ctx.Done()
				return "", ctx.Err()
			}
			_, err := interrupt.Ask(ctx, interrupt.ToolPermission("t", "Again?"))
			return "", err
		}, &gate.ToolOptions{Replay: gate.Recover})
	}
	first := open(t, store, worldOptions{tools: []*gate.Tool{asks(true), deploy(&effects, nil)}, model: m})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-died; cancel() }()
	run, err := first.agent.Start(ctx, agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	if err != nil || len(run.Problems) != 1 {
		t.Fatalf("have %+v, %v", run, err)
	}
	q := of(t, run, "b")
	w := open(t, store, worldOptions{tools: []*gate.Tool{asks(false), deploy(&effects, nil)}, model: m})
	run = w.resume(run.ID)
	wantWaiting(t, run, "b")
	if of(t, run, "b").Prompt.Token != q.Prompt.Token {
		t.Error("the question beside it has another token")
	}
	run = w.resume(run.ID, to(q, allow))
	wantFinished(t, run, "[The call failed: the tool asked a question while it was to recover][deployed b]")
}

// R25: a caller whose context ends does not lose what was asked until then.
func TestCancelledCaller(t *testing.T) {
	var effects atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	ask := gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			close(asked)
			return "", err
		}
		effects.Add(1)
		return "deployed " + in.Service, nil
	}, nil)
	slow := gate.NewTool("slow", func(ctx context.Context, _ struct{}) (string, error) {
		<-asked
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{ask, slow},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("s", "slow", struct{}{}))),
	})
	run, err := w.agent.Start(ctx, agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	if err != nil || len(run.Questions) != 1 || len(run.Problems) != 1 || !errors.Is(run.Problems[0].Err, context.Canceled) {
		t.Fatalf("have %+v, %v", run, err)
	}
	run = w.resume(run.ID, to(of(t, run, "a"), allow))
	if run.Status != agent.Finished || !strings.Contains(run.Message, "[deployed a]") || !strings.Contains(run.Message, "not known") {
		t.Fatalf("have %+v", run)
	}
}

// What eino cannot store is refused before anybody is asked: at the start, and from a model.
func TestExtraThatCannotBeStored(t *testing.T) {
	var effects atomic.Int64
	bad := scripted.Do(call("a", "deploy", deployInput{"a"}))
	bad.Extra = map[string]any{"thought": map[string]any{"x": 1}}
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: after(bad)})
	input := schema.UserMessage("x")
	input.Extra = map[string]any{"trace": struct{ A int }{1}}
	if _, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{input}}).Run(); !errors.Is(err, agent.ErrExtra) {
		t.Errorf("at the start: %v", err)
	}
	_, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x"), nil}}).Run()
	if err == nil || !strings.Contains(err.Error(), "message 2 is nil") {
		t.Errorf("a message that is none: %v", err)
	}
	_, err = w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	wantCode(t, "from the model", err, agent.ErrExtra)
	list, err := w.gate.List(t.Context(), gate.ListQuery{Scope: "ann"})
	if err != nil || len(list.Interactions) > 0 {
		t.Errorf("somebody would be asked: %+v, %v", list, err)
	}
}

// R13: a host that cannot ask is told to the model, with the tool's guidance, and nothing is kept open.
func TestNobodyCanBeAsked(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Guidance: "Use the console."})},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
	})
	run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}}).Run()
	if err != nil || run.Status != agent.Finished || !strings.Contains(run.Message, "Use the console.") {
		t.Fatalf("have %+v, %v", run, err)
	}
}

// R13: a host that cannot show a question that is open leaves it open, and so does one that lacks what
// the tool cannot do without; the run goes on where that is there.
func TestResumedWithoutFacilities(t *testing.T) {
	var effects atomic.Int64
	w := open(t, memstore.New(), worldOptions{
		tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Needs: []interrupt.Facility{interrupt.FacilityPermission}})},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}))),
	})
	run := w.start()
	q := of(t, run, "a")
	without := func(what string, answers ...agent.Answer) {
		t.Helper()
		again, err := w.agent.Resume(t.Context(), agent.Resume{Scope: "ann", Run: run.ID, Answers: answers}).Run()
		if err != nil || again.Status != agent.Waiting || len(again.Problems) != 1 || again.Problems[0].Interaction != q.Interaction {
			t.Fatalf("%s: have %+v, %v", what, again, err)
		}
		wantCode(t, what, again.Problems[0].Err, gate.ErrConfirmationRequired)
	}
	without("it is open")
	without("it is answered here", to(q, allow))
	again := w.resume(run.ID)
	wantWaiting(t, again, "a")
	if of(t, again, "a").Prompt.Token != q.Prompt.Token {
		t.Error("the question has another token")
	}
	err := w.gate.Answer(t.Context(), gate.AnswerRequest{
		Interaction: q.Interaction, Round: 1, Scope: "ann", By: "the inbox", Answers: to(q, allow).Answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	without("it was answered elsewhere")
	wantFinished(t, w.resume(run.ID), "[deployed a]")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// A tool outside of a run, and an agent whose model is not wrapped, are told apart from everything
// else.
func TestNotWired(t *testing.T) {
	var effects atomic.Int64
	pay := deploy(&effects, nil)
	_, err := agent.Tool(pay).InvokableRun(t.Context(), `{"service":"a"}`)
	wantCode(t, "outside of a run", err, agent.ErrNoRun)

	g, err := gate.Open(t.Context(), memstore.New(), &gate.Options{Tools: []*gate.Tool{pay}, Keys: [][]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	m := after(scripted.Do(call("c", "deploy", deployInput{"a"})))
	naked, err := utils.InferTool("naked", "d", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("naked", "Do it"))
		return "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	asks := open(t, memstore.New(), worldOptions{model: after(scripted.Do(call("n", "naked", struct{}{}))), plain: []tool.BaseTool{naked}})
	_, err = asks.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	wantCode(t, "a tool that is not wrapped", err, agent.ErrUnwrapped)
	wired, err := agent.New(t.Context(), g, chat("A", m, compose.ToolsNodeConfig{Tools: []tool.BaseTool{agent.Tool(pay)}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wired.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	wantCode(t, "a model that is not wrapped", err, agent.ErrModel)
	if err := errors.Join(wired.Close(t.Context()), g.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if effects.Load() != 0 {
		t.Error("it ran")
	}
}

// A stubborn store refuses the commits that stop a run, while it is told to.
type stubborn struct {
	checkpoint.Store
	down atomic.Bool
}

func (s *stubborn) Commit(ctx context.Context, b *checkpoint.Batch) error {
	if s.down.Load() && len(b.Puts) > 0 && b.Puts[0].Record.Status == checkpoint.RunLive {
		return errors.New("disk full")
	}
	return s.Store.Commit(ctx, b)
}

// R25: a store that fails in the middle is told, nothing is shown, and nothing is lost.
func TestStoreThatFails(t *testing.T) {
	var effects, runs atomic.Int64
	store := &stubborn{Store: memstore.New()}
	down := gate.NewTool("down", func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		store.down.Store(true) // from here on
		return "down", nil
	}, &gate.ToolOptions{KeepResult: true})
	w := open(t, store, worldOptions{
		tools: []*gate.Tool{deploy(&effects, nil), down},
		model: after(scripted.Do(call("a", "deploy", deployInput{"a"}), call("d", "down", struct{}{}))),
	})
	run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	if !errors.Is(err, gate.ErrUnavailable) || run == nil || len(run.Questions) > 0 {
		t.Fatalf("have %+v, %v", run, err)
	}
	if _, err := w.tryResume(run.ID); !errors.Is(err, gate.ErrUnavailable) && !errors.Is(err, gate.ErrBusy) {
		t.Errorf("while it is down: %v", err)
	}
	store.down.Store(false)
	run = w.resume(run.ID)
	wantWaiting(t, run, "a")
	wantFinished(t, w.resume(run.ID, to(of(t, run, "a"), allow)), "[deployed a][down]")
	if effects.Load() != 1 || runs.Load() != 1 {
		t.Errorf("%d effects, %d runs", effects.Load(), runs.Load())
	}
}
