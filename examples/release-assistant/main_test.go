package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/model"

	"github.com/parley-go/parley/internal/scripted"
)

// A step is one process of the assistant, and what is on its screen at the end.
type step struct{ typed, want string }

func play(t *testing.T, m model.ToolCallingChatModel, steps []step) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range steps {
		var screen strings.Builder
		if err := assist(t.Context(), options{dir: dir, key: filepath.Join(dir, "key"), model: m, in: strings.NewReader(s.typed), out: &screen}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(screen.String(), s.want) {
			t.Fatalf("after %q: have %s\nwant %s", s.typed, screen.String(), s.want)
		}
	}
}

// The assistant waits where nobody answers, goes on in the next process with the question that is
// left, and ends. The one after that begins anew.
func TestAssistant(t *testing.T) {
	play(t, scripted.Func(script), []step{
		{"", "Migrate the database of api, with {\"service\":\"api\"}? (2 open)"},
		{"maybe\ny\n", "Deploy api, with {\"service\":\"api\"}? (1 open)"},
		{"n\n", "The release: api migrated; A person was asked and rejected this call."},
		{"y\ny\n", "The release: api migrated; api deployed"},
	})
}

// Who is interrupted at a question finds it again.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	in, person := io.Pipe()
	defer person.Close()
	screen := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "(1 open)") {
			cancel()
		} else if strings.Contains(string(p), "(2 open)") {
			go func() { _, _ = io.WriteString(person, "y\n") }()
		}
		return len(p), nil
	})
	if err := assist(ctx, options{dir: dir, key: filepath.Join(dir, "key"), model: scripted.Func(script), in: in, out: screen}); !errors.Is(err, errInterrupted) {
		t.Fatalf("want interrupted, have %v", err)
	}
	var after strings.Builder
	if err := assist(t.Context(), options{dir: dir, key: filepath.Join(dir, "key"), model: scripted.Func(script), in: strings.NewReader("y\n"), out: &after}); err != nil {
		t.Fatal(err)
	}
	if text := after.String(); strings.Contains(text, "(2 open)") || !strings.Contains(text, "The release: api migrated; api deployed") {
		t.Errorf("have %s", text)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
