package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const (
	allowAlways  = `{"optionId":"allow_always"}`
	rejectAlways = `{"optionId":"reject_always"}`
)

// remembering is the tool deploy with decisions that are remembered.
func remembering(effects *counter, opts *gate.RememberOptions) *gate.Tool {
	if opts == nil {
		opts = &gate.RememberOptions{}
	}
	return deploy(effects, &gate.ToolOptions{Remember: opts})
}

// permit is a tool that asks those questions one after the other and then has its effect.
func permit(name string, effects *counter, opts *gate.ToolOptions, questions ...*interrupt.ToolPermissionInterrupt) *gate.Tool {
	if opts == nil {
		opts = &gate.ToolOptions{Remember: &gate.RememberOptions{}}
	}
	return raw(name, func(ctx context.Context) (any, error) {
		for _, q := range questions {
			if _, err := interrupt.Ask(ctx, q); err != nil {
				return nil, err
			}
		}
		effects.add()
		return "done", nil
	}, opts)
}

func keyed(key, toolName, title string, options ...interrupt.PermissionOption) *interrupt.ToolPermissionInterrupt {
	q := interrupt.ToolPermission(toolName, title, options...)
	q.Key = key
	return q
}

type lister interface {
	Decisions(ctx context.Context, q gate.DecisionQuery) (gate.DecisionPage, error)
}

// decisions wants so many of a scope.
func decisions(t *testing.T, f lister, scope string, want int) []gate.Decision {
	t.Helper()
	page, err := f.Decisions(t.Context(), gate.DecisionQuery{Scope: scope})
	if err != nil || len(page.Decisions) != want || page.Next != "" {
		t.Fatalf("want %d decisions, have %+v, %v", want, page, err)
	}
	return page.Decisions
}

// R19: a decision answers later calls without a prompt, by whichever road it was given, and is
// recorded in the round as such. Nobody is asked, so that no facility is needed.
func TestRemembered(t *testing.T) {
	roads := map[string]func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt, payload string){
		"by the caller": func(t *testing.T, g *gate.Gate, c gate.Call, p *gate.Prompt, payload string) {
			_, err := g.Invoke(t.Context(), with(c, p, payload))
			if err != nil && !errors.Is(err, gate.ErrRejected) {
				t.Fatal(err)
			}
		},
		"from elsewhere": func(t *testing.T, g *gate.Gate, _ gate.Call, p *gate.Prompt, payload string) {
			inbox, err := g.NewFace("inbox", nil)
			if err != nil {
				t.Fatal(err)
			}
			mustAnswer(t, inbox, p, payload)
			mustAnswer(t, inbox, p, payload) // R25: confirmed
		},
	}
	for road, answer := range roads {
		for _, payload := range []string{allowAlways, rejectAlways} {
			t.Run(road+payload, func(t *testing.T) {
				var effects counter
				store := newMem()
				g := open(t, store, gate.Options{Tools: []*gate.Tool{remembering(&effects, nil)}})
				c := call("deploy", `{"service":"api"}`)
				p := mustAsk(t, g, c)
				answer(t, g, c, p, payload)
				d := decisions(t, g, "ann", 1)[0]
				want := gate.Decision{
					ID: d.ID, Tool: "deploy", ToolName: "deploy", Title: "Deploy api", Kind: d.Kind, OptionID: d.Kind, Option: d.Option,
					Remember: checkpoint.Remember{Seconds: 86400}, Arguments: json.RawMessage(`{"service":"api"}`),
					Time: d.Time, Interaction: p.Interaction, Round: 1, Expires: d.Time.Add(24 * time.Hour),
				}
				if road == "from elsewhere" {
					want.By, want.Face = "ann@example.com", "inbox"
				}
				if diff := cmp.Diff(want, d); diff != "" || !strings.Contains(payload, d.Kind) || d.Option == "" || d.Time.IsZero() {
					t.Errorf("%s (-want +have):\n%s", payload, diff)
				}
				before := effects.n
				later := call("deploy", `{"service":"api"}`)
				later.Session, later.StartID, later.Facilities = "s2", "work", nil
				face, err := g.NewFace("mcp", nil)
				if err != nil {
					t.Fatal(err)
				}
				if payload == allowAlways {
					mustFinish(t, face, later, `"deployed api"`)
					effects.want(t, before+1)
				} else {
					mustFail(t, face, later, gate.ErrRejected)
					effects.want(t, 0)
				}
				s, err := g.Inspect(t.Context(), "ann", "work")
				if err != nil {
					t.Fatal(err)
				}
				in := recorded(t, store, s.ID)
				if in.Status != checkpoint.Finished || len(in.Rounds) != 1 || in.Claim.Attempt != 1 {
					t.Fatalf("recorded %+v", in)
				}
				a := in.Rounds[0].Answer
				if !slices.Equal(a.Remembered, []checkpoint.ID{d.ID}) || a.By != d.By || a.Face != d.Face || a.Elsewhere ||
					!strings.Contains(string(a.Payloads[0]), d.Kind) {
					t.Errorf("recorded %+v", a)
				}
				decisions(t, g, "ann", 1)
			})
		}
	}
}

