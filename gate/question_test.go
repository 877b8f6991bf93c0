package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R8: a question is what it was when it was raised; what the handler or the receiver does to their
// values changes nothing.
func TestQuestionIsSnapshotted(t *testing.T) {
	shared := choose("a", "b")
	g := openMem(t, raw("tool", func(ctx context.Context) (any, error) {
		picked, err := interrupt.Ask(ctx, shared)
		if err != nil {
			shared.Options[0].Title = "changed after it was raised"
			return nil, err
		}
		return picked.ConfirmedChoice.Title, nil
	}, nil))
	c := call("tool", `{}`)
	p := mustAsk(t, g, c)
	if body := string(p.Questions[0].Body); strings.Contains(body, "changed") {
		t.Errorf("shown: %s", body)
	}
	clear(p.Questions[0].Body)
	c.Token = p.Token
	again := mustAsk(t, g, c)
	if body := string(again.Questions[0].Body); !json.Valid([]byte(body)) {
		t.Errorf("the receiver's copy is not its own: %q", body)
	}
	shared.Options[0].Title = "a"
	mustFinish(t, g, with(call("tool", `{}`), p, `{"selectionIdx":0}`), `"a"`)
	if shared.ConfirmedChoice != nil {
		t.Error("Ask changed the question it was given")
	}
}

