package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// answers answers a prompt by another road, as somebody of that scope.
func answers(p *gate.Prompt, scope string, payloads ...string) gate.AnswerRequest {
	a := gate.AnswerRequest{Interaction: p.Interaction, Round: p.Round, Scope: scope, By: scope + "@example.com", Answers: gate.Answers{}}
	for i, payload := range payloads {
		a.Answers[p.Questions[i].ID] = json.RawMessage(payload)
	}
	return a
}

func mustAnswer(t *testing.T, f host, p *gate.Prompt, payloads ...string) {
	t.Helper()
	if err := f.Answer(t.Context(), answers(p, "ann", payloads...)); err != nil {
		t.Fatalf("answer: %v", err)
	}
}

// R24: an answer by another road is recorded and runs nothing; the caller's next request runs the
// handler.
func TestAnswerElsewhere(t *testing.T) {
	for name, next := range map[string]func(gate.Call, *gate.Prompt) gate.Call{
		"by token": func(c gate.Call, p *gate.Prompt) gate.Call { c.Token = p.Token; return c },
		"by token with the same answer": func(c gate.Call, p *gate.Prompt) gate.Call {
			return with(c, p, `{"action":"accept","optionId":"allow_once"}`)
		},
		"by start id": func(c gate.Call, _ *gate.Prompt) gate.Call { return c },
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			g := openMem(t, deploy(&effects, nil))
			c := call("deploy", `{"service":"api"}`)
			c.StartID = "work"
			p := mustAsk(t, g, c)
			mustAnswer(t, g, p, allow)
			mustAnswer(t, g, p, allow) // R25: the same again is confirmed
			effects.want(t, 0)
			if s, err := g.Inspect(t.Context(), "ann", "work"); err != nil || s.Status != checkpoint.Answered {
				t.Errorf("%v, %v", s.Status, err)
			}
			// R24, R28: another answer comes too late, from the caller and from elsewhere.
			mustFail(t, g, with(c, p, reject), gate.ErrAlreadyAnswered)
			wantCode(t, "another answer", g.Answer(t.Context(), answers(p, "ann", reject)), gate.ErrAnswerConflict)
			mustFinish(t, g, next(c, p), `"deployed api"`)
			effects.want(t, 1)
			mustAnswer(t, g, p, allow) // still confirmed
			mustFail(t, g, with(c, p, reject), gate.ErrAlreadyAnswered)
		})
	}
}

// R24: only the interaction's own scope may answer, unless the host allows others; who answered is
// recorded.
func TestWhoMayAnswer(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	wantCode(t, "a stranger's answer", g.Answer(t.Context(), answers(p, "bob", allow)), gate.ErrUnauthorized)
	wantCode(t, "nobody's answer", g.Answer(t.Context(), answers(p, "", allow)), gate.ErrUnauthorized)
	missing := answers(p, "ann", allow)
	missing.Interaction[0]++
	wantCode(t, "no such interaction", g.Answer(t.Context(), missing), gate.ErrInvalidContinuation)
	missing = answers(p, "ann", allow)
	missing.Round = 2
	wantCode(t, "no such round", g.Answer(t.Context(), missing), gate.ErrInvalidContinuation)
	wantCode(t, "a bad answer", g.Answer(t.Context(), answers(p, "ann", `{"optionId":"maybe"}`)), gate.ErrInvalidAnswer)

	var asked gate.Answerer
	host := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, AuthorizeAnswer: func(_ context.Context, a gate.Answerer) error {
		asked = a
		if a.Scope != "boss" {
			return errors.New("not the boss")
		}
		return nil
	}})
	wantCode(t, "not the boss", host.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrUnauthorized)
	inbox, err := host.NewFace("inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := inbox.Answer(t.Context(), answers(p, "boss", allow)); err != nil {
		t.Fatal(err)
	}
	want := gate.Answerer{Scope: "boss", By: "boss@example.com", Face: "inbox", Interaction: p.Interaction, Tool: "deploy"}
	if asked != want {
		t.Errorf("the host was asked for %+v, want %+v", asked, want)
	}
	record, err := store.Load(t.Context(), p.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	in, err := checkpoint.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	if a := in.Rounds[0].Answer; a.By != "boss@example.com" || a.Face != "inbox" || !a.Elsewhere {
		t.Errorf("recorded: %+v", a)
	}
}