// R9, R19: only an option of an always kind is remembered, and only where the tool says so; what it
// is remembered for is part of the question.
func TestWhatIsRemembered(t *testing.T) {
	var effects counter
	once := interrupt.DefaultPermissionOptions()[:1]
	for name, test := range map[string]struct {
		opts    *gate.RememberOptions
		options []interrupt.PermissionOption
		says    *checkpoint.Remember
		json    string
	}{
		"not":             {nil, nil, nil, ""},
		"nothing for it":  {&gate.RememberOptions{}, once, nil, ""},
		"the same":        {&gate.RememberOptions{}, nil, &checkpoint.Remember{Seconds: 86400}, `{"seconds":86400}`},
		"an hour":         {&gate.RememberOptions{Lifetime: time.Hour}, nil, &checkpoint.Remember{Seconds: 3600}, `{"seconds":3600}`},
		"named arguments": {&gate.RememberOptions{Arguments: []string{"b", "a"}}, nil, &checkpoint.Remember{Arguments: []string{"a", "b"}, Seconds: 86400}, `{"arguments":["a","b"],"seconds":86400}`},
		"any arguments":   {&gate.RememberOptions{AnyArguments: true}, nil, &checkpoint.Remember{AnyArguments: true, Seconds: 86400}, `{"anyArguments":true,"seconds":86400}`},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{
				permit("tool", &effects, &gate.ToolOptions{Remember: test.opts}, interrupt.ToolPermission("tool", "", test.options...)),
			}})
			c := call("tool", `{}`)
			p := mustAsk(t, g, c)
			q := p.Questions[0]
			if diff := cmp.Diff(test.says, q.Remember); diff != "" {
				t.Errorf("(-want +have):\n%s", diff)
			}
			shown, err := json.Marshal(q)
			if err != nil || test.json == "" == strings.Contains(string(shown), "remember") || !strings.Contains(string(shown), test.json) {
				t.Errorf("shown %s, %v", shown, err)
			}
			if always := strings.Contains(string(q.Body), "always"); always != (test.says != nil) {
				t.Errorf("body %s", q.Body)
			}
			elsewhere := open(t, store, gate.Options{}) // the question says it of itself, wherever it is read
			s, err := elsewhere.InspectID(t.Context(), "ann", p.Interaction)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.says, s.Prompt.Questions[0].Remember); diff != "" {
				t.Errorf("elsewhere (-want +have):\n%s", diff)
			}
			mustFinish(t, g, with(c, p, allow), `"done"`)
			decisions(t, g, "ann", 0)
			p = mustAsk(t, g, c)
			mustFail(t, g, with(c, p, `{"action":"decline"}`), gate.ErrDeclined)
			decisions(t, g, "ann", 0)
			mustAsk(t, g, c)
		})
	}
}

