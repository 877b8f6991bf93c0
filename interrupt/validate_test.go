package interrupt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-go/parley/interrupt"
)

// R8, R9, R10, R12: what makes a question unfit to be shown, and where in it that is.
func TestValidate(t *testing.T) {
	option := func(id, name, kind string) interrupt.PermissionOption {
		return interrupt.PermissionOption{OptionID: id, Name: name, Kind: kind}
	}
	yes := option("y", "Yes", "allow_once")
	choice := func(title string) interrupt.UserChoice { return interrupt.UserChoice{Title: title} }
	best := interrupt.UserChoice{Title: "best", Description: "the best", IsRecommended: true}
	type question interface {
		interrupt.Interrupt
		interrupt.Validator
	}
	for name, test := range map[string]struct {
		q    question
		path string // empty: it is fit
	}{
		"permission":                        {interrupt.ToolPermission("x", ""), ""},
		"permission, options of its own":    {interrupt.ToolPermission("x", "t", yes, option("n", "No", "reject_always")), ""},
		"permission, only yes":              {interrupt.ToolPermission("x", "t", yes), ""},
		"permission, zero":                  {&interrupt.ToolPermissionInterrupt{}, "/toolName"},
		"permission, no tool":               {interrupt.ToolPermission("", "t"), "/toolName"},
		"permission, tool not UTF-8":        {interrupt.ToolPermission("\xff", "t"), "/toolName"},
		"permission, title not UTF-8":       {interrupt.ToolPermission("x", "\xff"), "/title"},
		"permission, no options":            {&interrupt.ToolPermissionInterrupt{ToolName: "x"}, "/options"},
		"permission, option without id":     {interrupt.ToolPermission("x", "", option("", "Yes", "allow_once")), "/options/0/optionId"},
		"permission, option id not UTF-8":   {interrupt.ToolPermission("x", "", option("\xff", "Yes", "allow_once")), "/options/0/optionId"},
		"permission, option id twice":       {interrupt.ToolPermission("x", "", yes, yes), "/options/1/optionId"},
		"permission, option without name":   {interrupt.ToolPermission("x", "", yes, option("n", "", "reject_once")), "/options/1/name"},
		"permission, option name not UTF-8": {interrupt.ToolPermission("x", "", option("n", "\xff", "reject_once")), "/options/0/name"},
		"permission, option without kind":   {interrupt.ToolPermission("x", "", option("n", "No", "")), "/options/0/kind"},
		"permission, kind unknown":          {interrupt.ToolPermission("x", "", option("n", "No", "allow")), "/options/0/kind"},

		"selection":                       {interrupt.UserSelection(choice("a"), best), ""},
		"selection, zero":                 {&interrupt.UserSelectionInterrupt{}, "/options"},
		"selection, one choice":           {interrupt.UserSelection(choice("a")), "/options"},
		"selection, no title":             {interrupt.UserSelection(choice("a"), choice("")), "/options/1/title"},
		"selection, title not UTF-8":      {interrupt.UserSelection(choice("\xff"), choice("a")), "/options/0/title"},
		"selection, title twice":          {interrupt.UserSelection(choice("a"), choice("a")), "/options/1/title"},
		"selection, description no UTF-8": {interrupt.UserSelection(choice("a"), interrupt.UserChoice{Title: "b", Description: "\xff"}), "/options/1/description"},
		"selection, two recommended": {
			interrupt.UserSelection(best, choice("a"), interrupt.UserChoice{Title: "b", IsRecommended: true}), "/options/2/isRecommended",
		},

		"url":                       {interrupt.URL("m", "https://example.com/a?b=c#d"), ""},
		"url, port":                 {interrupt.URL("m", "https://example.com:8443"), ""},
		"url, zero":                 {&interrupt.URLInterrupt{}, "/message"},
		"url, no message":           {interrupt.URL("", "https://example.com"), "/message"},
		"url, message not UTF-8":    {interrupt.URL("\xff", "https://example.com"), "/message"},
		"url, none":                 {interrupt.URL("m", ""), "/url"},
		"url, not one":              {interrupt.URL("m", "https://exa mple.com"), "/url"},
		"url, not UTF-8":            {interrupt.URL("m", "https://example.com/\xff"), "/url"},
		"url, http":                 {interrupt.URL("m", "http://example.com"), "/url"},
		"url, http on loopback":     {interrupt.URL("m", "http://127.0.0.1/"), "/url"},
		"url, javascript":           {interrupt.URL("m", "javascript:alert(1)"), "/url"},
		"url, relative":             {interrupt.URL("m", "/a"), "/url"},
		"url, without scheme":       {interrupt.URL("m", "//example.com"), "/url"},
		"url, no host":              {interrupt.URL("m", "https:///a"), "/url"},
		"url, a port and no host":   {interrupt.URL("m", "https://:443/a"), "/url"},
		"url, opaque":               {interrupt.URL("m", "https:example.com"), "/url"},
		"url, user":                 {interrupt.URL("m", "https://ann@example.com"), "/url"},
		"url, user and password":    {interrupt.URL("m", "https://ann:secret@example.com"), "/url"},
		"url, empty user":           {interrupt.URL("m", "https://@example.com"), "/url"},
		"url, host that looks like": {interrupt.URL("m", "https://bank.example@evil.example"), "/url"},

		"url, highest port":              {interrupt.URL("m", "https://example.com:65535/"), ""},
		"url, port too high":             {interrupt.URL("m", "https://example.com:65536/"), "/url"},
		"url, port 99999":                {interrupt.URL("m", "https://example.com:99999/"), "/url"},
		"url, port beyond 64 bits":       {interrupt.URL("m", "https://example.com:99999999999999999999/"), "/url"},
		"url, port zero":                 {interrupt.URL("m", "https://example.com:0/"), "/url"},
		"url, port in words":             {interrupt.URL("m", "https://example.com:https/"), "/url"},
		"url, letters":                   {interrupt.URL("m", "https://example.com/straße/日本"), ""},
		"url, all of it encoded":         {interrupt.URL("m", "https://example.com/%E2%80%AEgnp%20%5C%0A"), ""},
		"url, right to left":             {interrupt.URL("m", "https://h/\u202egnp"), "/url"},
		"url, right to left, isolated":   {interrupt.URL("m", "https://h/?a=\u2067gnp"), "/url"},
		"url, right to left, a mark":     {interrupt.URL("m", "https://h/#\u200fgnp"), "/url"},
		"url, right to left in a host":   {interrupt.URL("m", "https://a\u202eb/"), "/url"},
		"url, the same encoded":          {interrupt.URL("m", "https://a%E2%80%AEb/"), "/url"},
		"url, half a letter in a host":   {interrupt.URL("m", "https://a%E2%80b/"), "/url"},
		"url, nothing that is seen":      {interrupt.URL("m", "https://h/a\u200bb"), "/url"},
		"url, control":                   {interrupt.URL("m", "https://h/a\x07b"), "/url"},
		"url, control behind the hash":   {interrupt.URL("m", "https://h/#a\u0085b"), "/url"},
		"url, line break":                {interrupt.URL("m", "https://h/a\nb"), "/url"},
		"url, line separator":            {interrupt.URL("m", "https://h/a\u2028b"), "/url"},
		"url, space in the path":         {interrupt.URL("m", "https://h/a b"), "/url"},
		"url, space behind it":           {interrupt.URL("m", "https://h/a "), "/url"},
		"url, space that does not break": {interrupt.URL("m", "https://h/a\u00a0b"), "/url"},
		"url, backslash in the path":     {interrupt.URL("m", `https://h/a\b`), "/url"},
		"url, backslash for a slash":     {interrupt.URL("m", `https://h?\@evil.example`), "/url"},
	} {
		err := test.q.Validate()
		if test.path == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var at *interrupt.QuestionError
		if !errors.As(err, &at) || at.Path != test.path || !errors.Is(err, interrupt.ErrInvalidQuestion) {
			t.Errorf("%s: %v, want it at %s", name, err, test.path)
		}
		if _, err := interrupt.Snapshot(test.q); !errors.Is(err, interrupt.ErrInvalidQuestion) {
			t.Errorf("%s: snapshot: %v", name, err)
		}
	}
}

