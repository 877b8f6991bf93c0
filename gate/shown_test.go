package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R2: a key is used once in an interaction, by type: a later question under it would be given the
// former one's answer.
func TestKeyIsRaisedOnce(t *testing.T) {
	keyed := func(key string, titles ...string) *interrupt.UserSelectionInterrupt {
		q := choose(titles...)
		q.Key = key
		return q
	}
	permission := interrupt.ToolPermission("tool", "")
	permission.Key = "k"
	for name, test := range map[string]struct {
		later interrupt.Interrupt
		asks  bool
	}{
		"the same key":          {keyed("k", "c", "d"), false},
		"the same key and text": {keyed("k", "a", "b"), false},
		"another key":           {keyed("l", "a", "b"), true},
		"no key":                {keyed("", "a", "b"), true},
		"the key, another type": {permission, true},
		"a key that just fits":  {keyed(strings.Repeat("x", 1<<10), "a", "b"), true},
		"a key too long":        {keyed(strings.Repeat("x", 1<<10+1), "a", "b"), false},
		"a key not UTF-8":       {keyed("\xff", "a", "b"), false},
	} {
		g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
			if _, resumed := interrupt.ResumeFrom(ctx); !resumed {
				return nil, keyed("k", "a", "b")
			}
			return nil, test.later
		}, nil))
		c := call("tool", `{}`)
		answer := with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)
		t.Log(name)
		if test.asks {
			mustAsk(t, g, answer)
		} else {
			mustFail(t, g, answer, gate.ErrInvalidQuestion)
		}
	}
}

// A sly selection embeds one, as a sly permission does.
type slySelection struct {
	*interrupt.UserSelectionInterrupt
}

func (slySelection) Validate() error { return nil }

// R8, R10: what a type's own check refuses is refused, whatever the value says that was raised.
func TestEmbeddedSelection(t *testing.T) {
	for _, titles := range [][]string{nil, {"a"}, {"a", "a"}, {"a", ""}} {
		g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, slySelection{choose(titles...)} }, nil))
		mustFail(t, g, call("tool", `{}`), gate.ErrInvalidQuestion)
	}
}

// R9: a prompt names its tool and shows the arguments that will run: masked ones as hidden, absent
// ones not at all, and none to whoever does not know which are to be hidden.
func TestWhatIsShownOfArguments(t *testing.T) {
	var effects counter
	store := newMem()
	tool := deploy(&effects, &gate.ToolOptions{Title: "Deploy it", Mask: []string{"secret"}})
	g := open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
	inbox := open(t, store, gate.Options{})
	for arguments, want := range map[string]string{
		`{"secret":"hunter2","service":"api"}`: `{"secret":"[hidden]","service":"api"}`,
		`{"service":"api"}`:                    `{"service":"api"}`,
	} {
		p := mustAsk(t, g, call("deploy", arguments))
		if p.Tool != "deploy" || p.Title != "Deploy it" || string(p.Arguments) != want {
			t.Errorf("shown %+v", p)
		}
		s, err := inbox.InspectID(t.Context(), "ann", p.Interaction)
		if err != nil || string(s.Arguments) != `"[hidden]"` || string(s.Prompt.Arguments) != `"[hidden]"` || s.Prompt.Title != "" {
			t.Errorf("elsewhere %+v, %v", s, err)
		}
	}
}

// R13: out of band, a prompt stays so when it is shown again; a kept result and a recovery need
// nothing of the host.
func TestOutOfBandAgain(t *testing.T) {
	fails := true
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if fails {
			return nil, errPrivate
		}
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Recover, KeepResult: true, Needs: []interrupt.Facility{interrupt.FacilitySelection}}))
	c := call("tool", `{}`)
	c.Facilities = []interrupt.Facility{interrupt.FacilityOutOfBand}
	first, err := g.Invoke(t.Context(), c)
	if err != nil || !first.OutOfBand {
		t.Fatalf("%+v, %v", first, err)
	}
	c.Token = first.Prompt.Token
	if again, err := g.Invoke(t.Context(), c); err != nil || !again.OutOfBand || again.Prompt == nil {
		t.Errorf("%+v, %v", again, err)
	}
	mustAnswer(t, g, first.Prompt, `{"selectionIdx":0}`)
	mustFail(t, g, c, gate.ErrFailed)
	fails, c.Facilities = false, nil
	mustFinish(t, g, c, `"done"`) // in recovery
	mustFinish(t, g, c, `"done"`) // kept
}

