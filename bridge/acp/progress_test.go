package acpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// contents are the status and the texts of every update of a tool call, in their order.
func contents(t *testing.T, messages []message) (all []string) {
	t.Helper()
	for _, m := range messages {
		var p acp.SessionNotification
		if err := json.Unmarshal(m.Params, &p); err != nil || p.Update.ToolCall == nil && p.Update.ToolCallUpdate == nil {
			continue
		}
		status, content := new(acp.ToolCallStatus), []acp.ToolCallContent(nil)
		switch u := p.Update; {
		case u.ToolCall != nil:
			status, content = &u.ToolCall.Status, u.ToolCall.Content
		case u.ToolCallUpdate.Status != nil:
			status, content = u.ToolCallUpdate.Status, u.ToolCallUpdate.Content
		default:
			content = u.ToolCallUpdate.Content
		}
		line := string(*status)
		for _, c := range content {
			line += "[" + c.Content.Content.Text.Text + "]"
		}
		all = append(all, line)
	}
	return all
}

// R35: what a handler tells of how far it is is shown beside the view, and leaves the status as it
// is: before the answer nothing is in progress. The end takes its place.
func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		view          []acp.ToolCallContent
		before, after string // the answer: the handler runs again with it, and looks again
	}{
		"no view": {
			nil, "pending [looks (1)]", "in_progress [looks (1)] [step 2 (2 of 4)] completed[up]",
		},
		"a view": {
			[]acp.ToolCallContent{acp.ToolContent(acp.TextBlock("A hill"))},
			"pending[A hill] [A hill][looks (1)]", "in_progress [A hill][looks (1)] [A hill][step 2 (2 of 4)] completed[A hill]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seconds atomic.Int64 // the clock goes on with every look: R35 leaves updates out that come too close
			climb := raw("climb", func(ctx context.Context) (any, error) {
				var before interrupt.Update
				before.Completed, before.Message = 1, "looks"
				if err := interrupt.Progress(ctx, before); err != nil {
					return nil, err
				}
				if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("climb", "Climb it")); err != nil {
					return nil, err
				}
				total := 4.0
				return "up", interrupt.Progress(ctx, interrupt.Update{Completed: 2, Total: &total, Message: "step 2"})
			}, nil)
			g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{climb}, Now: func() time.Time {
				return time.Unix(1_800_000_000+seconds.Add(1), 0)
			}})
			opts := &acpbridge.Options{View: func(string, json.RawMessage) acpbridge.View { return acpbridge.View{Content: c.view} }}
			e := connect(t, g, opts, caller(nil), plain)
			id := e.prompt("climb")
			var before []message
			q := e.asked(permission, &before)
			e.answer(q, selected("allow_once"))
			after := strings.Join(contents(t, e.ends(id, "end_turn")), " ")
			if have := strings.Join(contents(t, before), " "); have != c.before || after != c.after {
				t.Errorf("have %q, then %q, want %q, then %q", have, after, c.before, c.after)
			}
		})
	}
}

// A tool that never asks is in progress from the beginning.
func TestInProgress(t *testing.T) {
	look := raw("look", func(context.Context) (any, error) { return "seen", nil }, &gate.ToolOptions{NeverAsks: true})
	e := connect(t, memGate(t, look), nil, caller(nil), plain)
	if have := strings.Join(contents(t, e.ends(e.prompt("look"), "end_turn")), " "); have != "in_progress completed[seen]" {
		t.Errorf("have %q", have)
	}
}

// What a tool says at length costs the wire no more than a bounded rate; its result is whole.
func TestSaysMuch(t *testing.T) {
	const pieces = 20_000
	piece := strings.Repeat("é", 32)
	agent := &anAgent{prompt: func(_ context.Context, turn *acpbridge.Turn, _ string) error {
		shown, err := turn.Show(acpbridge.Call{ID: "c", Tool: "none"})
		for range pieces {
			if err == nil {
				err = shown.Say(piece)
			}
		}
		if err == nil {
			err = shown.Ended(json.RawMessage(`"`+strings.Repeat(piece, 100)+`"`), nil)
		}
		return err
	}}
	e := connect(t, memGate(t), &acpbridge.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}, agent, plain)
	size := 0
	updates := e.ends(e.prompt("x"), "end_turn")
	for _, m := range updates {
		size += len(m.Text)
	}
	last := contents(t, updates)[len(updates)-1]
	if size > 512<<10 || len(updates) < 50 || last != "completed["+strings.Repeat(piece, 100)+"]" {
		t.Errorf("%d bytes in %d updates, the last of %d", size, len(updates), len(last))
	}
	for _, text := range contents(t, updates) {
		if strings.ContainsRune(text, 0xFFFD) {
			t.Fatalf("half a rune in %q", text)
		}
	}
}

// What a tool at work says is left out, and nothing waits, where the client is slow to read.
func TestSaysToNobody(t *testing.T) {
	said := make(chan error, 1)
	agent := &anAgent{prompt: func(_ context.Context, turn *acpbridge.Turn, _ string) error {
		shown, err := turn.Show(acpbridge.Call{ID: "c", Tool: "none"})
		for range 16 { // fills what may wait for the client
			if err == nil {
				err = turn.Say(strings.Repeat("x", 64<<10))
			}
		}
		if err == nil {
			err = shown.Say("a piece")
		}
		if err == nil {
			err = shown.Progress(interrupt.Update{Completed: 1})
		}
		said <- err
		return shown.Ended(nil, err)
	}}
	b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn})
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	from, agentOut := io.Pipe()
	conn, err := b.Connect(agent, agentOut, in)
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, out: out}
	e.prompt("talk")
	if err := <-said; err != nil { // nobody has read anything yet
		t.Error(err)
	}
	lines := bufio.NewReader(from)
	for ended := false; !ended; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if ended = strings.Contains(line, "stopReason"); strings.Contains(line, "a piece") {
			t.Error("sent to a client that is slow to read")
		}
	}
	out.Close()
	<-conn.Done()
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
