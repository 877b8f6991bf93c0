package agent_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// R27: a run that goes on from its last commit meets the tool calls that it made since then, also
// where a tool before them is told in other words, because its result is not kept, and where the
// model would make other ids for them.
func TestAnswerIsKeptWhateverToolsAreToldAgain(t *testing.T) {
	var runs, effects atomic.Int64
	asked, down := 0, true
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		asked++
		fresh := strconv.Itoa(asked)
		switch said := results(input); strings.Count(said, "[") {
		case 0:
			return scripted.Do(call(fresh, "status", struct{}{})), nil
		case 1:
			return scripted.Do(call(fresh, "notify", struct{}{})), nil
		default:
			if down {
				return nil, errors.New("the model is down")
			}
			return scripted.Say(said), nil
		}
	})
	notify := gate.NewTool("notify", func(context.Context, struct{}) (string, error) {
		effects.Add(1)
		return "notified", nil
	}, &gate.ToolOptions{KeepResult: true})
	w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{status(&runs, nil), notify}, model: m})
	run, err := w.agent.Start(t.Context(), agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}, Facilities: everything}).Run()
	if err == nil || run == nil {
		t.Fatalf("have %+v, %v", run, err)
	}
	down = false
	wantFinished(t, w.resume(run.ID), "[This call was carried out before, and its result was not kept. Do not make it again.][notified]")
	if runs.Load() != 1 || effects.Load() != 1 {
		t.Errorf("the tools ran %d and %d times", runs.Load(), effects.Load())
	}
}
