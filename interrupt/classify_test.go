package interrupt_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-go/parley/interrupt"
)

// R1: what an error is, what it asks, and what stands beside the question.
func TestClassify(t *testing.T) {
	other := errors.New("other")
	same := interrupt.ToolPermission("x", "")
	question := func() error { return interrupt.ToolPermission("x", "") }
	step := func(err, cause error) error { return &interrupt.StepError{Key: "a", Err: err, Cause: cause} }
	stateful := func(state string) error { return interrupt.WithState(question(), []byte(state)) }
	for name, test := range map[string]struct {
		err       error
		kind      interrupt.Kind
		questions int
		state     string
		other     error // nil: not looked at
	}{
		"nothing":                          {nil, interrupt.KindFailure, 0, "", nil},
		"a failure":                        {fmt.Errorf("wrapped: %w", other), interrupt.KindFailure, 0, "", other},
		"a decision beside a failure":      {errors.Join(interrupt.ErrRejected, other), interrupt.KindFailure, 0, "", other},
		"no children":                      {noChildren{}, interrupt.KindFailure, 0, "", noChildren{}},
		"no child":                         {noChild{}, interrupt.KindFailure, 0, "", noChild{}},
		"no children, beside":              {errors.Join(question(), noChildren{}), interrupt.KindMixed, 0, "", noChildren{}},
		"no child, beside":                 {errors.Join(question(), noChild{}), interrupt.KindMixed, 0, "", noChild{}},
		"nil children":                     {fmt.Errorf("%w %w", question(), error(nil)), interrupt.KindPrompt, 1, "", nil},
		"a question":                       {question(), interrupt.KindPrompt, 1, "", nil},
		"the same question twice":          {errors.Join(same, fmt.Errorf("wrapped: %w", same)), interrupt.KindPrompt, 1, "", nil},
		"and with state":                   {errors.Join(same, interrupt.WithState(same, []byte("1"))), interrupt.KindPrompt, 1, "1", nil},
		"two that show the same":           {errors.Join(question(), question()), interrupt.KindPrompt, 2, "", nil},
		"equal values":                     {errors.Join(stranger{}, stranger{}), interrupt.KindPrompt, 2, "", nil},
		"pointers to nothing":              {errors.Join(new(stranger), new(stranger)), interrupt.KindPrompt, 2, "", nil},
		"values that cannot be compared":   {errors.Join(listed{{}}, listed{{}}), interrupt.KindPrompt, 2, "", nil},
		"with state":                       {fmt.Errorf("wrapped: %w", stateful("null")), interrupt.KindPrompt, 1, "null", nil},
		"one of two with state":            {errors.Join(stateful("1"), question()), interrupt.KindPrompt, 2, "1", nil},
		"state given twice":                {errors.Join(stateful("1"), stateful("2")), interrupt.KindMixed, 0, "", nil},
		"state of a state":                 {interrupt.WithState(stateful("1"), []byte("2")), interrupt.KindMixed, 0, "", nil},
		"a question beside a failure":      {errors.Join(question(), other), interrupt.KindMixed, 0, "", other},
		"a question beside a decision":     {errors.Join(question(), interrupt.ErrDeclined), interrupt.KindMixed, 0, "", interrupt.ErrDeclined},
		"an unknown outcome":               {fmt.Errorf("x: %w", step(interrupt.ErrOutcomeUnknown, other)), interrupt.KindOutcomeUnknown, 0, "", nil},
		"an unknown outcome is the worst":  {errors.Join(interrupt.ErrCancelled, interrupt.ErrOutcomeUnknown), interrupt.KindOutcomeUnknown, 0, "", nil},
		"an unknown outcome and a failure": {errors.Join(other, step(interrupt.ErrOutcomeUnknown, nil)), interrupt.KindFailure, 0, "", other},
		"an unknown outcome and a question": {
			errors.Join(step(interrupt.ErrOutcomeUnknown, nil), question()), interrupt.KindMixed, 0, "", interrupt.ErrOutcomeUnknown},
		"a step that was refused":        {step(other, question()), interrupt.KindFailure, 0, "", other},
		"a step that nothing is said of": {&interrupt.StepError{}, interrupt.KindFailure, 0, "", nil},
		"the worst decision":             {errors.Join(interrupt.ErrDeclined, interrupt.ErrCancelled, interrupt.ErrRejected), interrupt.KindCancelled, 0, "", nil},
	} {
		c := interrupt.Classify(test.err)
		if c.Kind != test.kind || len(c.Questions) != test.questions || string(c.State) != test.state {
			t.Errorf("%s: %+v", name, c)
		}
		if test.other != nil && c.Other != test.other {
			t.Errorf("%s: beside it stands %v", name, c.Other)
		}
		if test.kind == interrupt.KindMixed && c.Other == nil {
			t.Errorf("%s: nothing is told of what stands beside it", name)
		}
	}
}

// A listed is a question that is not comparable.
type listed []stranger

func (listed) TypeName() string           { return "test_listed" }
func (listed) Serialize() ([]byte, error) { return nil, nil }
func (listed) Return([]byte) error        { return nil }
func (listed) Error() string              { return "" }

type noChildren struct{}

func (noChildren) Error() string   { return "no children" }
func (noChildren) Unwrap() []error { return nil }

type noChild struct{}

func (noChild) Error() string { return "no child" }
func (noChild) Unwrap() error { return nil }

// R15, R17: Apply gives a question what it accepts, tells a decline and a cancel by the action
// alone to a type of the user's own, and changes nothing where the answer does not fit.
func TestApply(t *testing.T) {
	for payload, want := range map[string]interrupt.Action{
		`{"verdict":"good"}`:                    interrupt.ActionAccept,
		`{"action":"decline"}`:                  interrupt.ActionDecline,
		`{"action":"cancel","interruptId":"x"}`: interrupt.ActionCancel,
		`{"action":"cancel","verdict":"good"}`:  "",
		`{"verdict":"good","verdict":"good"}`:   "",
		`{"action":"maybe"}`:                    "",
		`{}`:                                    "",
		``:                                      "",
		`{"verdict":"good"} {}`:                 "",
	} {
		q := &review{Document: "d"}
		action, err := interrupt.Apply(q, []byte(payload))
		if action != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, interrupt.ErrInvalidPayload) {
			t.Errorf("%s: %q, %v", payload, action, err)
		}
		if (q.Verdict != nil) != (want == interrupt.ActionAccept) {
			t.Errorf("%s: the verdict is %v", payload, q.Verdict)
		}
	}
	for payload, want := range map[string]interrupt.Action{
		`{"optionId":"allow_once"}`:                    interrupt.ActionAccept,
		`{"action":"decline"}`:                         interrupt.ActionDecline,
		`{"action":"cancel"}`:                          interrupt.ActionCancel,
		`{"action":"cancel","optionId":"allow_once"}`:  "",
		`{"action":"decline","optionId":"allow_once"}`: "",
		`{"optionId":"allow_once","x":1}`:              "",
		`{"optionId":"nope"}`:                          "",
		`{"optionId":1}`:                               "",
		`{}`:                                           "",
	} {
		q := interrupt.ToolPermission("x", "")
		action, err := interrupt.Apply(q, []byte(payload))
		if action != want || q.Action != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %q, %v", payload, action, q.Action, err)
		}
		if q.Allowed != (want == interrupt.ActionAccept) {
			t.Errorf("%s: allowed is %v", payload, q.Allowed)
		}
	}
}
