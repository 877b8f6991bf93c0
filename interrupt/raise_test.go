package interrupt_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/interrupt"
)

// R8 to R12: what data makes of each type, or where it is refused, named by its path.
func TestInitFromPayload(t *testing.T) {
	yes := interrupt.PermissionOption{OptionID: "y", Name: "Yes", Kind: "allow_once"}
	for _, test := range []struct {
		typeName, payload string
		want              interrupt.Interrupt // nil: refused at path
		path              string
	}{
		{"tool_permission", `{"toolName":"rm","title":"Remove","options":[{"kind":"allow_once","optionId":"y","name":"Yes"}]}`,
			interrupt.ToolPermission("rm", "Remove", yes), ""},
		{"tool_permission", ` {"toolName":"rm"} `, interrupt.ToolPermission("rm", ""), ""},
		{"tool_permission", `{}`, nil, "/toolName"},
		{"tool_permission", `{"toolName":null}`, nil, "/toolName"},
		{"tool_permission", `{"toolName":"rm","toolname":"x"}`, nil, "/toolname"},
		{"tool_permission", `{"toolName":"rm","toolName":"rm"}`, nil, "/toolName"},
		{"tool_permission", `{"toolName":"rm","options":[]}`, nil, "/options"},
		{"tool_permission", `{"toolName":"rm","options":{}}`, nil, "/options"},
		{"tool_permission", `{"toolName":"rm","options":null}`, nil, "/options"},
		{"tool_permission", `{"toolName":"rm","options":["y"]}`, nil, "/options/0"},
		{"tool_permission", `{"toolName":"rm","options":[{"optionId":"y","name":"Yes","kind":"allow_once","x":1}]}`, nil, "/options/0/x"},
		{"tool_permission", `{"toolName":"rm","options":[{"optionId":"y","optionId":"z"}]}`, nil, "/options/0/optionId"},
		{"tool_permission", `{"toolName":"rm","options":[{"optionId":"y","name":"Yes","kind":"allow"}]}`, nil, "/options/0/kind"},
		{"tool_permission", `{"toolName":"rm","Allowed":true}`, nil, "/Allowed"},
		{"tool_permission", `[]`, nil, ""},
		{"tool_permission", `{"toolName":"rm"} {}`, nil, ""},
		{"tool_permission", ``, nil, ""},

		{"user_selection", `{"options":[{"title":"a","description":"A","isRecommended":true},{"title":"b"}]}`,
			interrupt.UserSelection(interrupt.UserChoice{Title: "a", Description: "A", IsRecommended: true}, interrupt.UserChoice{Title: "b"}), ""},
		{"user_selection", `{"options":[{"title":"a"}]}`, nil, "/options"},
		{"user_selection", `{"options":[{"title":"a"},{"title":1}]}`, nil, "/options/1/title"},
		{"user_selection", `{"options":[{"title":"a"},{"title":"b","isRecommended":1}]}`, nil, "/options/1/isRecommended"},
		{"user_selection", `{"options":[{"title":"a"},{"title":"b","recommended":true}]}`, nil, "/options/1/recommended"},
		{"user_selection", `{"Options":[{"title":"a"},{"title":"b"}]}`, nil, "/Options"},
		{"user_selection", `{"options":[{"title":"a"},[]]}`, nil, "/options/1"},

		{"form", `{"message":"m","schema": {"type":"object"} }`, interrupt.Form("m", []byte(`{"type":"object"}`)), ""},
		{"form", `{"message":"m"}`, nil, "/schema"},
		{"form", `{"message":"m","schema":{"type":"object","x":1}}`, nil, "/schema/x"},
		{"form", `{"message":"m","schema":{"type":"object","type":"object"}}`, nil, "/schema/type"},
		{"form", `{"message":7,"schema":{"type":"object"}}`, nil, "/message"},
		{"form", `{"message":"m","schema":{"type":"object"},"content":{}}`, nil, "/content"},

		{"url", `{"message":"m","url":"https://example.com/?a=b&c"}`, interrupt.URL("m", "https://example.com/?a=b&c"), ""},
		{"url", `{"message":"m","url":"http://example.com"}`, nil, "/url"},
		{"url", `{"message":"m","url":["https://example.com"]}`, nil, "/url"},
		{"url", `{"message":"m","url":"https://example.com","action":"accept"}`, nil, "/action"},
		{"url", "{\"message\":\"\xff\",\"url\":\"https://example.com\"}", nil, "/message"},
	} {
		q, _ := interrupt.New(test.typeName)
		zero, _ := interrupt.New(test.typeName)
		err := q.(interrupt.PayloadInitializer).InitFromPayload([]byte(test.payload))
		if test.want == nil {
			var e *interrupt.QuestionError
			if !errors.As(err, &e) || e.Path != test.path || e.Type != test.typeName {
				t.Errorf("%s %s: want %q, have %v", test.typeName, test.payload, test.path, err)
			}
			test.want = zero // nothing was changed
		} else if err != nil {
			t.Errorf("%s %s: %v", test.typeName, test.payload, err)
		}
		if diff := cmp.Diff(test.want, q); diff != "" {
			t.Errorf("%s %s (-want +have):\n%s", test.typeName, test.payload, diff)
		}
	}
}

