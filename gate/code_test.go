package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// codes are all there are (R36), and whether the same request can help later.
var codes = map[gate.Code]bool{
	gate.ErrConfirmationRequired: false, gate.ErrBusy: true, gate.ErrInteractionLimit: false, gate.ErrExpired: false,
	gate.ErrInvalidArguments: false, gate.ErrInvalidQuestion: false, gate.ErrInvalidAnswer: false, gate.ErrAnswerConflict: false,
	gate.ErrAlreadyAnswered: false, gate.ErrAlreadyCompleted: false, gate.ErrInvalidContinuation: false, gate.ErrRevisionChanged: false,
	gate.ErrUnsupportedForm: false, gate.ErrTooLarge: false, gate.ErrUnknownTool: false, gate.ErrUnauthorized: false,
	gate.ErrStartUnknown: false, gate.ErrStartConflict: false, gate.ErrRejected: false, gate.ErrDeclined: false,
	gate.ErrCancelled: false, gate.ErrFailed: false, gate.ErrRecoveryOnly: false, gate.ErrOutcomeUnknown: false, gate.ErrUnavailable: true,
}

// R36: a code is comparable with errors.Is, also after it was written down and read again, alone
// and wrapped; the published sentinels, and a person's decisions as a handler knows them, stand for
// their codes and for no others.
func TestCodes(t *testing.T) {
	if len(codes) != 25 {
		t.Errorf("%d codes", len(codes))
	}
	stand := map[error]gate.Code{
		interrupt.ErrInvalidPayload: gate.ErrInvalidAnswer, interrupt.ErrInterruptNotFound: gate.ErrInvalidContinuation,
		interrupt.ErrInvalidQuestion: gate.ErrInvalidQuestion, interrupt.ErrRejected: gate.ErrRejected,
		interrupt.ErrDeclined: gate.ErrDeclined, interrupt.ErrCancelled: gate.ErrCancelled,
		interrupt.ErrOutcomeUnknown: gate.ErrOutcomeUnknown,
	}
	for code, retryable := range codes {
		read := &gate.Error{Code: gate.Code(string(code)), Message: "x"}
		for other := range codes {
			if errors.Is(fmt.Errorf("wrapped: %w", read), other) != (code == other) {
				t.Errorf("%s is %s", code, other)
			}
		}
		for sentinel, its := range stand {
			if errors.Is(read, sentinel) != (code == its) {
				t.Errorf("%s is %v", code, sentinel)
			}
		}
		decision := code == gate.ErrRejected || code == gate.ErrDeclined || code == gate.ErrCancelled
		if code.Retryable() != retryable || code.Decision() != decision {
			t.Errorf("%s: retryable %v, decision %v", code, code.Retryable(), code.Decision())
		}
		if read.Error() != string(code)+": x" || (&gate.Error{Code: code}).Error() != string(code) {
			t.Errorf("%s reads %q", code, read.Error())
		}
	}
}

// R24: the tool's authorization is told what would be carried out: the round, its verified answers,
// the arguments, and whether it is recovery. What it refuses is not done and not shown, whatever it
// is.
func TestExecution(t *testing.T) {
	var seen []gate.Execution
	var refusal error
	fails := true
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "")); err != nil {
			return nil, err
		}
		if r, _ := interrupt.ResumeFrom(ctx); fails || len(r.Answers) != 1 || r.Round != 2 {
			return nil, errPrivate
		}
		return "done", nil
	}, &gate.ToolOptions{Replay: gate.Recover, KeepResult: true, Authorize: func(_ context.Context, e gate.Execution) error {
		seen = append(seen, e)
		return refusal
	}}))
	c := call("tool", `{"x":1}`)
	c.StartID = "work"
	check := func(what string, round int, recovery bool, payload string) {
		t.Helper()
		e := seen[len(seen)-1]
		if e.Tool != "tool" || string(e.Arguments) != `{"x":1}` || e.Scope != "ann" || e.Session != "s1" || e.StartID != "work" ||
			e.Round != round || e.Recovery != recovery || len(e.Answers) != min(round, 1) {
			t.Errorf("%s: %+v", what, e)
		}
		for _, have := range e.Answers {
			if !strings.Contains(string(have), payload) {
				t.Errorf("%s: answer %s", what, have)
			}
		}
		clear(e.Arguments) // its own copy
	}
	refused := func(c gate.Call) {
		t.Helper()
		refusal = errPrivate
		mustFail(t, g, c, gate.ErrUnauthorized)
		refusal = nil
	}
	refused(c)
	p1 := mustAsk(t, g, c)
	check("first run", 0, false, "")
	refused(c) // the open prompt is not shown
	mustAsk(t, g, c)
	check("shown again", 0, false, "")
	first := with(c, p1, `{"selectionIdx":1}`)
	refused(first)
	p2 := mustAsk(t, g, first)
	check("first answer", 1, false, `"selectionIdx":1`)
	second := with(c, p2, allow)
	mustFail(t, g, second, gate.ErrFailed)
	check("second answer", 2, false, `"allow_once"`)
	refused(second)
	check("recovery", 2, true, `"allow_once"`)
	fails = false
	mustFinish(t, g, second, `"done"`)
	check("recovery", 2, true, `"allow_once"`)
	refused(second) // the kept result is not told
	mustFinish(t, g, second, `"done"`)
	check("kept result", 2, false, `"allow_once"`)
}

