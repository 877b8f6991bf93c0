package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-go/parley/interrupt"
)

// every has a field of every kind, and of each one that may be left out.
const every = `{"type":"object","required":["text","whole","yes","one","some"],"properties":{
	"text":{"type":"string","maxLength":5,"default":"never"}, "maybe text":{"type":"string","format":"date"},
	"whole":{"type":"integer","minimum":1}, "maybe/number":{"type":"number"},
	"yes":{"type":"boolean"}, "maybe yes":{"type":"boolean","default":true},
	"one":{"type":"string","enum":["a","b"]}, "maybe one":{"type":"string","enum":["a","b"],"default":"b"},
	"some":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}},
	"maybe some":{"type":"array","maxItems":1,"items":{"type":"string","enum":["a","b"]}}}}`

// The terminal in accessible mode, which a test can drive: one line of input for each that the
// person types.
func TestTerminalAnswers(t *testing.T) {
	permission := interrupt.ToolPermission("t", "T")
	selection := interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b", IsRecommended: true})
	form := interrupt.Form("m", []byte(every))
	page := interrupt.URL("m", "https://example.com/")
	for _, tc := range []struct {
		name     string
		question interrupt.Interrupt
		typed    string
		want     string
	}{
		{"permission", permission, "1", `{"interruptId":"id","optionId":"allow_once"}`},
		{"permission rejected", permission, "3", `{"interruptId":"id","optionId":"reject_once"}`},
		{"an empty line is no answer", permission, "\n\n0\nx\n3", `{"interruptId":"id","optionId":"reject_once"}`},
		{"permission declined", permission, "5", `{"interruptId":"id","action":"decline"}`},
		{"permission cancelled", permission, "6", `{"interruptId":"id","action":"cancel"}`},
		{"selection", selection, "\n1", `{"interruptId":"id","selectionIdx":0}`},
		{"selection declined", selection, "3", `{"interruptId":"id","action":"decline"}`},
		{"page", page, "\n1", `{"interruptId":"id","action":"accept"}`},
		{"page cancelled", page, "3", `{"interruptId":"id","action":"cancel"}`},
		{"form declined", form, "2", `{"interruptId":"id","action":"decline"}`},
		{"form with what is required", form, "1\nx\n\n1\n\n2\n1\n2\n1\n1\n0\n0",
			`{"interruptId":"id","action":"accept","content":{"one":"b","some":["a"],"text":"x","whole":1,"yes":false}}`},
		{"form with everything", form, "1\nx\n2026-01-02\n9007199254740993\n-0.50\n1\n2\n1\n3\n3\n2\n0\n2\n0",
			`{"interruptId":"id","action":"accept","content":{"maybe one":"b","maybe some":["b"],"maybe text":"2026-01-02",` +
				`"maybe yes":true,"maybe/number":-0.50,"one":"a","some":["b","c"],"text":"x","whole":9007199254740993,"yes":true}}`},
		{"form with mistakes", form, "7\n1\n\ntoo long\nx\ntomorrow\n\n0\n1.5\n\"1\"\none\n1\nx\n\n2\n1\n2\n1\n0\n1\n0\n0",
			`{"interruptId":"id","action":"accept","content":{"one":"b","some":["a"],"text":"x","whole":1,"yes":false}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var screen strings.Builder
			person := newTerminal(iotest.OneByteReader(strings.NewReader(tc.typed+"\n")), &screen, true)
			got, err := person.ask(t.Context(), "id", tc.question)
			if err != nil || string(got) != tc.want {
				t.Fatalf("answer is %s, %v\nwant      %s\n%s", got, err, tc.want, screen.String())
			}
			if _, _, err := interrupt.Check(tc.question, got); err != nil {
				t.Errorf("answer does not fit: %v", err)
			}
		})
	}
}

// Nobody is answered for where the input ends or the program is interrupted, at whichever line
// (R13).
func TestTerminalWithoutAnAnswer(t *testing.T) {
	form := interrupt.Form("m", []byte(every))
	for _, tc := range []struct {
		question interrupt.Interrupt
		typed    string
	}{
		{interrupt.ToolPermission("t", "T"), ""}, {interrupt.ToolPermission("t", "T"), "9\n"}, {interrupt.URL("m", "https://example.com/"), ""},
		{form, ""}, {form, "1\n"}, {form, "1\nx\n\n1\n\n"}, {form, "1\nx\n\n1\n\n2\n1\n2\n1\n"}, {form, "1\nx\n\n1\n\n2\n1\n2\n1\n1\n"},
	} {
		var screen strings.Builder
		person := newTerminal(iotest.OneByteReader(strings.NewReader(tc.typed)), &screen, true)
		if got, err := person.ask(t.Context(), "id", tc.question); !errors.Is(err, errInputEnded) {
			t.Errorf("%s after %q: answer is %s, %v", tc.question.TypeName(), tc.typed, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	person := newTerminal(strings.NewReader(""), io.Discard, true) // where what is left behind may still write
	if got, err := person.ask(ctx, "id", form); !errors.Is(err, errInterrupted) && !errors.Is(err, errInputEnded) {
		t.Errorf("interrupted: answer is %s, %v", got, err)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain – ünïcödé\nlines": "plain – ünïcödé\nlines", "\x1b[2J": "\uFFFD[2J", "\u009b1m": "\uFFFD1m",
		"a\u202eb": "a\uFFFDb", "a\rb\tc": "a\uFFFDb\uFFFDc",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) is %q, want %q", text, got, want)
		}
	}
}
