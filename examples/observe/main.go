// Observe shows how a host hears of questions: an observer is told of each transition when it
// happened, and the audit trail tells whoever comes later. Run it with: go run ./examples/observe
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A watcher logs what happens, and notes what people should be told. It is called in the goroutine
// of a request: what takes long, as sending a note does, is done at the channel's other end.
type watcher struct {
	log   *slog.Logger
	notes chan string
}

// Observe is told of every transition. These four are what most hosts want to hear of.
func (w *watcher) Observe(ctx context.Context, e gate.Event) {
	log := w.log.With("tool", e.Entry.Tool, "interaction", e.Entry.Interaction.String())
	switch e.Entry.Action {
	case checkpoint.ActionAsked:
		log.InfoContext(ctx, "question open", "scope", e.Scope, "questions", e.Questions, "until", clock(e.Deadline))
		select {
		case w.notes <- fmt.Sprintf("a question of %s waits for %s until %s", e.Entry.Tool, e.Scope, clock(e.Deadline)):
		default:
			log.WarnContext(ctx, "too many notes; this one is dropped")
		}
	case checkpoint.ActionAnswered:
		log.InfoContext(ctx, "answered", "by", e.Entry.By, "face", e.Entry.Face, "after", e.Entry.Time.Sub(e.Asked))
	case checkpoint.ActionEnded: // finished, or failed
		log.InfoContext(ctx, e.Entry.Status.String(), "code", e.Entry.Code, "took", e.Entry.Time.Sub(e.Since))
	case checkpoint.ActionExpired:
		log.WarnContext(ctx, "expired", "was", e.Before.String())
	}
}

func clock(t time.Time) string {
	if t.IsZero() { // of a question without a deadline
		return "further notice"
	}
	return t.Format("15:04")
}

// tail prints the audit trail that follows an entry, and returns where to go on. An operator's
// program keeps that number, and misses nothing while it is away.
func tail(ctx context.Context, g *gate.Gate, after uint64) (uint64, error) {
	for {
		page, err := g.Audit(ctx, gate.AuditQuery{After: after})
		if err != nil || len(page.Entries) == 0 {
			return after, err
		}
		for _, e := range page.Entries {
			if e.Problem != nil {
				fmt.Printf("trail: %d. cannot be read: %v\n", e.Seq, e.Problem)
				continue
			}
			fmt.Printf("trail: %d. at %s %s was %s\n", e.Seq, clock(e.Time), e.Tool, e.Action)
		}
		after = page.Next
	}
}

// A tool asks twice: Ann answers the first question, and the second one waits in vain. Clock, ids
// and log lines are the same in each run; a host leaves them to their defaults.
func main() {
	ctx := context.Background()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	watch := &watcher{log: logger, notes: make(chan string, 16)}
	deploy := gate.NewTool("deploy", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy to production"))
		return "deployed", err
	}, nil)
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{
		Tools: []*gate.Tool{deploy}, Keys: [][]byte{gate.NewKey()}, Observer: watch, Logger: logger,
		Now: func() time.Time { return now }, Random: rand.NewChaCha8([32]byte{}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)
	canShow, seen := []interrupt.Facility{interrupt.FacilityPermission}, uint64(0)
	for _, waits := range []time.Duration{3 * time.Minute, 10 * time.Minute} {
		call := gate.Call{Tool: "deploy", Arguments: []byte(`{}`), Scope: "ann", Session: "window 1", Facilities: canShow}
		outcome, err := g.Invoke(ctx, call)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("note:", <-watch.notes) // elsewhere in a goroutine that sends them
		now = now.Add(waits)
		err = g.Answer(ctx, gate.AnswerRequest{
			Interaction: outcome.Interaction, Round: 1, Scope: "ann", By: "ann@example.com",
			Answers: gate.Answers{outcome.Prompt.Questions[0].ID: []byte(`{"optionId":"allow_once"}`)},
		})
		if err == nil {
			call.Token = outcome.Prompt.Token
			_, err = g.Invoke(ctx, call)
		}
		fmt.Println("deploy:", err)
		if seen, err = tail(ctx, g, seen); err != nil { // from where it stopped
			log.Fatal(err)
		}
	}
}
