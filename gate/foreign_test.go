package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A foreign question is a type of the user's own whose code does what it is told.
type foreign struct {
	Name string `json:"name"`
	// Does is what its methods do, by method: "panic", or an error with that text.
	Does map[string]string `json:"does"`
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(foreign) }) }

func (f *foreign) do(method string) error {
	switch does := f.Does[method]; does {
	case "":
		return nil
	case "panic":
		panic(errPrivate)
	case "told":
		return fmt.Errorf("the colour is wrong: %w", errors.Join(interrupt.ErrInvalidPayload, interrupt.ErrInvalidQuestion))
	default:
		return errors.New(does)
	}
}

func (f *foreign) UnmarshalJSON(text []byte) error {
	type plain foreign
	if err := json.Unmarshal(text, (*plain)(f)); err != nil {
		return err
	}
	if unreadable.Load() {
		panic(errPrivate)
	}
	return nil
}

// unreadable makes reading a foreign question back panic.
var unreadable atomic.Bool

func (f *foreign) TypeName() string    { return "gate_test_foreign" }
func (f *foreign) Error() string       { return "foreign " + f.Name }
func (f *foreign) Validate() error     { return f.do("Validate") }
func (f *foreign) Return([]byte) error { return f.do("Return") }

func (f *foreign) Serialize() ([]byte, error) {
	if err := f.do("Serialize"); err != nil {
		return nil, err
	}
	if f.Does["Serialize as text"] != "" {
		return []byte(`"just a string"`), nil
	}
	return json.Marshal(f)
}

// What a type's own code says is private, unless it says that it is about the question or the
// answer; a panic of it is an error like any other. None of it stores anything, or harms the
// question.
func TestForeignTypes(t *testing.T) {
	secret := errPrivate.Error()
	for name, test := range map[string]struct {
		does map[string]string
		asks bool   // whether it gets as far as being asked
		told string // what the message holds
	}{
		"Validate fails":      {map[string]string{"Validate": secret}, false, ""},
		"Validate tells":      {map[string]string{"Validate": "told"}, false, "the colour is wrong"},
		"Validate panics":     {map[string]string{"Validate": "panic"}, false, ""},
		"Serialize fails":     {map[string]string{"Serialize": secret}, false, ""},
		"Serialize panics":    {map[string]string{"Serialize": "panic"}, false, ""},
		"cannot be read back": {map[string]string{"Serialize as text": "yes"}, false, "read back"},
		"Return fails":        {map[string]string{"Return": secret}, true, ""},
		"Return tells":        {map[string]string{"Return": "told"}, true, "the colour is wrong"},
		"Return panics":       {map[string]string{"Return": "panic"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
				return nil, &foreign{Name: "x", Does: test.does}
			}, nil))
			c := call("tool", `{}`)
			c.Facilities = append(c.Facilities, "gate_test_foreign")
			var e *gate.Error
			if test.asks {
				e = mustFail(t, g, with(c, mustAsk(t, g, c), `{"colour":"red"}`), gate.ErrInvalidAnswer)
				if !e.StillOpen {
					t.Error("the question is not open any more")
				}
			} else {
				e = mustFail(t, g, c, gate.ErrInvalidQuestion)
			}
			if strings.Contains(e.Error(), secret) || !strings.Contains(e.Error(), test.told) {
				t.Errorf("told: %v", e)
			}
			if list, err := g.List(t.Context(), gate.ListQuery{Scope: "ann"}); err != nil || (len(list.Interactions) > 0) != test.asks {
				t.Errorf("stored: %+v, %v", list, err)
			}
		})
	}
}

// R14: a question that cannot be read back any more stays open, and harms nobody else's.
func TestForeignTypeUnreadable(t *testing.T) {
	g := openMem(t, raw("tool", func(context.Context) (any, error) { return nil, &foreign{Name: "x"} }, nil))
	c := call("tool", `{}`)
	c.Facilities = append(c.Facilities, "gate_test_foreign")
	p := mustAsk(t, g, c)
	unreadable.Store(true)
	defer unreadable.Store(false)
	if e := mustFail(t, g, with(c, p, `{"colour":"red"}`), gate.ErrRevisionChanged); strings.Contains(e.Error(), errPrivate.Error()) {
		t.Errorf("told: %v", e)
	}
	look := c
	look.Token = p.Token
	mustAsk(t, g, look)
}