// The key and the lifetime are the handler's, and no part of the data.
func TestInitFromPayloadKeepsTheKey(t *testing.T) {
	for _, test := range []struct {
		q       interrupt.PayloadInitializer
		payload string
	}{
		{&interrupt.ToolPermissionInterrupt{Key: "k", Lifetime: time.Minute}, `{"toolName":"rm"}`},
		{&interrupt.UserSelectionInterrupt{Key: "k", Lifetime: time.Minute}, `{"options":[{"title":"a"},{"title":"b"}]}`},
		{&interrupt.FormInterrupt{Key: "k", Lifetime: time.Minute}, `{"message":"m","schema":{"type":"object"}}`},
		{&interrupt.URLInterrupt{Key: "k", Lifetime: time.Minute}, `{"message":"m","url":"https://example.com"}`},
	} {
		if err := test.q.InitFromPayload([]byte(test.payload)); err != nil {
			t.Fatal(err)
		}
		key, lifetime := test.q.(interrupt.Keyed).QuestionKey(), test.q.(interrupt.Limited).QuestionLifetime()
		if key != "k" || lifetime != time.Minute {
			t.Errorf("%T: %q, %v", test.q, key, lifetime)
		}
	}
}

// R14: a question is raised by its registered name, and what cannot be is not asked.
func TestRaiseInterrupt(t *testing.T) {
	_, err := interrupt.RaiseInterrupt(t.Context(), "url", []byte(`{"message":"m","url":"https://example.com"}`))
	var url *interrupt.URLInterrupt
	if !errors.As(err, &url) || url.URL != "https://example.com" {
		t.Errorf("raised %v", err)
	}
	for name, payload := range map[string]string{
		"url":         `{"message":"m"}`,
		"test_absent": `{}`,
		"test_review": `{}`, // has no InitFromPayload
		"":            `{}`,
	} {
		_, err := interrupt.RaiseInterrupt(t.Context(), name, []byte(payload))
		var q interrupt.Interrupt
		if !errors.Is(err, interrupt.ErrInvalidQuestion) || errors.As(err, &q) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// R34: whatever the data is, it makes a question that is valid and says the same when it is made of
// its own words again, or the error is a short one with a place, and nothing is changed.
func FuzzInitFromPayload(f *testing.F) {
	names := []string{"tool_permission", "user_selection", "form", "url"}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		name := names[int(kind)%len(names)]
		q, _ := interrupt.New(name)
		if err := q.(interrupt.PayloadInitializer).InitFromPayload(payload); err != nil {
			if e, ok := errors.AsType[*interrupt.QuestionError](err); !ok || e.Reason == "" || len(e.Error()) > 1500 {
				t.Fatalf("error is %T: %.300v", err, err)
			}
			if zero, _ := interrupt.New(name); !cmp.Equal(zero, q) {
				t.Fatalf("a refused payload changed the question: %+v", q)
			}
			return
		}
		snapshot, err := interrupt.Snapshot(q)
		if err != nil {
			t.Fatalf("%s of %q is not fit to be raised: %v", name, payload, err)
		}
		if u, ok := q.(*interrupt.URLInterrupt); ok && strings.ContainsFunc(u.URL, func(r rune) bool {
			return r == '\\' || unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
		}) {
			t.Fatalf("%q is shown", u.URL)
		}
		again, _ := interrupt.New(name)
		if err := again.(interrupt.PayloadInitializer).InitFromPayload(snapshot.Body); err != nil {
			t.Fatalf("%s says %s, and is not made of it: %v", name, snapshot.Body, err)
		}
		if same, err := interrupt.Snapshot(again); err != nil || same.Digest != snapshot.Digest {
			t.Fatalf("%s becomes %s, %v", snapshot.Body, same.Body, err)
		}
	})
}