// R9, R17: a gate without the tool shows no arguments and does not know what the tool keeps open;
// it takes no answer.
func TestAnswerWithoutTheTool(t *testing.T) {
	var effects counter
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{KeepOpen: true})}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	other := open(t, store, gate.Options{})
	for _, payload := range []string{allow, `{"action":"decline"}`} {
		wantCode(t, "answer "+payload, other.Answer(t.Context(), answers(p, "ann", payload)), gate.ErrUnknownTool)
	}
	if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Open {
		t.Errorf("recorded %v", in.Status)
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// R24: Wait runs the handler when the answer is there, and stays until then.
func TestWait(t *testing.T) {
	for name, start := range map[string]string{"by token": "", "by start id": "work"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var effects counter
				store := memstore.New()
				g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, PollInterval: time.Hour})
				other := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
				c := call("deploy", `{"service":"api"}`)
				c.StartID = start
				p := mustAsk(t, g, c)
				if start == "" {
					c.Token = p.Token
				}
				type end struct {
					outcome gate.Outcome
					err     error
				}
				done := make(chan end, 1)
				go func() {
					outcome, err := g.Wait(context.Background(), c)
					done <- end{outcome, err}
				}()
				synctest.Wait()
				select {
				case e := <-done:
					t.Fatalf("did not wait: %+v, %v", e.outcome, e.err)
				default:
				}
				began := time.Now()
				mustAnswer(t, other, p, allow) // by another gate on the same store
				e := <-done
				if e.err != nil || string(e.outcome.Result) != `"deployed api"` {
					t.Errorf("%+v, %v", e.outcome, e.err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("woke after %v", took)
				}
				effects.want(t, 1)
			})
		})
	}
}

// R24: Wait waits for the round of its token, or for the one that is open when it begins: a later
// prompt is returned at once, not waited for.
func TestWaitAcrossRounds(t *testing.T) {
	for _, start := range []string{"", "work"} {
		synctest.Test(t, func(t *testing.T) {
			var runs, effects counter
			g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}, PollInterval: time.Minute})
			c := call("tool", `{}`)
			c.StartID = start
			p1 := mustAsk(t, g, c)
			mustAnswer(t, g, p1, `{"selectionIdx":0}`) // before anybody waits
			look := c
			if start == "" {
				look.Token = p1.Token
			}
			began := time.Now()
			outcome, err := g.Wait(t.Context(), look)
			if err != nil || outcome.Prompt == nil || outcome.Prompt.Round != 2 || time.Since(began) > time.Second {
				t.Fatalf("start id %q: %+v, %v after %v", start, outcome, err, time.Since(began))
			}
			done := make(chan gate.Outcome, 1)
			look.Token = outcome.Prompt.Token
			go func() {
				outcome, err := g.Wait(context.Background(), look)
				if err != nil {
					t.Error(err)
				}
				done <- outcome
			}()
			synctest.Wait()
			mustAnswer(t, g, outcome.Prompt, allow)
			if outcome := <-done; string(outcome.Result) != `"done"` {
				t.Errorf("%+v", outcome)
			}
			effects.want(t, 1)
		})
	}
}

// Wait ends with the deadline, with its context, and with the gate, and says which.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects counter
		g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, PollInterval: time.Hour})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		look := c
		look.Token = p.Token
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Wait(ctx, look); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("context ended: %v", err)
		}
		_, err := g.Wait(t.Context(), look)
		wantCode(t, "deadline", err, gate.ErrExpired)
		if waited := time.Since(p.Expires); waited < 0 || waited > time.Second {
			t.Errorf("waited %v past the deadline", waited)
		}
		never := c
		never.StartID = "never used"
		_, err = g.Wait(t.Context(), never) // it waits, it does not begin
		wantCode(t, "start id never used", err, gate.ErrStartUnknown)
		p = mustAsk(t, g, c)
		look.Token = p.Token
		done := make(chan error, 1)
		go func() {
			_, err := g.Wait(context.Background(), look)
			done <- err
		}()
		synctest.Wait()
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "closed", <-done, gate.ErrUnavailable)
		_, err = g.Wait(t.Context(), c)
		wantCode(t, "neither token nor start id", err, gate.ErrInvalidContinuation)
		_, err = g.Wait(t.Context(), with(c, p, allow))
		wantCode(t, "answers", err, gate.ErrInvalidAnswer)
	})
}