// R8, R30: a question's own key and lifetime are part of its snapshot, and a lifetime is not
// negative.
func TestSnapshotOfKeyAndLifetime(t *testing.T) {
	q := interrupt.URL("m", "https://example.com")
	q.Key, q.Lifetime = "k", 1
	if s, err := interrupt.Snapshot(q); err != nil || s.Key != "k" || s.Lifetime != 1 || s.Type != "url" {
		t.Errorf("%+v, %v", s, err)
	}
	q.Lifetime = -1
	if _, err := interrupt.Snapshot(q); !errors.Is(err, interrupt.ErrInvalidQuestion) {
		t.Errorf("negative lifetime: %v", err)
	}
	if _, err := interrupt.Snapshot(stranger{}); !errors.Is(err, interrupt.ErrInvalidQuestion) {
		t.Errorf("not registered: %v", err)
	}
}

// R15: the members that every payload has are read strictly, and what is wrong is told by its
// place, which a hostile name does not make long.
func TestActionOf(t *testing.T) {
	for payload, want := range map[string]struct {
		action interrupt.Action
		id     string
		path   string
	}{
		`{}`:                                    {"accept", "", ""},
		`{"action":"accept"}`:                   {"accept", "", ""},
		`{"interruptId":"i","x":[1]}`:           {"accept", "i", ""},
		`{"action":"decline","interruptId":""}`: {"decline", "", ""},
		string(interrupt.Decline("i")):          {"decline", "i", ""},
		string(interrupt.Cancel("")):            {"cancel", "", ""},
		``:                                      {},
		`null`:                                  {},
		`[]`:                                    {},
		`"accept"`:                              {},
		`{`:                                     {},
		`{"action"`:                             {path: "/action"},
		`{"action":}`:                           {path: "/action"},
		`{"action":"accept"} {}`:                {},
		`{"action":"accept"}]`:                  {},
		`{"action":null}`:                       {path: "/action"},
		`{"action":"Accept"}`:                   {path: "/action"},
		`{"action":""}`:                         {path: "/action"},
		`{"interruptId":7}`:                     {path: "/interruptId"},
		`{"interruptId":null}`:                  {path: "/interruptId"},
		`{"action":"accept","action":"cancel"}`: {path: "/action"},
		`{"x":1,"x":1}`:                         {path: "/x"},
		`{"action":"cancel","x":1}`:             {},
		`{"x":1,"action":"decline"}`:            {},
	} {
		action, id, err := interrupt.ActionOf("t", []byte(payload))
		if action != want.action || id != want.id || (err != nil) != (want.action == "") {
			t.Errorf("%s: %q, %q, %v", payload, action, id, err)
		}
		var at *interrupt.PayloadError
		if err != nil && (!errors.As(err, &at) || at.Path != want.path && want.path != "" || at.Type != "t" || at.Reason == "") {
			t.Errorf("%s: %v, want it at %q", payload, err, want.path)
		}
	}
	long := strings.Repeat("x", 1<<16)
	_, err := interrupt.Apply(interrupt.ToolPermission("x", ""), []byte(`{"`+long+`":1}`))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("a long name: %.300v", err)
	}
}

