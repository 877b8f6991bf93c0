package acpagent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// A twin is one of two windows of a session, each with a process of its own. Its person says when
// they are asked, and answers when they are told what to say.
type twin struct {
	*window
	person *person
	asked  chan string
	says   chan string
	gone   chan string // a question was withdrawn
	ended  chan acp.StopReason
}

func twins(t *testing.T, poll time.Duration, tool *gate.Tool) (a, b *twin) {
	store := memstore.New()
	both := []*twin{nil, nil}
	for i := range both {
		w := &twin{
			asked: make(chan string, 8), says: make(chan string), gone: make(chan string, 8), ended: make(chan acp.StopReason, 1),
		}
		w.person = &person{answer: func(ctx context.Context, title string) string {
			w.asked <- title
			select {
			case option := <-w.says:
				return option
			case <-ctx.Done():
				w.gone <- title
				return ""
			}
		}}
		w.window = openAt(t, store, twoCalls(), w.person, poll, tool)
		both[i] = w
	}
	return both[0], both[1]
}

// begin sends a message, and wants the first question.
func (w *twin) begin(t *testing.T) {
	t.Helper()
	go func() {
		r, err := w.client.Prompt(context.Background(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
		if err != nil {
			t.Error(err)
		}
		w.ended <- r.StopReason
	}()
	if title := <-w.asked; title != "Deploy api" {
		t.Errorf("asked %q", title)
	}
}

func (w *twin) wantStatuses(t *testing.T, want ...string) {
	t.Helper()
	if statuses, _ := w.person.told(); !slices.Equal(statuses, want) {
		t.Errorf("statuses %q, want %q", statuses, want)
	}
}

// R24: two windows show the questions of one run. What one answers is withdrawn from the other,
// nobody is asked twice, the run goes on once, and both show how its calls ended.
func TestTwoWindows(t *testing.T) {
	var effects atomic.Int64
	a, b := twins(t, pollInterval, deploy(&effects))
	a.begin(t)
	b.begin(t) // goes on with the run that a began, and puts its question too
	a.says <- "allow_once"
	if title := <-b.gone; title != "Deploy api" {
		t.Errorf("withdrawn: %q", title)
	}
	if title := <-a.asked; title != "Deploy web" {
		t.Errorf("asked %q", title)
	}
	if title := <-b.asked; title != "Deploy web" {
		t.Errorf("asked %q", title)
	}
	b.says <- "reject_once"
	if title := <-a.gone; title != "Deploy web" {
		t.Errorf("withdrawn: %q", title)
	}
	if stop := <-a.ended; stop != acp.StopReasonEndTurn {
		t.Errorf("a ends with %q", stop)
	}
	// b goes on with the message of its own.
	for range 2 {
		<-b.asked
		b.says <- "reject_once"
	}
	if stop := <-b.ended; stop != acp.StopReasonEndTurn {
		t.Errorf("b ends with %q", stop)
	}
	a.close()
	b.close()
	a.wantStatuses(t, "pending failed", "pending in_progress completed")
	b.wantStatuses(t, "pending completed", "pending failed", "pending failed", "pending failed")
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// A person who cancels in one window ends the run, and the other window's questions are withdrawn.
func TestCancelInAnotherWindow(t *testing.T) {
	var effects atomic.Int64
	a, b := twins(t, pollInterval, deploy(&effects))
	a.begin(t)
	b.begin(t)
	if err := b.client.Cancel(t.Context(), acp.CancelNotification{SessionId: "s1"}); err != nil {
		t.Fatal(err)
	}
	<-a.gone
	if stop := <-b.ended; stop != acp.StopReasonCancelled {
		t.Errorf("b ends with %q", stop)
	}
	if stop := <-a.ended; stop != acp.StopReasonEndTurn {
		t.Errorf("a ends with %q", stop)
	}
	if a.agent.err != nil && !errors.Is(a.agent.err, gate.ErrCancelled) {
		t.Errorf("a: %v", a.agent.err)
	}
	a.close()
	b.close()
	a.wantStatuses(t, "pending failed", "pending failed")
	b.wantStatuses(t, "pending failed", "pending failed")
	if effects.Load() != 0 {
		t.Errorf("%d effects", effects.Load())
	}
}

// R28: both people answer the same question, before either window has heard of the other's answer.
// The first one counts, and nobody is told that the run failed.
func TestTwoAnswers(t *testing.T) {
	var effects atomic.Int64
	a, b := twins(t, time.Hour, deploy(&effects))
	a.begin(t)
	b.begin(t)
	a.says <- "allow_once"
	<-a.asked // the run has gone on, and asks about web
	b.says <- "reject_once"
	if title := <-b.asked; title != "Deploy web" {
		t.Errorf("asked %q", title)
	}
	b.says <- "reject_once"
	for range 2 { // b has gone on to the end, and does what its message says
		<-b.asked
		b.says <- "reject_once"
	}
	if stop := <-b.ended; stop != acp.StopReasonEndTurn {
		t.Errorf("b ends with %q", stop)
	}
	a.says <- "allow_once" // too late
	if stop := <-a.ended; stop != acp.StopReasonEndTurn {
		t.Errorf("a ends with %q", stop)
	}
	a.close()
	b.close()
	a.wantStatuses(t, "pending in_progress completed", "pending in_progress failed")
	b.wantStatuses(t, "pending completed", "pending failed", "pending failed", "pending failed")
	if effects.Load() != 1 || b.agent.err != nil || a.agent.err != nil {
		t.Errorf("%d effects; %v, %v", effects.Load(), a.agent.err, b.agent.err)
	}
}

// A message that comes while another window is at work waits for that, until it is cancelled.
func TestWaitsForWork(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	work := gate.NewTool("deploy", func(ctx context.Context, in service) (string, error) {
		began <- struct{}{}
		<-release
		return "deployed " + in.Service, nil
	}, nil)
	a, b := twins(t, pollInterval, work)
	ended := make(chan acp.StopReason, 2)
	prompt := func(w *twin) {
		r, err := w.client.Prompt(context.Background(), acp.PromptRequest{SessionId: "s1", Prompt: []acp.ContentBlock{acp.TextBlock("release")}})
		if err != nil {
			t.Error(err)
		}
		ended <- r.StopReason
	}
	go prompt(a)
	<-began
	<-began
	go prompt(b)
	select {
	case stop := <-ended:
		t.Fatalf("ended with %q while the other is at work", stop)
	case <-time.After(50 * time.Millisecond): // it has come to the run, or this proves less
	}
	if err := b.client.Cancel(t.Context(), acp.CancelNotification{SessionId: "s1"}); err != nil {
		t.Fatal(err)
	}
	if stop := <-ended; stop != acp.StopReasonCancelled {
		t.Errorf("ended with %q", stop)
	}
	go prompt(b)
	close(release)
	for range 2 {
		if stop := <-ended; stop != acp.StopReasonEndTurn {
			t.Errorf("ended with %q", stop)
		}
	}
	a.close()
	b.close()
	if _, text := a.person.told(); text != "deployed api; deployed web" {
		t.Errorf("a was told %q", text)
	}
}