// R19: a decision answers nothing but what it was given for.
func TestDecisionIsForNothingElse(t *testing.T) {
	type thing struct {
		tool, revision, scope, arguments, key, toolName, title string
		remember                                               gate.RememberOptions
	}
	given := thing{"tool", "1", "ann", `{"a":1,"b":{"c":[2]}}`, "", "rm", "Remove it", gate.RememberOptions{}}
	with2 := func(change func(*thing)) (t thing) {
		t = given
		change(&t)
		return t
	}
	for name, test := range map[string]struct {
		given, later thing
		used         bool
	}{
		"the same":                    {given, given, true},
		"the same in other words":     {given, with2(func(t *thing) { t.arguments = `{ "b":{"c":[2.0]}, "a":1e0 }` }), true},
		"another scope":               {given, with2(func(t *thing) { t.scope = "bob" }), false},
		"another tool":                {given, with2(func(t *thing) { t.tool = "loot" }), false},
		"another revision":            {given, with2(func(t *thing) { t.revision = "2" }), false},
		"another argument":            {given, with2(func(t *thing) { t.arguments = `{"a":1,"b":{"c":[3]}}` }), false},
		"one argument more":           {given, with2(func(t *thing) { t.arguments = `{"a":1,"b":{"c":[2]},"d":null}` }), false},
		"another tool name":           {given, with2(func(t *thing) { t.toolName = "mv" }), false},
		"a key":                       {given, with2(func(t *thing) { t.key = "k" }), false},
		"another text, without a key": {given, with2(func(t *thing) { t.title = "Remove the other one" }), false},
		"another text, with a key": {
			with2(func(t *thing) { t.key = "k" }), with2(func(t *thing) { t.key, t.title = "k", "Remove it, please" }), true,
		},
		"another key": {with2(func(t *thing) { t.key = "k" }), with2(func(t *thing) { t.key = "l" }), false},
		"widened by now": {
			given, with2(func(t *thing) { t.remember.AnyArguments = true }), false,
		},
		"narrowed by now": {
			with2(func(t *thing) { t.remember.AnyArguments = true }), given, false,
		},
		"any arguments": {
			with2(func(t *thing) { t.remember.AnyArguments = true }),
			with2(func(t *thing) { t.remember.AnyArguments, t.arguments, t.title = true, `{}`, "Remove another" }), true,
		},
		"any arguments, another tool name": {
			with2(func(t *thing) { t.remember.AnyArguments = true }),
			with2(func(t *thing) { t.remember.AnyArguments, t.toolName = true, "mv" }), false,
		},
		"named arguments": {
			with2(func(t *thing) { t.remember.Arguments = []string{"a", "x"} }),
			with2(func(t *thing) { t.remember.Arguments, t.arguments = []string{"x", "a"}, `{"a":1}` }), true,
		},
		"named arguments, one of them other": {
			with2(func(t *thing) { t.remember.Arguments = []string{"a"} }),
			with2(func(t *thing) { t.remember.Arguments, t.arguments = []string{"a"}, `{"a":2,"b":{"c":[2]}}` }), false,
		},
		"named arguments, one of them missing": {
			with2(func(t *thing) { t.remember.Arguments = []string{"a"} }),
			with2(func(t *thing) { t.remember.Arguments, t.arguments = []string{"a"}, `{"b":{"c":[2]}}` }), false,
		},
		"named arguments, one of them new": {
			with2(func(t *thing) { t.remember.Arguments = []string{"a", "x"} }),
			with2(func(t *thing) { t.remember.Arguments, t.arguments = []string{"a", "x"}, `{"a":1,"x":null}` }), false,
		},
		"other names": {
			with2(func(t *thing) { t.remember.Arguments = []string{"a"} }),
			with2(func(t *thing) { t.remember.Arguments = []string{"a", "x"} }), false,
		},
		"no longer": {given, with2(func(t *thing) { t.remember.Lifetime = -1 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMem()
			var effects counter
			at := func(th thing) (*gate.Gate, gate.Call) {
				opts := &gate.ToolOptions{Revision: th.revision, FormerRevisions: []string{"1"}, Remember: &th.remember}
				if th.remember.Lifetime < 0 {
					opts.Remember = nil
				}
				g := open(t, store, gate.Options{Tools: []*gate.Tool{permit(th.tool, &effects, opts, keyed(th.key, th.toolName, th.title))}})
				c := call(th.tool, th.arguments)
				c.Scope = th.scope
				return g, c
			}
			g, c := at(test.given)
			mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
			g, c = at(test.later)
			if test.used {
				mustFinish(t, g, c, `"done"`)
				effects.want(t, 2)
			} else {
				mustAsk(t, g, c)
				effects.want(t, 1)
			}
		})
	}
}

// R19: a question that was asked under a former revision is remembered for that one.
func TestRememberedForTheRevisionThatAsked(t *testing.T) {
	var effects counter
	store := newMem()
	at := func(revision string) *gate.Gate {
		return open(t, store, gate.Options{Tools: []*gate.Tool{permit("tool", &effects, &gate.ToolOptions{
			Revision: revision, FormerRevisions: []string{"1"}, Remember: &gate.RememberOptions{},
		}, interrupt.ToolPermission("tool", ""))}})
	}
	c := call("tool", `{}`)
	p := mustAsk(t, at("1"), c)
	g := at("2")
	mustFinish(t, g, with(c, p, allowAlways), `"done"`)
	if d := decisions(t, g, "ann", 1)[0]; d.ToolRevision != "1" {
		t.Errorf("remembered %+v", d)
	}
	mustAsk(t, g, c)
}

// R19: it never answers any other type, and a prompt is answered by decisions whole or not at all
// (R18).
func TestDecisionAnswersPermissionsOnly(t *testing.T) {
	var effects counter
	var questions []interrupt.Interrupt
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		if _, err := interrupt.AskAll(ctx, questions...); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{Remember: &gate.RememberOptions{}}))
	a, b := keyed("a", "tool", ""), keyed("b", "tool", "")
	form := interrupt.Form("Why?", json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"}}}`))
	c := call("tool", `{}`)

	questions = []interrupt.Interrupt{a}
	mustFinish(t, g, with(c, mustAsk(t, g, c), allowAlways), `"done"`)
	for name, test := range map[string][]interrupt.Interrupt{
		"a selection":        {choose("allow_always", "allow_once")},
		"a form":             {form},
		"a page":             {interrupt.URL("Look", "https://example.com")},
		"another permission": {b},
		"one of two":         {a, b},
		"the other of two":   {b, a},
		"beside a form":      {a, form},
	} {
		questions = test
		if p := mustAsk(t, g, c); len(p.Questions) != len(test) {
			t.Errorf("%s: shown %+v", name, p)
		}
	}
	effects.want(t, 1)
	questions = []interrupt.Interrupt{a, b}
	mustFinish(t, g, with(c, mustAsk(t, g, c), allow, allowAlways), `"done"`)
	mustFinish(t, g, c, `"done"`) // both
	effects.want(t, 3)
}

