package interrupt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/interrupt"
)

// A review is a type of the user's own, with a decision in a field that is not serialized.
type review struct {
	Document string         `json:"document"`
	Tags     []string       `json:"tags"`
	Verdict  *string        `json:"-"`
	Notes    map[string]int `json:"-"`
}

func (r *review) TypeName() string           { return "test_review" }
func (r *review) Serialize() ([]byte, error) { return json.Marshal(r) }
func (r *review) Error() string              { return "review " + r.Document }

func (r *review) Return(payload []byte) error {
	var in struct {
		Verdict string `json:"verdict"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return err
	}
	if in.Verdict == "" {
		return errors.New("verdict is missing")
	}
	r.Verdict = &in.Verdict
	return nil
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(review) }) }

// The published JSON forms stay what they are.
func TestPublishedForms(t *testing.T) {
	for _, test := range []struct {
		q    interrupt.Interrupt
		name string
		body string
	}{
		{interrupt.ToolPermission("rm", "Remove it", interrupt.PermissionOption{OptionID: "y", Name: "Yes", Kind: interrupt.PermissionAllowOnce}),
			"tool_permission", `{"toolName":"rm","title":"Remove it","options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`},
		{interrupt.ToolPermission("rm", "", interrupt.PermissionOption{OptionID: "y", Name: "Yes", Kind: interrupt.PermissionAllowOnce}),
			"tool_permission", `{"toolName":"rm","options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`},
		{interrupt.UserSelection(interrupt.UserChoice{Title: "a", Description: "first", IsRecommended: true}, interrupt.UserChoice{Title: "b"}),
			"user_selection", `{"options":[{"title":"a","description":"first","isRecommended":true},{"title":"b","description":"","isRecommended":false}]}`},
		{interrupt.Form("Fill in", json.RawMessage(`{"type":"object"}`)), "form", `{"message":"Fill in","schema":{"type":"object"}}`},
		{interrupt.URL("Sign in", "https://example.com"), "url", `{"message":"Sign in","url":"https://example.com"}`},
	} {
		body, err := test.q.Serialize()
		if err != nil || string(body) != test.body || test.q.TypeName() != test.name {
			t.Errorf("%s: %s, %v", test.q.TypeName(), body, err)
		}
		back, err := interrupt.Rehydrate(test.name, body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.q, back); diff != "" {
			t.Errorf("%s read back (-want +have):\n%s", test.name, diff)
		}
	}
	for payload, want := range map[any]string{
		interrupt.ToolPermissionPayload{OptionID: "y"}:                           `{"optionId":"y"}`,
		interrupt.ToolPermissionPayload{InterruptId: "i", OptionID: "y"}:         `{"interruptId":"i","optionId":"y"}`,
		interrupt.UserSelectionPayload{InterruptId: "i", SelectionIdx: 1}:        `{"interruptId":"i","selectionIdx":1}`,
		interrupt.URLPayload{InterruptId: "i", Action: interrupt.ActionDecline}:  `{"interruptId":"i","action":"decline"}`,
		interrupt.UserChoice{Title: "a", Description: "b", IsRecommended: false}: `{"title":"a","description":"b","isRecommended":false}`,
	} {
		if have, err := json.Marshal(payload); err != nil || string(have) != want {
			t.Errorf("%T: %s, %v; want %s", payload, have, err, want)
		}
	}
	if have := string(interrupt.Cancel("i")); have != `{"interruptId":"i","action":"cancel"}` {
		t.Errorf("cancel: %s", have)
	}
}

// An answer is the same after every step that a record takes: Clone keeps the decision, and Return
// gives it again.
func TestNoDecisionIsLost(t *testing.T) {
	verdict := "good"
	for _, test := range []struct {
		q       interrupt.Interrupt
		payload string
		decided func(interrupt.Interrupt) any
		want    any
	}{
		{interrupt.ToolPermission("x", ""), `{"optionId":"allow_once"}`,
			func(q interrupt.Interrupt) any {
				p := q.(*interrupt.ToolPermissionInterrupt)
				return []any{p.Allowed, p.SelectedOptionID, p.SelectedKind, p.Rejected()}
			},
			[]any{true, "allow_once", "allow_once", false}},
		{interrupt.ToolPermission("x", ""), `{"interruptId":"i","optionId":"reject_always"}`,
			func(q interrupt.Interrupt) any {
				p := q.(*interrupt.ToolPermissionInterrupt)
				return []any{p.Allowed, p.SelectedKind, p.Rejected()}
			},
			[]any{false, "reject_always", true}},
		{interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"}), `{"selectionIdx":1}`,
			func(q interrupt.Interrupt) any { return *q.(*interrupt.UserSelectionInterrupt).ConfirmedChoice }, interrupt.UserChoice{Title: "b"}},
		{interrupt.URL("m", "https://example.com"), `{}`,
			func(q interrupt.Interrupt) any { return q.(*interrupt.URLInterrupt).Action }, interrupt.ActionAccept},
		{interrupt.URL("m", "https://example.com"), `{"action":"cancel"}`,
			func(q interrupt.Interrupt) any { return q.(*interrupt.URLInterrupt).Action }, interrupt.ActionCancel},
		{&review{Document: "d", Tags: []string{"t"}}, `{"verdict":"good"}`,
			func(q interrupt.Interrupt) any { return *q.(*review).Verdict }, verdict},
	} {
		if _, err := interrupt.Apply(test.q, []byte(test.payload)); err != nil {
			t.Fatal(err)
		}
		dup := interrupt.Clone(test.q)
		if diff := cmp.Diff(test.q, dup); diff != "" {
			t.Errorf("%s clone (-want +have):\n%s", test.q.TypeName(), diff)
		}
		if diff := cmp.Diff(test.want, test.decided(dup)); diff != "" {
			t.Errorf("%s decision (-want +have):\n%s", test.q.TypeName(), diff)
		}
		body, err := dup.Serialize()
		if err != nil {
			t.Fatal(err)
		}
		back, err := interrupt.Rehydrate(test.q.TypeName(), body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := interrupt.Apply(back, []byte(test.payload)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, test.decided(back)); diff != "" {
			t.Errorf("%s decision after a restart (-want +have):\n%s", test.q.TypeName(), diff)
		}
	}
}

// Clone is deep, and nil for what cannot be copied.
func TestClone(t *testing.T) {
	verdict := "good"
	q := &review{Document: "d", Tags: []string{"t"}, Verdict: &verdict, Notes: map[string]int{"n": 1}}
	dup := interrupt.Clone(q).(*review)
	q.Tags[0], *q.Verdict, q.Notes["n"] = "changed", "changed", 2
	if dup.Tags[0] != "t" || *dup.Verdict != "good" || dup.Notes["n"] != 1 {
		t.Errorf("the copy changed: %+v", dup)
	}
	p := interrupt.ToolPermission("x", "")
	pdup := interrupt.Clone(p).(*interrupt.ToolPermissionInterrupt)
	p.Options[0].Name = "changed"
	if pdup.Options[0].Name == "changed" {
		t.Error("the copy shares its options")
	}
	if interrupt.Clone(nil) != nil || interrupt.Clone(stranger{}) != nil || interrupt.Clone((*review)(nil)) != nil ||
		interrupt.Clone(interrupt.Form("m", json.RawMessage(`{`))) != nil {
		t.Error("a copy of what cannot be copied")
	}
}

type stranger struct{}

func (stranger) TypeName() string           { return "test_stranger" }
func (stranger) Serialize() ([]byte, error) { return nil, nil }
func (stranger) Return([]byte) error        { return nil }
func (stranger) Error() string              { return "" }

// A type of the user's own takes part in decline and cancel without knowing of them.
func TestOwnType(t *testing.T) {
	q := &review{Document: "d"}
	for payload, want := range map[string]interrupt.Action{
		`{"action":"decline"}`:           interrupt.ActionDecline,
		`{"action":"cancel"}`:            interrupt.ActionCancel,
		`{"verdict":"good"}`:             interrupt.ActionAccept,
		`{"verdict":"x","action":"yes"}`: "",
		`{}`:                             "",
	} {
		have, _, err := interrupt.Check(q, []byte(payload))
		if (err != nil) != (want == "") || err == nil && have != want {
			t.Errorf("%s: %q, %v", payload, have, err)
		}
		if err != nil && !errors.Is(err, interrupt.ErrInvalidPayload) {
			t.Errorf("%s: %v is no ErrInvalidPayload", payload, err)
		}
	}
	if q.Verdict != nil {
		t.Error("checking changed the question")
	}
}

// R14: Register is safe for concurrent use, and panics on a duplicate.
func TestRegister(t *testing.T) {
	var wg sync.WaitGroup
	last := int(registered.Add(8)) // the registry is the process's: a second run of the test has other names
	for i := last - 8; i < last; i++ {
		wg.Go(func() {
			interrupt.Register(func() interrupt.Interrupt { return &numbered{n: i} })
			interrupt.New("tool_permission")
		})
	}
	wg.Wait()
	for i := last - 8; i < last; i++ {
		if _, ok := interrupt.New(fmt.Sprintf("test_%d", i)); !ok {
			t.Errorf("type %d is not registered", i)
		}
	}
	for name, factory := range map[string]func() interrupt.Interrupt{
		"duplicate":  func() interrupt.Interrupt { return new(review) },
		"empty name": func() interrupt.Interrupt { return &numbered{n: -1} },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			interrupt.Register(factory)
		}()
	}
}

var registered atomic.Int64

type numbered struct {
	stranger
	n int
}

func (n *numbered) TypeName() string {
	if n.n < 0 {
		return ""
	}
	return fmt.Sprintf("test_%d", n.n)
}

// Outside a gate Ask returns the question, to be found with errors.As; nothing else can answer it
// (R3).
func TestAskWithoutAGate(t *testing.T) {
	q := interrupt.ToolPermission("x", "May I?")
	_, err := interrupt.Ask(t.Context(), q)
	var found *interrupt.ToolPermissionInterrupt
	if !errors.As(fmt.Errorf("wrapped: %w", err), &found) || found.Title != "May I?" || found == q {
		t.Errorf("found %+v in %v", found, err)
	}
	if _, ok := interrupt.ResumeFrom(t.Context()); ok {
		t.Error("a resume without a gate")
	}
	if interrupt.Supports(t.Context(), interrupt.FacilityForm) {
		t.Error("a facility without a gate")
	}
	if _, err := interrupt.Ask(t.Context(), &interrupt.URLInterrupt{}); !errors.Is(err, interrupt.ErrInvalidQuestion) {
		t.Errorf("zero value: %v", err)
	}
}
