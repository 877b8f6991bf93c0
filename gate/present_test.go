package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A ticket is a type of the user's own that presents itself as a selection, or as what As says. It
// is of version 2; it was called gate_test_card in version 1, and had a name instead of a title.
type ticket struct {
	Title string `json:"title"`
	As    string `json:"as,omitempty"`
	// Does is what FromPresented does: "panic", "told", or an error with that text.
	Does string `json:"does,omitempty"`

	Key      string `json:"-"`
	Priority string `json:"-"`
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(ticket) }) }

// unconvertible makes the meaning of every answer to a ticket unknown.
var unconvertible atomic.Bool

func (k *ticket) TypeName() string           { return "gate_test_ticket" }
func (k *ticket) FormerNames() []string      { return []string{"gate_test_card"} }
func (k *ticket) QuestionVersion() int       { return 2 }
func (k *ticket) QuestionKey() string        { return k.Key }
func (k *ticket) Serialize() ([]byte, error) { return json.Marshal(k) }
func (k *ticket) Error() string              { return "ticket " + k.Title }
func (k *ticket) Rejected() bool             { return k.Priority == "none" }

func (k *ticket) UpgradeBody(version int, body []byte) ([]byte, error) {
	var was struct{ Name string }
	if err := json.Unmarshal(body, &was); err != nil || version != 1 {
		return nil, fmt.Errorf("version %d: %v", version, err)
	}
	return json.Marshal(ticket{Title: was.Name})
}

func (k *ticket) Validate() error {
	if k.Title == "" {
		return &interrupt.QuestionError{Type: k.TypeName(), Path: "/title", Reason: "is missing"}
	}
	return nil
}

func (k *ticket) Return(payload []byte) error {
	var in struct{ Priority *string }
	if err := json.Unmarshal(payload, &in); err != nil || in.Priority == nil {
		return fmt.Errorf("no priority: %w", interrupt.ErrInvalidPayload)
	}
	k.Priority = *in.Priority
	return nil
}

func (k *ticket) Present() interrupt.Interrupt {
	switch k.As {
	case "":
		return interrupt.UserSelection(interrupt.UserChoice{Title: "high"}, interrupt.UserChoice{Title: "low"})
	case "permission":
		return interrupt.ToolPermission("ticket", k.Title)
	case "form":
		return interrupt.FormFor[struct {
			Priority string `json:"priority" enum:"high,low"`
		}](k.Title)
	case "only always":
		return interrupt.ToolPermission("ticket", "", interrupt.PermissionOption{OptionID: "a", Name: "A", Kind: interrupt.PermissionAllowAlways})
	case "too much":
		var choices []interrupt.UserChoice
		for i := range 300 {
			choices = append(choices, interrupt.UserChoice{Title: fmt.Sprint(i)})
		}
		return interrupt.UserSelection(choices...)
	case "a ticket":
		return &ticket{Title: "x"}
	case "panic":
		panic(errPrivate)
	}
	return nil
}

func (k *ticket) FromPresented(answered interrupt.Interrupt) ([]byte, error) {
	switch {
	case unconvertible.Load():
		return nil, errPrivate
	case k.Does == "panic":
		panic(errPrivate)
	case k.Does == "told":
		return nil, fmt.Errorf("too late for that: %w", interrupt.ErrInvalidPayload)
	case k.Does != "":
		return nil, errors.New(k.Does)
	}
	var priority string
	switch answered := answered.(type) {
	case *interrupt.UserSelectionInterrupt:
		priority = answered.ConfirmedChoice.Title
	case *interrupt.FormInterrupt:
		return answered.Content, nil
	case *interrupt.ToolPermissionInterrupt:
		priority = "high"
		if !answered.Allowed {
			priority = "none"
		}
	}
	return json.Marshal(map[string]string{"Priority": priority})
}

// file asks a ticket and returns its priority.
func file(question ticket, opts *gate.ToolOptions) *gate.Tool {
	return raw("file", func(ctx context.Context) (any, error) {
		answered, err := interrupt.Ask(ctx, &question)
		if err != nil {
			return nil, err
		}
		return answered.Priority, nil
	}, opts)
}