// R19: the answer takes the option of the decision, or the only one that means the same; of several
// it takes none.
func TestWhichOptionIsTaken(t *testing.T) {
	option := func(id, kind string) interrupt.PermissionOption {
		return interrupt.PermissionOption{OptionID: id, Name: id, Kind: kind}
	}
	for name, test := range map[string]struct {
		options []interrupt.PermissionOption
		want    string // empty: the prompt is shown
	}{
		"its own":                      {[]interrupt.PermissionOption{option("x", "allow_once"), option("y", "allow_always"), option("mine", "allow_always")}, "mine"},
		"the only one of its kind":     {[]interrupt.PermissionOption{option("x", "allow_once"), option("y", "allow_always")}, "y"},
		"one of several of its kind":   {[]interrupt.PermissionOption{option("x", "allow_once"), option("y", "allow_always"), option("z", "allow_always")}, ""},
		"the only once kind":           {[]interrupt.PermissionOption{option("r", "reject_always"), option("x", "allow_once")}, "x"},
		"one of several once kinds":    {[]interrupt.PermissionOption{option("x", "allow_once"), option("y", "allow_once")}, ""},
		"its own id, of the once kind": {[]interrupt.PermissionOption{option("mine", "allow_once")}, "mine"},
		"its own id, meaning no":       {[]interrupt.PermissionOption{option("mine", "reject_always"), option("x", "allow_once")}, "x"},
		"only a no":                    {[]interrupt.PermissionOption{option("mine", "reject_always"), option("r", "reject_once")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var effects counter
			store := newMem()
			options := []interrupt.PermissionOption{option("mine", "allow_always")}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(ctx context.Context) (any, error) {
				if _, err := interrupt.Ask(ctx, keyed("k", "tool", "", options...)); err != nil {
					return nil, err
				}
				effects.add()
				return "done", nil
			}, &gate.ToolOptions{Remember: &gate.RememberOptions{}})}})
			c := call("tool", `{}`)
			mustFinish(t, g, with(c, mustAsk(t, g, c), `{"optionId":"mine"}`), `"done"`)
			options = test.options
			c.StartID = "work"
			if test.want == "" {
				mustAsk(t, g, c)
				return
			}
			mustFinish(t, g, c, `"done"`)
			s, err := g.Inspect(t.Context(), "ann", "work")
			if err != nil {
				t.Fatal(err)
			}
			if payload := string(recorded(t, store, s.ID).Rounds[0].Answer.Payloads[0]); !strings.Contains(payload, `"`+test.want+`"`) {
				t.Errorf("took %s", payload)
			}
		})
	}
}

// R19: a tool says what it remembers in a way that can be kept.
func TestRememberOptions(t *testing.T) {
	var effects counter
	for name, test := range map[string]struct {
		opts gate.RememberOptions
		good bool
	}{
		"nothing said":       {gate.RememberOptions{}, true},
		"a second":           {gate.RememberOptions{Lifetime: time.Second}, true},
		"an argument":        {gate.RememberOptions{Arguments: []string{"service", "secret"}}, true},
		"any":                {gate.RememberOptions{AnyArguments: true}, true},
		"less than a second": {gate.RememberOptions{Lifetime: time.Millisecond}, false},
		"negative":           {gate.RememberOptions{Lifetime: -time.Hour}, false},
		"no such argument":   {gate.RememberOptions{Arguments: []string{"service", "servise"}}, false},
		"twice":              {gate.RememberOptions{Arguments: []string{"service", "service"}}, false},
		"some and any":       {gate.RememberOptions{Arguments: []string{"service"}, AnyArguments: true}, false},
	} {
		if err := remembering(&effects, &test.opts).Validate(); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	names := []string{"service"}
	tool := remembering(&effects, &gate.RememberOptions{Arguments: names})
	names[0] = "servise"
	tool.Options().Remember.Arguments[0] = "servise"
	if err := tool.Validate(); err != nil {
		t.Errorf("the tool shares its options: %v", err)
	}
}