// R20: a token of another ledger is refused without a look at the store.
func TestForeignTokenTouchesNothing(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	tools := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
	g, foreign := open(t, store, tools), open(t, newMem(), tools)
	c := call("deploy", `{"service":"api"}`)
	c.Token = mustAsk(t, foreign, c).Token
	_, before := store.counts()
	mustFail(t, g, c, gate.ErrInvalidContinuation)
	if _, after := store.counts(); after != before {
		t.Error("the store was asked")
	}
}

// R3: a host's callback within a handler's call does not see the handler's resume.
func TestAnswererInheritsNothing(t *testing.T) {
	var effects counter
	var g *gate.Gate
	var p *gate.Prompt
	seen := false
	g = open(t, newMem(), gate.Options{
		Tools: []*gate.Tool{deploy(&effects, nil), raw("outer", func(ctx context.Context) (any, error) {
			if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
				return nil, err
			}
			return "done", g.Answer(ctx, answers(p, "ann", allow))
		}, nil)},
		AuthorizeAnswer: func(ctx context.Context, _ gate.Answerer) error {
			_, resumed := interrupt.ResumeFrom(ctx)
			seen = seen || resumed || interrupt.Supports(ctx, interrupt.FacilityForm)
			return nil
		},
	})
	p = mustAsk(t, g, call("deploy", `{"service":"api"}`))
	c := call("outer", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), `"done"`)
	if seen {
		t.Error("the outer resume was seen")
	}
}

// R32: a face whose Close cannot wait cancels what runs through it, and nothing else.
func TestFaceCloseCancels(t *testing.T) {
	s := newSlow()
	g := openMem(t, s.tool(nil))
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("slow", `{}`)
	done := invoke(face, with(c, mustAsk(t, face, c), `{"selectionIdx":0}`))
	<-s.entered
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := face.Close(ended); err == nil {
		t.Error("closed although a handler runs")
	}
	<-s.cancelled
	close(s.leave)
	wantCode(t, "through the face", (<-done).err, gate.ErrFailed)
	mustAsk(t, g, c)
}

// R2: an answer that cannot be given back as what was asked is none: the handler does not go on.
func TestAskedAsAnotherType(t *testing.T) {
	var effects counter
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, slySelection{choose("a", "b")}); err != nil {
			return nil, err
		}
		effects.add()
		return nil, nil
	}, nil))
	c := call("tool", `{}`)
	mustFail(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), gate.ErrInvalidQuestion)
	effects.want(t, 0)
}

// R2: where some of several questions were not answered with a yes, AskAll says so and gives back
// all of them; where one cannot be asked, none is.
func TestAskAllOutcomes(t *testing.T) {
	var answered []interrupt.Interrupt
	var outcome error
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		answered, outcome = interrupt.AskAll(ctx, choose("a", "b"), interrupt.ToolPermission("tool", ""), choose("c", "d"))
		return nil, outcome
	}, nil), raw("invalid", func(ctx context.Context) (any, error) {
		_, err := interrupt.AskAll(ctx, choose("a", "b"), choose("c"))
		return nil, err
	}, nil))
	for _, test := range []struct {
		payloads []string
		is       []error
		code     gate.Code
	}{
		{[]string{`{"selectionIdx":1}`, reject, `{"selectionIdx":0}`}, []error{interrupt.ErrRejected}, gate.ErrRejected},
		{[]string{`{"action":"decline"}`, reject, `{"selectionIdx":0}`}, []error{interrupt.ErrRejected, interrupt.ErrDeclined}, gate.ErrDeclined},
		{[]string{`{"action":"decline"}`, allow, `{"action":"cancel"}`}, []error{interrupt.ErrDeclined, interrupt.ErrCancelled}, gate.ErrCancelled},
	} {
		c := call("tool", `{}`)
		mustFail(t, g, with(c, mustAsk(t, g, c), test.payloads...), test.code)
		if len(answered) != 3 {
			t.Errorf("%s: %d come back", test.code, len(answered))
		}
		for _, q := range answered {
			if q == nil {
				t.Errorf("%s: one does not come back", test.code)
			}
		}
		for _, decision := range []error{interrupt.ErrRejected, interrupt.ErrDeclined, interrupt.ErrCancelled} {
			if errors.Is(outcome, decision) != slices.Contains(test.is, decision) {
				t.Errorf("%s: %v", test.code, outcome)
			}
		}
	}
	mustFail(t, g, call("invalid", `{}`), gate.ErrInvalidQuestion)
}