// R14: a type that presents itself is shown as what it presents, by its facility and with its own
// name; the answer is to that, and the handler gets the type's own.
func TestPresented(t *testing.T) {
	for as, test := range map[string]struct {
		kind    interrupt.Facility
		body    string
		payload string
		meant   string
		result  string
	}{
		"": {interrupt.FacilitySelection,
			`{"options":[{"title":"high","description":"","isRecommended":false},{"title":"low","description":"","isRecommended":false}]}`,
			`{"selectionIdx":1}`, `{"Priority":"low","action":"accept","interruptId":"ID"}`, `"low"`},
		"form": {interrupt.FacilityForm,
			`{"message":"Disk full","schema":{"type":"object","properties":{"priority":{"type":"string","enum":["high","low"]}},"required":["priority"]}}`,
			`{"content":{"priority":"high"}}`, `{"action":"accept","interruptId":"ID","priority":"high"}`, `"high"`},
		// R9, R19: nothing of a type of the user's own is remembered, so that no option says so.
		"permission": {interrupt.FacilityPermission, `{"toolName":"ticket","title":"Disk full","options":[` +
			`{"optionId":"allow_once","name":"Allow once","kind":"allow_once"},{"optionId":"reject_once","name":"Reject","kind":"reject_once"}]}`,
			`{"optionId":"allow_once"}`, `{"Priority":"high","action":"accept","interruptId":"ID"}`, `"high"`},
	} {
		t.Run(as, func(t *testing.T) {
			store := newMem()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{file(ticket{Title: "Disk full", As: as}, nil)}})
			c := call("file", `{}`)
			c.Facilities = []interrupt.Facility{"gate_test_ticket"} // knows the type, and not what it presents
			mustFail(t, g, c, gate.ErrConfirmationRequired)
			c.Facilities = []interrupt.Facility{test.kind}
			p := mustAsk(t, g, c)
			q := p.Questions[0]
			want := gate.Question{ID: q.ID, Type: string(test.kind), Body: json.RawMessage(test.body), PresentedBy: "gate_test_ticket"}
			if diff := cmp.Diff(want, q); diff != "" {
				t.Errorf("shown (-want +have):\n%s", diff)
			}
			if shown, err := q.Interrupt(); err != nil || shown.TypeName() != string(test.kind) {
				t.Errorf("shown %v, %v", shown, err)
			}
			mustFail(t, g, with(c, p, `{"Priority":"high"}`), gate.ErrInvalidAnswer) // R15: the type's own payload is none
			mustFinish(t, g, with(c, p, test.payload), test.result)
			in := recorded(t, store, p.Interaction)
			if have := in.Rounds[0].Questions[0]; have.Type != "gate_test_ticket" || have.Version != 2 || have.Shown.Type != string(test.kind) {
				t.Errorf("recorded %+v", have)
			}
			meant := strings.ReplaceAll(test.meant, "ID", q.ID)
			if have := string(in.Rounds[0].Answer.Payloads[0]); have != meant {
				t.Errorf("recorded %s", have)
			}
		})
	}
}

// R17: declining and cancelling what is shown decline and cancel the question, and a rejected
// permission rejects it; none of them is asked what it means.
func TestPresentedDecisions(t *testing.T) {
	for payload, want := range map[string]gate.Code{
		`{"action":"decline"}`: gate.ErrDeclined, `{"action":"cancel"}`: gate.ErrCancelled, reject: gate.ErrRejected,
	} {
		g := openMem(t, file(ticket{Title: "x", As: "permission"}, nil))
		c := call("file", `{}`)
		mustFail(t, g, with(c, mustAsk(t, g, c), payload), want)
	}
	g := openMem(t, file(ticket{Title: "x", Does: "panic"}, &gate.ToolOptions{KeepOpen: true}))
	c := call("file", `{}`)
	if e := mustFail(t, g, with(c, mustAsk(t, g, c), `{"action":"decline"}`), gate.ErrDeclined); !e.StillOpen {
		t.Error("the question is not open any more")
	}
}

