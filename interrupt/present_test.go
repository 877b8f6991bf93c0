package interrupt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/interrupt"
)

// A verdict is a type of the user's own that presents itself as a selection.
type verdict struct {
	Document string                                          `json:"document"`
	Choice   string                                          `json:"-"`
	shows    func() interrupt.Interrupt                      // nil: a selection
	means    func(answered interrupt.Interrupt) (any, error) // nil: the title of what was chosen
}

// presenting is what a test makes of the next verdict that is read back.
var presenting verdict

func init() {
	interrupt.Register(func() interrupt.Interrupt { return &verdict{shows: presenting.shows, means: presenting.means} })
	interrupt.Register(func() interrupt.Interrupt { return &lenient{} })
}

func (v *verdict) TypeName() string           { return "test_verdict" }
func (v *verdict) Serialize() ([]byte, error) { return json.Marshal(v) }
func (v *verdict) Error() string              { return "verdict" }

func (v *verdict) Return(payload []byte) error {
	var in struct {
		Choice string `json:"choice"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return err
	}
	if in.Choice == "" {
		return fmt.Errorf("no choice: %w", interrupt.ErrInvalidPayload)
	}
	v.Choice = in.Choice
	return nil
}

func (v *verdict) Present() interrupt.Interrupt {
	if v.shows != nil {
		return v.shows()
	}
	return interrupt.UserSelection(interrupt.UserChoice{Title: "accept"}, interrupt.UserChoice{Title: "send back"})
}

func (v *verdict) FromPresented(answered interrupt.Interrupt) ([]byte, error) {
	if v.means != nil {
		meant, err := v.means(answered)
		if err != nil {
			return nil, err
		}
		return json.Marshal(meant)
	}
	return json.Marshal(map[string]string{"choice": answered.(*interrupt.UserSelectionInterrupt).ConfirmedChoice.Title})
}

// A lenient type presents itself as a permission, and says of itself whether it was rejected.
type lenient struct {
	Name string `json:"name"`
	No   bool   `json:"-"`
}

func (l *lenient) TypeName() string             { return "test_lenient" }
func (l *lenient) Serialize() ([]byte, error)   { return json.Marshal(l) }
func (l *lenient) Error() string                { return "lenient" }
func (l *lenient) Rejected() bool               { return l.No }
func (l *lenient) Present() interrupt.Interrupt { return interrupt.ToolPermission("rm", "Remove it") }

func (l *lenient) Return(payload []byte) error {
	return json.Unmarshal(payload, &struct{ No *bool }{&l.No})
}

func (l *lenient) FromPresented(answered interrupt.Interrupt) ([]byte, error) {
	no := !answered.(*interrupt.ToolPermissionInterrupt).Allowed && l.Name != "a yes of everything"
	return json.Marshal(map[string]bool{"No": no})
}

// R14: what a type presents is one of the four kinds and is held to the rules of its kind, when the
// question is raised. A presentation of a presentation is none.
func TestPresentedIsChecked(t *testing.T) {
	defer func() { presenting = verdict{} }()
	for name, test := range map[string]struct {
		shows func() interrupt.Interrupt
		kind  string // empty: refused
	}{
		"a selection":              {nil, "user_selection"},
		"a form":                   {func() interrupt.Interrupt { return interrupt.Form("m", []byte(`{"type":"object"}`)) }, "form"},
		"a form of a struct":       {func() interrupt.Interrupt { return interrupt.FormFor[embedded]("m") }, "form"},
		"a URL":                    {func() interrupt.Interrupt { return interrupt.URL("m", "https://example.com") }, "url"},
		"nothing":                  {func() interrupt.Interrupt { return nil }, ""},
		"a nil form":               {func() interrupt.Interrupt { return (*interrupt.FormInterrupt)(nil) }, ""},
		"zero":                     {func() interrupt.Interrupt { return &interrupt.URLInterrupt{} }, ""},
		"one choice":               {func() interrupt.Interrupt { return interrupt.UserSelection(interrupt.UserChoice{Title: "a"}) }, ""},
		"a form no struct is":      {func() interrupt.Interrupt { return interrupt.FormFor[int]("m") }, ""},
		"itself":                   {func() interrupt.Interrupt { return &verdict{} }, ""},
		"another presenter":        {func() interrupt.Interrupt { return &lenient{} }, ""},
		"another type":             {func() interrupt.Interrupt { return &review{Document: "d"} }, ""},
		"what embeds a kind":       {func() interrupt.Interrupt { return slyForm{interrupt.FormFor[embedded]("m")} }, ""},
		"a no that cannot be said": {func() interrupt.Interrupt { return interrupt.ToolPermission("rm", "") }, ""},
	} {
		presenting.shows = test.shows
		q := &verdict{Document: "d", shows: test.shows}
		shown, err := interrupt.Presented(q)
		_, errRaised := interrupt.Snapshot(q)
		switch {
		case test.kind == "":
			if !errors.Is(err, interrupt.ErrInvalidQuestion) || !errors.Is(errRaised, interrupt.ErrInvalidQuestion) {
				t.Errorf("%s: presented %v, raised %v", name, err, errRaised)
			}
		case err != nil || errRaised != nil || shown.TypeName() != test.kind:
			t.Errorf("%s: %v, presented %v, raised %v", name, shown, err, errRaised)
		}
	}
	if shown, err := interrupt.Presented(&review{}); shown != nil || err != nil {
		t.Errorf("a type that presents nothing: %v, %v", shown, err)
	}
}

// R30: what is shown can shorten the time of the question as the question itself can.
func TestPresentedLifetime(t *testing.T) {
	defer func() { presenting = verdict{} }()
	presenting.shows = func() interrupt.Interrupt {
		shown := interrupt.URL("m", "https://example.com")
		shown.Lifetime = time.Minute
		return shown
	}
	if s, err := interrupt.Snapshot(&verdict{Document: "d"}); err != nil || s.Lifetime != time.Minute {
		t.Errorf("%v, %v", s.Lifetime, err)
	}
}

// R14, R15: an answer is checked against what was shown before the type sees it, and what the type
// makes of it is checked by the type. Neither question is changed.
func TestFromPresented(t *testing.T) {
	private := errors.New("hunter2")
	for name, test := range map[string]struct {
		payload string
		means   func(interrupt.Interrupt) (any, error)
		meant   string // empty: refused
		action  interrupt.Action
	}{
		"a choice":            {`{"selectionIdx":1}`, nil, `{"choice":"send back"}`, interrupt.ActionAccept},
		"a decline":           {`{"action":"decline"}`, nil, `{"action":"decline"}`, interrupt.ActionDecline},
		"a cancel":            {`{"action":"cancel"}`, nil, `{"action":"cancel"}`, interrupt.ActionCancel},
		"no such choice":      {`{"selectionIdx":2}`, nil, "", ""},
		"the type's own":      {`{"choice":"accept"}`, nil, "", ""},
		"refused by the type": {`{"selectionIdx":0}`, func(interrupt.Interrupt) (any, error) { return nil, private }, "", ""},
		"what the type refuses": {`{"selectionIdx":0}`,
			func(interrupt.Interrupt) (any, error) { return map[string]string{}, nil }, "", ""},
		"a decline of the type's": {`{"selectionIdx":0}`,
			func(interrupt.Interrupt) (any, error) { return map[string]string{"action": "decline"}, nil }, "", ""},
		"no object": {`{"selectionIdx":0}`, func(interrupt.Interrupt) (any, error) { return "accept", nil }, "", ""},
	} {
		q := &verdict{Document: "d", means: test.means}
		shown := q.Present().(*interrupt.UserSelectionInterrupt)
		meant, action, err := interrupt.FromPresented(q, shown, []byte(test.payload))
		if test.meant == "" {
			if !errors.Is(err, interrupt.ErrInvalidPayload) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %s, %v", name, meant, err)
			}
		} else if err != nil || string(meant) != test.meant || action != test.action {
			t.Errorf("%s: %s, %s, %v", name, meant, action, err)
		}
		if q.Choice != "" || shown.ConfirmedChoice != nil {
			t.Errorf("%s: a question was changed", name)
		}
	}
	if _, _, err := interrupt.FromPresented(&review{}, interrupt.URL("m", "https://example.com"), []byte(`{}`)); err == nil {
		t.Error("a type that presents nothing")
	}
}

// R17: a person's no stays one: a type cannot make a yes of a rejected permission.
func TestPresentedNoStaysNo(t *testing.T) {
	shown := interrupt.ToolPermission("rm", "Remove it")
	for name, test := range map[string]struct {
		q       *lenient
		payload string
		refused bool
	}{
		"a yes":             {&lenient{Name: "a"}, `{"optionId":"allow_once"}`, false},
		"a no":              {&lenient{Name: "a"}, `{"optionId":"reject_once"}`, false},
		"a no made a yes":   {&lenient{Name: "a yes of everything"}, `{"optionId":"reject_once"}`, true},
		"a yes stays a yes": {&lenient{Name: "a yes of everything"}, `{"optionId":"allow_once"}`, false},
	} {
		meant, _, err := interrupt.FromPresented(test.q, shown, []byte(test.payload))
		if refused := errors.Is(err, interrupt.ErrInvalidPayload); refused != test.refused {
			t.Errorf("%s: %s, %v", name, meant, err)
		}
	}
}