// R2: an answer on record that no longer fits its question is none: the handler does not go on.
func TestRecordedAnswerThatDoesNotFit(t *testing.T) {
	for _, payload := range []string{`{"optionId":"gone"}`, `{}`, `{"action":"maybe"}`, `{"action":"decline","optionId":"allow_once"}`} {
		var effects counter
		store := newMem()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
		c := call("deploy", `{"service":"api"}`)
		p := mustAsk(t, g, c)
		mustAnswer(t, g, p, allow)
		rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { in.Rounds[0].Answer.Payloads[0] = []byte(payload) })
		c.Token = p.Token
		mustFail(t, g, c, gate.ErrFailed)
		effects.want(t, 0)
	}
}

// R2: an answer is given to the question with its type and key and to no other, however alike.
func TestAnswerIsForItsKeyAndType(t *testing.T) {
	selection := func(key string) interrupt.Interrupt {
		q := choose("a", "b")
		q.Key = key
		return q
	}
	permission := interrupt.ToolPermission("tool", "")
	permission.Key = "k"
	for name, questions := range map[string][2]interrupt.Interrupt{
		"another key":           {selection("k"), selection("l")},
		"no key after one":      {selection("k"), selection("")},
		"a key after none":      {selection(""), selection("k")},
		"the key, another type": {selection("k"), permission},
	} {
		var effects counter
		g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
			q := questions[0]
			if _, resumed := interrupt.ResumeFrom(ctx); resumed {
				q = questions[1] // and the first one not at all
			}
			if _, err := interrupt.Ask(ctx, q); err != nil {
				return nil, err
			}
			effects.add()
			return nil, nil
		}, nil))
		c := call("tool", `{}`)
		t.Log(name)
		if p := mustAsk(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`)); p.Round != 2 {
			t.Errorf("round %d", p.Round)
		}
		effects.want(t, 0)
	}
}

// R9, R19, R21: what a typed tool runs with is what stands under a field's exact name: a member that
// only folds to it is not the field's, whatever the schema lets pass, so that it is neither run nor
// got past a mask or a remembered decision.
func TestNamesAreExact(t *testing.T) {
	type input struct {
		Service string `json:"service"`
		Secret  string `json:"secret"`
		Inner   struct {
			Name string `json:"name"`
		} `json:"inner"`
	}
	tool := gate.NewTool("deploy", func(ctx context.Context, in input) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy")); err != nil {
			return "", err
		}
		return in.Service + "|" + in.Secret + "|" + in.Inner.Name, nil
	}, &gate.ToolOptions{
		Schema: json.RawMessage(`{"type":"object","properties":{"service":{"enum":["staging"]},"secret":{},"inner":{}},"required":["service"]}`),
		Mask:   []string{"secret"}, Remember: &gate.RememberOptions{Arguments: []string{"service"}},
	})
	g := openMem(t, tool)
	c := call("deploy", `{"service":"staging"}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"staging||"`)
	for arguments, want := range map[string]string{
		`{"service":"staging","ſervice":"prod"}`:                  `"staging||"`,
		`{"service":"staging","SERVICE":"prod"}`:                  `"staging||"`,
		`{"service":"staging","ſecret":"x"}`:                      `"staging||"`,
		`{"service":"staging","inner":{"name":"a","NAME":"b"}}`:   `"staging||a"`,
		`{"service":"staging","secret":"s","inner":{"name":"a"}}`: `"staging|s|a"`,
	} {
		mustFinish(t, g, call("deploy", arguments), want)
	}
}