// R8 to R12, R14, R34: what is presented is held to the rules of its kind before anything is
// stored.
func TestPresentedIsRefused(t *testing.T) {
	for _, as := range []string{"only always", "too much", "a ticket", "panic", "nothing"} {
		g := openMem(t, raw("file", func(context.Context) (any, error) { return nil, &ticket{Title: "x", As: as} }, nil))
		e := mustFail(t, g, call("file", `{}`), gate.ErrInvalidQuestion)
		if strings.Contains(e.Error(), errPrivate.Error()) {
			t.Errorf("%s: told %v", as, e)
		}
		if page, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil || len(page.Interactions) > 0 {
			t.Errorf("%s: stored %+v, %v", as, page, err)
		}
	}
}

// R16: where what an answer means cannot be found out, the question stays open, and only what the
// type says is about the answer is told.
func TestPresentedMeansNothing(t *testing.T) {
	for does, told := range map[string]string{errPrivate.Error(): "", "panic": "", "told": "too late for that"} {
		g := openMem(t, file(ticket{Title: "x", Does: does}, nil))
		c := call("file", `{}`)
		e := mustFail(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), gate.ErrInvalidAnswer)
		if !e.StillOpen || strings.Contains(e.Error(), errPrivate.Error()) || !strings.Contains(e.Error(), told) {
			t.Errorf("%s: %+v", does, e)
		}
	}
}

// R26 to R28: an answer that comes again is compared as it was given: what it means is not asked
// again, and need not be known any more.
func TestPresentedReplay(t *testing.T) {
	var effects counter
	g := openMem(t, raw("file", func(ctx context.Context) (any, error) {
		if _, err := interrupt.Ask(ctx, &ticket{Title: "x"}); err != nil {
			return nil, err
		}
		effects.add()
		return "done", nil
	}, &gate.ToolOptions{KeepResult: true}))
	c := call("file", `{}`)
	p := mustAsk(t, g, c)
	mustFinish(t, g, with(c, p, `{"selectionIdx":1}`), `"done"`)
	unconvertible.Store(true)
	defer unconvertible.Store(false)
	mustFinish(t, g, with(c, p, ` {"action":"accept", "selectionIdx":1}`), `"done"`)
	mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrAnswerConflict)
	mustFail(t, g, with(c, p, `{"selectionIdx":2}`), gate.ErrInvalidAnswer)
	mustAnswer(t, g, p, `{"selectionIdx":1}`)
	effects.want(t, 1)
}

// R14, R28: that an answer is recorded is confirmed also where the type that it was to is not known
// any more.
func TestPresentedReplayWithoutItsType(t *testing.T) {
	store := newMem()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{file(ticket{Title: "x"}, nil)}})
	p := mustAsk(t, g, call("file", `{}`))
	mustAnswer(t, g, p, `{"selectionIdx":1}`)
	rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { in.Rounds[0].Questions[0].Type = "gate_test_gone" })
	mustAnswer(t, g, p, `{"selectionIdx":1}`)
	wantCode(t, "another answer", g.Answer(t.Context(), answers(p, "ann", `{"selectionIdx":0}`)), gate.ErrAnswerConflict)
}

// R34: what is shown counts towards the size of a prompt beside the question itself.
func TestPresentedIsBounded(t *testing.T) {
	question := ticket{Title: strings.Repeat("x", 1000), As: "form"} // once in either body
	for most, fits := range map[int]bool{3000: true, 1900: false} {
		g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{file(question, nil)}, Limits: gate.Limits{Prompt: most}})
		if fits {
			mustAsk(t, g, call("file", `{}`))
		} else {
			mustFail(t, g, call("file", `{}`), gate.ErrTooLarge)
		}
	}
}