// R8, R9, R10, R12, R14, R34: what is no question is refused before anything is stored, and the
// error says why.
func TestInvalidQuestions(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	permission := func(options ...interrupt.PermissionOption) error {
		return interrupt.ToolPermission("x", "", options...)
	}
	keyed := func() error {
		q := choose("a", "b")
		q.Key = "k"
		return q
	}
	many := func(n int) error {
		var questions []error
		for range n {
			questions = append(questions, choose("a", "b"))
		}
		return errors.Join(questions...)
	}
	for name, test := range map[string]struct {
		err  error
		code gate.Code
	}{
		"title not UTF-8":           {interrupt.ToolPermission("x", "\xff"), gate.ErrInvalidQuestion},
		"choice not UTF-8":          {choose("a", "\xff"), gate.ErrInvalidQuestion},
		"zero permission":           {&interrupt.ToolPermissionInterrupt{}, gate.ErrInvalidQuestion},
		"zero selection":            {&interrupt.UserSelectionInterrupt{}, gate.ErrInvalidQuestion},
		"zero form":                 {&interrupt.FormInterrupt{}, gate.ErrInvalidQuestion},
		"zero url":                  {&interrupt.URLInterrupt{}, gate.ErrInvalidQuestion},
		"nil pointer":               {(*interrupt.URLInterrupt)(nil), gate.ErrInvalidQuestion},
		"type not registered":       {unregistered{}, gate.ErrInvalidQuestion},
		"option without id":         {permission(interrupt.PermissionOption{Name: "n", Kind: "allow_once"}), gate.ErrInvalidQuestion},
		"option id twice":           {permission(interrupt.PermissionOption{OptionID: "a", Name: "n", Kind: "allow_once"}, interrupt.PermissionOption{OptionID: "a", Name: "m", Kind: "reject_once"}), gate.ErrInvalidQuestion},
		"option of no kind":         {permission(interrupt.PermissionOption{OptionID: "a", Name: "n", Kind: "maybe"}), gate.ErrInvalidQuestion},
		"only always options":       {permission(interrupt.PermissionOption{OptionID: "a", Name: "n", Kind: "allow_always"}), gate.ErrInvalidQuestion},
		"one choice":                {choose("a"), gate.ErrInvalidQuestion},
		"choice title twice":        {choose("a", "a"), gate.ErrInvalidQuestion},
		"choice title empty":        {choose("a", ""), gate.ErrInvalidQuestion},
		"two recommended":           {interrupt.UserSelection(interrupt.UserChoice{Title: "a", IsRecommended: true}, interrupt.UserChoice{Title: "b", IsRecommended: true}), gate.ErrInvalidQuestion},
		"http":                      {interrupt.URL("m", "http://example.com"), gate.ErrInvalidQuestion},
		"http on loopback":          {interrupt.URL("m", "http://localhost:8080"), gate.ErrInvalidQuestion},
		"relative url":              {interrupt.URL("m", "/login"), gate.ErrInvalidQuestion},
		"url with user information": {interrupt.URL("m", "https://ann:pw@example.com"), gate.ErrInvalidQuestion},
		"url without host":          {interrupt.URL("m", "https:///x"), gate.ErrInvalidQuestion},
		"url without message":       {interrupt.URL("", "https://example.com"), gate.ErrInvalidQuestion},
		"form of a wrong schema":    {interrupt.Form("m", json.RawMessage(`{"type":"array"}`)), gate.ErrInvalidQuestion},
		"the same key twice":        {errors.Join(keyed(), keyed()), gate.ErrInvalidQuestion},
		"too many questions":        {many(17), gate.ErrInvalidQuestion},
		"too many options":          {interrupt.ToolPermission("x", "", manyOptions(257)...), gate.ErrInvalidQuestion},
		"too many choices":          {choose(numbered(257)...), gate.ErrInvalidQuestion},
		"too many choices in forms": {interrupt.Form("m", manyChoices(256)), gate.ErrInvalidQuestion}, // and one field
		"too long":                  {interrupt.URL(long, "https://example.com"), gate.ErrTooLarge},
		"invalid UTF-8":             {interrupt.URL("\xff", "https://example.com"), gate.ErrInvalidQuestion},
		"negative lifetime":         {&interrupt.URLInterrupt{Message: "m", URL: "https://example.com", Lifetime: -time.Second}, gate.ErrInvalidQuestion},
	} {
		t.Run(name, func(t *testing.T) {
			store := &faulty{Store: newMem()}
			g := open(t, store, gate.Options{Tools: []*gate.Tool{raw("tool", func(context.Context) (any, error) { return nil, test.err }, nil)}})
			e := mustFail(t, g, call("tool", `{}`), test.code)
			if e.Message == "" {
				t.Error("the error says nothing")
			}
			if durable, _ := store.counts(); durable != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

func manyOptions(n int) []interrupt.PermissionOption {
	var options []interrupt.PermissionOption
	for _, name := range numbered(n) {
		options = append(options, interrupt.PermissionOption{OptionID: name, Name: name, Kind: interrupt.PermissionAllowOnce})
	}
	return options
}

func manyChoices(n int) json.RawMessage {
	choices, err := json.Marshal(numbered(n))
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{"x":{"type":"string","enum":%s}}}`, choices)
}

type unregistered struct{}

func (unregistered) TypeName() string           { return "nobody_knows_me" }
func (unregistered) Serialize() ([]byte, error) { return []byte(`{}`), nil }
func (unregistered) Return([]byte) error        { return nil }
func (unregistered) Error() string              { return "unregistered" }

// R9: the arguments are part of what is shown, the masked ones hidden; always kinds are not shown
// where nothing is remembered.
func TestPermissionShowsWhatWillRun(t *testing.T) {
	var ran []string
	g := openMem(t, gate.NewTool("deploy", func(ctx context.Context, in deployInput) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy")); err != nil {
			return "", err
		}
		ran = append(ran, in.Service+" "+in.Secret)
		return "", nil
	}, &gate.ToolOptions{Mask: []string{"secret"}}))
	c := call("deploy", `{"service":"api", "secret":"hunter2"}`)
	p := mustAsk(t, g, c)
	if want := `{"secret":"[hidden]","service":"api"}`; string(p.Arguments) != want {
		t.Errorf("want arguments %s, have %s", want, p.Arguments)
	}
	q, err := p.Questions[0].Interrupt()
	if err != nil {
		t.Fatal(err)
	}
	for _, option := range q.(*interrupt.ToolPermissionInterrupt).Options {
		if strings.HasSuffix(option.Kind, "_always") {
			t.Errorf("option %q is shown", option.Kind)
		}
	}
	mustFail(t, g, with(c, p, `{"optionId":"allow_always"}`), gate.ErrInvalidAnswer)
	// The mask hides the argument; it is bound all the same.
	other := c
	other.Arguments = json.RawMessage(`{"service":"api","secret":"other"}`)
	mustFail(t, g, with(other, p, allow), gate.ErrInvalidContinuation)
	mustFinish(t, g, with(c, p, allow), `""`)
	if len(ran) != 1 || ran[0] != "api hunter2" {
		t.Errorf("ran with %q", ran)
	}
}

// A tool does not change after it was made, whatever is done to what it was made of or gives out.
func TestToolIsImmutable(t *testing.T) {
	var effects counter
	opts := &gate.ToolOptions{Mask: []string{"secret"}}
	tool := deploy(&effects, opts)
	opts.Mask[0] = "x"
	tool.Options().Mask[0] = "x"
	clear(tool.Options().Schema)
	p := mustAsk(t, openMem(t, tool), call("deploy", `{"service":"api","secret":"hunter2"}`))
	if strings.Contains(string(p.Arguments), "hunter2") {
		t.Errorf("shown: %s", p.Arguments)
	}
}

// R9: a handler that tampers with the bytes it was given does not change what the next run gets.
func TestArgumentsAreTheRecordsOwn(t *testing.T) {
	var seen []string
	g := openMem(t, gate.NewRawTool("tool", func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		seen = append(seen, string(arguments))
		clear(arguments)
		_, err := interrupt.Ask(ctx, choose("a", "b"))
		return nil, err
	}, nil))
	c := call("tool", `{"amount": 1.0}`)
	mustFinish(t, g, with(c, mustAsk(t, g, c), `{"selectionIdx":0}`), `null`)
	if len(seen) != 2 || seen[0] != `{"amount":1}` || seen[1] != seen[0] {
		t.Errorf("runs saw %q", seen)
	}
}

// Arguments are validated before a person is asked, and a bad call names what and where.
func TestBadCalls(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	big := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		change func(*gate.Call)
		code   gate.Code
	}{
		"no such tool":           {func(c *gate.Call) { c.Tool = "destroy" }, gate.ErrUnknownTool},
		"no arguments":           {func(c *gate.Call) { c.Arguments = nil }, gate.ErrInvalidArguments},
		"not JSON":               {func(c *gate.Call) { c.Arguments = json.RawMessage(`{`) }, gate.ErrInvalidArguments},
		"two values":             {func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"a"} {}`) }, gate.ErrInvalidArguments},
		"duplicate name":         {func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"a","service":"b"}`) }, gate.ErrInvalidArguments},
		"missing":                {func(c *gate.Call) { c.Arguments = json.RawMessage(`{}`) }, gate.ErrInvalidArguments},
		"wrong type":             {func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":7}`) }, gate.ErrInvalidArguments},
		"unknown argument":       {func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"a","x":1}`) }, gate.ErrInvalidArguments},
		"not an object":          {func(c *gate.Call) { c.Arguments = json.RawMessage(`[]`) }, gate.ErrInvalidArguments},
		"too deep":               {func(c *gate.Call) { c.Arguments = json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100)) }, gate.ErrInvalidArguments},
		"too large":              {func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"` + big + `"}`) }, gate.ErrTooLarge},
		"no scope":               {func(c *gate.Call) { c.Scope = "" }, gate.ErrUnauthorized},
		"no session":             {func(c *gate.Call) { c.Session = "" }, gate.ErrUnauthorized},
		"scope too long":         {func(c *gate.Call) { c.Scope = big }, gate.ErrTooLarge},
		"scope not UTF-8":        {func(c *gate.Call) { c.Scope = "\xff" }, gate.ErrInvalidArguments},
		"start id too long":      {func(c *gate.Call) { c.StartID = big }, gate.ErrTooLarge},
		"answers without token":  {func(c *gate.Call) { c.Answers = gate.Answers{"x": json.RawMessage(allow)} }, gate.ErrInvalidAnswer},
		"answers too large":      {func(c *gate.Call) { c.Answers = gate.Answers{"x": json.RawMessage(big)} }, gate.ErrTooLarge},
		"token of another shape": {func(c *gate.Call) { c.Token = "let me in" }, gate.ErrInvalidContinuation},
	} {
		t.Run(name, func(t *testing.T) {
			c := call("deploy", `{"service":"api"}`)
			test.change(&c)
			if e := mustFail(t, g, c, test.code); e.Message == "" {
				t.Error("the error says nothing")
			}
		})
	}
	effects.want(t, 0)
}