// R17: a tool that keeps its question open keeps an open one: what was answered is answered.
func TestKeepOpenAfterAnAnswer(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, &gate.ToolOptions{KeepOpen: true}), raw("two", func(ctx context.Context) (any, error) {
		_, err := interrupt.AskAll(ctx, choose("a", "b"), choose("c", "d"))
		return nil, err
	}, &gate.ToolOptions{KeepOpen: true}))
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	mustFail(t, g, with(c, p, `{"action":"decline"}`), gate.ErrAnswerConflict)
	wantCode(t, "from elsewhere", g.Answer(t.Context(), answers(p, "ann", `{"action":"cancel"}`)), gate.ErrAnswerConflict)
	c = call("two", `{}`)
	p = mustAsk(t, g, c)
	for _, payloads := range [][]string{{`{"action":"decline"}`, `{"action":"cancel"}`}, {`{"action":"cancel"}`, `{"action":"decline"}`}, {`{"selectionIdx":0}`, `{"action":"cancel"}`}} {
		if e := mustFail(t, g, with(c, p, payloads...), gate.ErrCancelled); !e.StillOpen { // to break off is more than to decline
			t.Error("the question is not open")
		}
	}
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`, `{"action":"decline"}`), gate.ErrDeclined)
}

// R21: a token shown with another tool or with arguments that fit none is a token that does not
// match, and nothing else is told.
func TestTokenComesBeforeItsArguments(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	good := with(c, mustAsk(t, g, c), allow)
	for _, change := range []func(*gate.Call){
		func(c *gate.Call) { c.Tool = "no such tool" },
		func(c *gate.Call) { c.Arguments = []byte(`{"service":7}`) },
		func(c *gate.Call) { c.Arguments = []byte(`{}`) },
	} {
		bad := good
		change(&bad)
		mustFail(t, g, bad, gate.ErrInvalidContinuation)
	}
	mustFinish(t, g, good, `"deployed api"`)
}

// R21: a changed revision is told before the answer is looked at, on every road that shows or runs
// something, and does not hide an ending.
func TestRevisionChanged(t *testing.T) {
	var effects counter
	store := newMem()
	at := func(revision string) *gate.Gate {
		return open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, &gate.ToolOptions{Revision: revision, KeepOpen: true})}})
	}
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	was, is := at("1"), at("2")
	p := mustAsk(t, was, c)
	look := c
	look.Token = p.Token
	for _, request := range []gate.Call{c, look, with(c, p, allow), with(c, p, `{}`), with(c, p, `{"action":"decline"}`)} {
		mustFail(t, is, request, gate.ErrRevisionChanged)
	}
	mustFinish(t, was, with(c, p, allow), `"deployed api"`)
	mustFail(t, is, c, gate.ErrAlreadyCompleted)
	mustFail(t, is, with(c, p, allow), gate.ErrAlreadyCompleted)
	mustFail(t, is, with(c, p, reject), gate.ErrAnswerConflict)
}

// R13: what a tool cannot do without is looked at before its handler runs, in every round; nothing
// is used up by a host that lacks it.
func TestNeedsInEveryRound(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, &gate.ToolOptions{Needs: []interrupt.Facility{interrupt.FacilityForm}}))
	c := call("deploy", `{"service":"api"}`)
	answer := with(c, mustAsk(t, g, c), allow)
	less := answer
	less.Facilities = []interrupt.Facility{interrupt.FacilityPermission}
	if e := mustFail(t, g, less, gate.ErrConfirmationRequired); !e.StillOpen || e.Interaction.IsZero() {
		t.Errorf("it is not told that the question is still open: %+v", e)
	}
	mustFinish(t, g, answer, `"deployed api"`)
	effects.want(t, 1)
}

// R13: whoever is shown a prompt can show it; a rejoin that cannot does not take it from the one
// who can.
func TestRejoinThatCannotShow(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	blind := c
	blind.Session, blind.Facilities = "s2", nil
	if e := mustFail(t, g, blind, gate.ErrConfirmationRequired); !e.StillOpen || e.Interaction != p.Interaction {
		t.Errorf("it is not told that the question is still open: %+v", e)
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// A sly permission embeds one, so that it has the type's name and none of its checks.
type sly struct {
	*interrupt.ToolPermissionInterrupt
}

func (sly) Validate() error { return nil }

// R9, R34: what is checked and filtered is what was snapshotted, whatever the value was that raised
// it.
func TestEmbeddedPermission(t *testing.T) {
	for name, test := range map[string]struct {
		p    *interrupt.ToolPermissionInterrupt
		asks bool
	}{
		"default options":  {interrupt.ToolPermission("x", ""), true},
		"too many options": {interrupt.ToolPermission("x", "", manyOptions(257)...), false},
		"no options":       {&interrupt.ToolPermissionInterrupt{ToolName: "x"}, false},
	} {
		g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, sly{test.p} }, nil))
		t.Log(name)
		if !test.asks {
			mustFail(t, g, call("tool", `{}`), gate.ErrInvalidQuestion)
			continue
		}
		if p := mustAsk(t, g, call("tool", `{}`)); strings.Contains(string(p.Questions[0].Body), "always") {
			t.Errorf("shown: %s", p.Questions[0].Body)
		}
	}
}

// R34: what a failure makes public is bounded, and a failure that is not there is one without
// words.
func TestPublicFailureIsBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	var none *interrupt.Failure
	g := openMem(t,
		raw("long", func(context.Context) (any, error) { return nil, &interrupt.Failure{Text: long, Link: long} }, nil),
		raw("none", func(context.Context) (any, error) { return nil, none }, nil),
		raw("state", func(context.Context) (any, error) {
			return nil, interrupt.WithState(choose("a", "b"), []byte(`"`+strings.Repeat("x", 1<<19)+`"`))
		}, nil))
	if e := mustFail(t, g, call("long", `{}`), gate.ErrFailed); len(e.Message) > 5000 || len(e.Link) > 5000 || !strings.HasPrefix(e.Message, "éé") {
		t.Errorf("%d and %d bytes", len(e.Message), len(e.Link))
	}
	mustFail(t, g, call("none", `{}`), gate.ErrFailed)
	mustFail(t, g, call("state", `{}`), gate.ErrTooLarge)
}

// An interaction that goes on after a failure is not listed with the failure's code.
func TestSummaryOfALaterAttempt(t *testing.T) {
	fails := true
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, choose("a", "b")); err != nil {
			return nil, err
		}
		if fails {
			return nil, errPrivate
		}
		_, err := interrupt.Ask(ctx, choose("c", "d"))
		return nil, err
	}, &gate.ToolOptions{Replay: gate.Repeatable}))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrFailed)
	fails = false
	mustAsk(t, g, with(c, p, `{"selectionIdx":0}`))
	if s, err := g.InspectID(t.Context(), "ann", p.Interaction); err != nil || s.Code != "" || s.Status != checkpoint.Open {
		t.Errorf("%+v, %v", s, err)
	}
}

// R25: a mark that the store would not take is owed, however often; marks that nobody owes are not
// kept.
func TestOwedMarks(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	var prompts []*gate.Prompt
	for range 3 {
		prompts = append(prompts, mustAsk(t, g, c))
	}
	store.set(func(b *checkpoint.Batch) (before, after error) {
		if b.Lazy {
			return errInjected, nil
		}
		return nil, nil
	})
	for _, p := range prompts {
		mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	}
	for range 3 {
		mustFail(t, g, with(c, prompts[0], allow), gate.ErrOutcomeUnknown)
	}
	store.set(nil)
	mustAsk(t, g, c) // what is owed is paid with it
	for _, p := range prompts {
		if in := recorded(t, store, p.Interaction); in.Status != checkpoint.Finished {
			t.Errorf("recorded %v", in.Status)
		}
	}
	effects.want(t, 3)
}

// R34, R1: a link that is too long or leads to no web page is dropped, not cut; words that are not
// UTF-8 are made so. A tool's own link is refused at once.
func TestPublicLinks(t *testing.T) {
	for link, want := range map[string]string{
		"https://status.example.com/a": "https://status.example.com/a", "http://intranet/a": "http://intranet/a", "javascript:alert(1)": "",
		"//example.com": "", "status": "", "https://example.com/\xff": "", "https://example.com/" + strings.Repeat("x", 5000): "",
	} {
		g := openMem(t, raw("tool", func(context.Context) (any, error) {
			return nil, &interrupt.Failure{Text: "half: \xe2\x80", Link: link}
		}, nil))
		if e := mustFail(t, g, call("tool", `{}`), gate.ErrFailed); e.Link != want || !utf8.ValidString(e.Message) {
			t.Errorf("%.40q: link %.40q, message %q", link, e.Link, e.Message)
		}
		tool := raw("tool", func(context.Context) (any, error) { return nil, nil }, &gate.ToolOptions{Link: link})
		if err := tool.Validate(); (err == nil) != (want != "") {
			t.Errorf("%.40q as a tool's link: %v", link, err)
		}
	}
}