// R21: a token is bound to what was shown, and to the version of what was asked.
func TestTokenIsForWhatWasShown(t *testing.T) {
	for name, change := range map[string]func(q *checkpoint.Question){
		"another body":    func(q *checkpoint.Question) { q.Shown.Body = json.RawMessage(`{"options":[]}`) },
		"another kind":    func(q *checkpoint.Question) { q.Shown.Type = "form" },
		"not shown":       func(q *checkpoint.Question) { q.Shown = nil },
		"another version": func(q *checkpoint.Question) { q.Version = 3 },
	} {
		store := newMem()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{file(ticket{Title: "x"}, nil)}})
		c := call("file", `{}`)
		p := mustAsk(t, g, c)
		rewrite(t, store, p.Interaction, func(in *checkpoint.Interaction) { change(&in.Rounds[0].Questions[0]) })
		t.Log(name)
		mustFail(t, g, with(c, p, `{"selectionIdx":0}`), gate.ErrInvalidContinuation)
	}
}

// R2, R9: a key may change what a question shows, never which tool its permission is for.
func TestPresentedPermissionKeepsItsTool(t *testing.T) {
	as := "permission"
	g := openMem(t, raw("file", func(ctx context.Context) (any, error) {
		_, err := interrupt.Ask(ctx, &ticket{Title: "x", As: as, Key: "k"})
		return "done", err
	}, nil))
	c := call("file", `{}`)
	p := mustAsk(t, g, c)
	as = ""
	mustFail(t, g, with(c, p, allow), gate.ErrInvalidQuestion)
}

// R11, R15, R16: a form of a struct is asked, kept and answered as a form, and gives its value to
// the handler, also after a restart of the gate.
func TestFormForThroughTheGate(t *testing.T) {
	type release struct {
		Service string `json:"service" enum:"api,web"`
		Count   int8   `json:"count,omitempty"`
	}
	tool := raw("release", func(ctx context.Context) (any, error) {
		form, err := interrupt.Ask(ctx, interrupt.FormFor[release]("What to release?"))
		if err != nil {
			return nil, err
		}
		both, err := interrupt.AskAll(ctx, interrupt.FormFor[release]("And then?"), choose("a", "b"))
		if err != nil {
			return nil, err
		}
		then, err := both[0].(*interrupt.FormOf[release]).Value()
		if err != nil {
			return nil, err
		}
		first, err := form.Value()
		return []release{first, then}, err
	}, nil)
	store := newMem()
	c := call("release", `{}`)
	p := mustAsk(t, open(t, store, gate.Options{Tools: []*gate.Tool{tool}}), c)
	g := open(t, store, gate.Options{Tools: []*gate.Tool{tool}})
	mustFail(t, g, with(c, p, `{"content":{"service":"db"}}`), gate.ErrInvalidAnswer)
	answer := with(c, p, `{"content":{"service":"api","count":7}}`)
	p = mustAsk(t, g, answer)
	mustFinish(t, g, with(c, p, `{"content":{"service":"web"}}`, `{"selectionIdx":0}`), `[{"service":"api","count":7},{"service":"web"}]`)

	p = mustAsk(t, g, c)
	mustFail(t, g, with(c, p, `{"content":{"service":"api","count":128}}`), gate.ErrInvalidAnswer) // does not fit the int8
	p = mustAsk(t, g, with(c, p, `{"content":{"service":"api","count":127}}`))                     // corrected (R16)
	mustFinish(t, g, with(c, p, `{"content":{"service":"web"}}`, `{"selectionIdx":0}`), `[{"service":"api","count":127},{"service":"web"}]`)
	mustFail(t, g, with(c, mustAsk(t, g, c), `{"action":"decline"}`), gate.ErrDeclined)
}

// R14: a tool that is described by data asks by name, and gets what it asked, answered.
func TestRaiseInterruptThroughTheGate(t *testing.T) {
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		q, err := interrupt.RaiseInterrupt(ctx, "user_selection", []byte(`{"options":[{"title":"a"},{"title":"b"}]}`))
		if err != nil {
			return nil, err
		}
		return q.(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title, nil
	}, nil), raw("broken", func(ctx context.Context) (any, error) {
		return interrupt.RaiseInterrupt(ctx, "user_selection", []byte(`{"options":[{"title":"a"}]}`))
	}, nil))
	c := call("tool", `{}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":1}`), `"b"`)
	mustFail(t, g, with(c, mustAsk(t, g, c), `{"action":"cancel"}`), gate.ErrCancelled)
	mustFail(t, g, call("broken", `{}`), gate.ErrInvalidQuestion)
}