// R17: a decline and a cancel are no rejection.
func TestRejected(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"optionId":"reject_once"}`: true, `{"optionId":"reject_always"}`: true,
		`{"optionId":"allow_once"}`: false, `{"optionId":"allow_always"}`: false,
		`{"action":"decline"}`: false, `{"action":"cancel"}`: false,
	} {
		q := interrupt.ToolPermission("x", "")
		if _, err := interrupt.Apply(q, []byte(payload)); err != nil || q.Rejected() != want {
			t.Errorf("%s: rejected is %v, %v", payload, q.Rejected(), err)
		}
	}
	if interrupt.ToolPermission("x", "").Rejected() {
		t.Error("rejected before it was answered")
	}
}

// R6: state is of a prompt alone; what is none stays as it is.
func TestWithStateOfNoPrompt(t *testing.T) {
	other := errors.New("other")
	if interrupt.WithState(nil, []byte(`1`)) != nil || interrupt.WithState(other, []byte(`1`)) != other {
		t.Error("no prompt, and changed")
	}
	for _, state := range []string{"", "{", "1 2"} {
		err := interrupt.WithState(interrupt.ToolPermission("x", ""), []byte(state))
		if !errors.Is(err, interrupt.ErrInvalidQuestion) || interrupt.Classify(err).Kind != interrupt.KindFailure {
			t.Errorf("state %q: %v", state, err)
		}
	}
	state := []byte(`"a"`)
	err := interrupt.WithState(interrupt.ToolPermission("x", ""), state)
	state[1] = 'b'
	if c := interrupt.Classify(err); string(c.State) != `"a"` {
		t.Errorf("the state changed to %s", c.State)
	}
}

// R1: a public failure says its text, and its cause in this process only.
func TestFailure(t *testing.T) {
	cause := errors.New("cause")
	var none *interrupt.Failure
	for name, f := range map[string]*interrupt.Failure{"none": none, "text": {Text: "text"}, "cause": {Text: "text", Err: cause}} {
		if f.Error() == "" || errors.Is(f, cause) != (name == "cause") {
			t.Errorf("%s: %v", name, f)
		}
	}
	if f := (&interrupt.Failure{Text: "text"}); f.Error() != "text" {
		t.Errorf("%v", f)
	}
}

// R15, R16: an answer that does not fit changes nothing in the question it is given to.
func TestReturnRefuses(t *testing.T) {
	p, s, u := interrupt.ToolPermission("x", ""), interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"}),
		interrupt.URL("m", "https://example.com")
	for _, payload := range []string{``, `[]`, `{"action":"maybe"}`, `{"x":1}`, `{"action":"accept","content":{}}`, `{"action":"accept","action":"accept"}`} {
		for _, q := range []interrupt.Interrupt{p, s, u} {
			if err := q.Return([]byte(payload)); !errors.Is(err, interrupt.ErrInvalidPayload) {
				t.Errorf("%s: %s: %v", q.TypeName(), payload, err)
			}
		}
	}
	if p.Action != "" || p.Allowed || s.Action != "" || s.ConfirmedChoice != nil || u.Action != "" {
		t.Errorf("changed: %+v, %+v, %+v", p, s, u)
	}
	for _, payload := range []string{`{}`, `{"selectionIdx":"0"}`, `{"selectionIdx":0.0}`, `{"selectionIdx":-1}`, `{"selectionIdx":2}`, `{"selectionIdx":null}`} {
		if err := s.Return([]byte(payload)); err == nil || s.ConfirmedChoice != nil {
			t.Errorf("%s: %+v, %v", payload, s.ConfirmedChoice, err)
		}
	}
	if err := s.Return([]byte(`{"selectionIdx":1}`)); err != nil {
		t.Fatal(err)
	}
	dup := interrupt.Clone(s).(*interrupt.UserSelectionInterrupt)
	s.ConfirmedChoice.Title = "changed"
	if dup.ConfirmedChoice == nil || dup.ConfirmedChoice.Title != "b" || dup.Action != interrupt.ActionAccept {
		t.Errorf("the copy: %+v", dup)
	}
}

// R12: the error of a URL names its host, and nothing else of it.
func TestURLErrorIsPrivate(t *testing.T) {
	for _, address := range []string{"https://ann:hunter2@example.com/hunter2?hunter2#hunter2", "https://exa mple/hunter2"} {
		if text := interrupt.URL("m", address).Error(); strings.Contains(text, "hunter2") || text == "" {
			t.Errorf("%s", text)
		}
	}
	if text := interrupt.URL("m", "https://example.com/a").Error(); !strings.Contains(text, "example.com") {
		t.Errorf("%s", text)
	}
}