// R34: limits above the defaults hold everywhere that the bytes come by.
func TestLargerLimits(t *testing.T) {
	var effects counter
	g := open(t, newMem(), gate.Options{
		Tools: []*gate.Tool{deploy(&effects, nil)}, Limits: gate.Limits{Arguments: 4 << 20, Prompt: 8 << 20},
	})
	c := call("deploy", `{"service":"`+strings.Repeat("x", 3<<19)+`"}`)
	if p := mustAsk(t, g, c); len(p.Arguments) < 3<<19 {
		t.Errorf("%d bytes are shown", len(p.Arguments))
	}
}

// Bad options and tools are told when the gate is opened.
func TestBadOptions(t *testing.T) {
	handler := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	tool := func(opts *gate.ToolOptions) []*gate.Tool { return []*gate.Tool{gate.NewRawTool("tool", handler, opts)} }
	if _, err := gate.Open(t.Context(), nil, &gate.Options{Keys: [][]byte{testKey}}); err == nil {
		t.Error("opened on no store")
	}
	for name, opts := range map[string]gate.Options{
		"no keys":                  {},
		"short key":                {Keys: [][]byte{[]byte("short")}},
		"the same key twice":       {Keys: [][]byte{testKey, testKey}},
		"negative lifetime":        {Keys: [][]byte{testKey}, Lifetime: -time.Minute},
		"negative retention":       {Keys: [][]byte{testKey}, Retention: -time.Minute},
		"negative poll interval":   {Keys: [][]byte{testKey}, PollInterval: -time.Minute},
		"too many prompts":         {Keys: [][]byte{testKey}, MaxPrompts: 1 << 16},
		"negative prompts":         {Keys: [][]byte{testKey}, MaxPrompts: -1},
		"too deep a limit":         {Keys: [][]byte{testKey}, Limits: gate.Limits{Depth: 1 << 20}},
		"negative limit":           {Keys: [][]byte{testKey}, Limits: gate.Limits{Depth: -1}},
		"tool without name":        {Keys: [][]byte{testKey}, Tools: []*gate.Tool{gate.NewRawTool("", handler, nil)}},
		"tool without handler":     {Keys: [][]byte{testKey}, Tools: []*gate.Tool{gate.NewRawTool("tool", nil, nil)}},
		"tool twice":               {Keys: [][]byte{testKey}, Tools: append(tool(nil), tool(nil)...)},
		"schema not JSON":          {Keys: [][]byte{testKey}, Tools: tool(&gate.ToolOptions{Schema: json.RawMessage(`{`)})},
		"schema not of an object":  {Keys: [][]byte{testKey}, Tools: tool(&gate.ToolOptions{Schema: json.RawMessage(`{"type":"string"}`)})},
		"no such replay":           {Keys: [][]byte{testKey}, Tools: tool(&gate.ToolOptions{Replay: 7})},
		"recover without choosing": {Keys: [][]byte{testKey}, Tools: tool(&gate.ToolOptions{Recover: handler})},
		"mask of no argument":      {Keys: [][]byte{testKey}, Tools: []*gate.Tool{deploy(&counter{}, &gate.ToolOptions{Mask: []string{"sercet"}})}},
		"negative tool lifetime":   {Keys: [][]byte{testKey}, Tools: tool(&gate.ToolOptions{Lifetime: -1})},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := gate.Open(t.Context(), newMem(), &opts)
			if err == nil {
				_ = g.Close(t.Context())
				t.Error("opened")
			}
		})
	}
}