// A host's callback that panics refuses: nothing is done because a check broke.
func TestPanickingCallbacks(t *testing.T) {
	var effects counter
	broken := false
	check := func() error {
		if broken {
			panic("no")
		}
		return nil
	}
	g := open(t, newMem(), gate.Options{
		Authorize:       func(context.Context, gate.Call) error { return check() },
		AuthorizeAnswer: func(context.Context, gate.Answerer) error { return check() },
		Tools: []*gate.Tool{deploy(&effects, nil), raw("own", func(context.Context) (any, error) { return nil, choose("a", "b") },
			&gate.ToolOptions{Authorize: func(context.Context, gate.Execution) error { panic("no") }})},
	})
	mustFail(t, g, call("own", `{}`), gate.ErrUnauthorized)
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	broken = true
	e := mustFail(t, g, with(c, p, allow), gate.ErrUnauthorized)
	var panicked *gate.PanicError
	if !errors.As(e, &panicked) {
		t.Errorf("cause: %v", errors.Unwrap(e))
	}
	wantCode(t, "answer", g.Answer(t.Context(), answers(p, "ann", allow)), gate.ErrUnauthorized)
	effects.want(t, 0)
	broken = false
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// Arguments that the schema takes and the input type does not are the caller's mistake, told before
// anybody is asked.
func TestArgumentsOutOfRange(t *testing.T) {
	var effects counter
	type input struct {
		Small int8    `json:"small"`
		Large float64 `json:"large,omitempty"`
		More  struct {
			IDs []int64 `json:"ids"`
		} `json:"more,omitzero"`
	}
	g := openMem(t, gate.NewTool("tool", func(context.Context, input) (string, error) {
		effects.add()
		return "", nil
	}, nil))
	for arguments, want := range map[string]string{
		`{"small":300}`:             "/small: must be at most 127", // which the schema says
		`{"small":1,"large":1e400}`: "large: out of the range of float64",
		`{"small":1,"more":{"ids":[1,9223372036854775808]}}`: "more.ids.1: out of the range of int64",
	} {
		c := call("tool", arguments)
		c.StartID = arguments
		if e := mustFail(t, g, c, gate.ErrInvalidArguments); !strings.HasSuffix(e.Message, want) {
			t.Errorf("%s: %v", arguments, e)
		}
	}
	effects.want(t, 0)
	mustFinish(t, g, call("tool", `{"small":1,"large":1.5}`), `""`)
}

// Names that a record could not hold as they are are refused when they are given.
func TestNamesAreUTF8(t *testing.T) {
	g := openMem(t)
	for _, name := range []string{"", "a\xff", strings.Repeat("x", 2000)} {
		if _, err := g.NewFace(name, nil); err == nil {
			t.Errorf("face %.10q was made", name)
		}
	}
	handler := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	for _, tool := range []*gate.Tool{
		nil, gate.NewRawTool("a\xff", handler, nil), gate.NewRawTool("a", handler, &gate.ToolOptions{Revision: "\xff"}),
	} {
		if err := tool.Validate(); err == nil {
			t.Errorf("a tool that cannot be recorded is valid")
		}
	}
}

// R30: the latest time ever recorded is a floor. Where that holds up this machine's clock, the host
// is told.
func TestStoreTimeAhead(t *testing.T) {
	var effects counter
	clock := newClock()
	store := newMem()
	tools := []*gate.Tool{deploy(&effects, nil)}
	clock.add(24 * time.Hour)
	mustAsk(t, open(t, store, gate.Options{Tools: tools, Now: clock.Now}), call("deploy", `{"service":"api"}`))
	clock.add(-24 * time.Hour)
	var out bytes.Buffer
	open(t, store, gate.Options{Tools: tools, Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if !strings.Contains(out.String(), "ahead=24h") {
		t.Errorf("log: %s", out.String())
	}
}
