package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A silent model gives neither an answer nor an error, or pieces that are none.
type silent struct{ pieces []*schema.Message }

func (s silent) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

func (silent) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return nil, nil
}

func (s silent) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	if s.pieces == nil {
		return nil, nil
	}
	return schema.StreamReaderFromArray(s.pieces), nil
}

// A model that gives nothing is an error of the run, in every way to ask it, and ends no process.
func TestModelGivesNothing(t *testing.T) {
	for _, m := range []silent{{}, {[]*schema.Message{nil}}} {
		for _, streaming := range []bool{false, true} {
			w := open(t, memstore.New(), worldOptions{model: m, streaming: streaming})
			start := agent.Start{Scope: "ann", Messages: []*schema.Message{schema.UserMessage("x")}}
			run, err := w.agent.Start(t.Context(), start).Run()
			if err == nil || run.Status != agent.Waiting || errors.Is(err, agent.ErrCheckpoint) || strings.Contains(err.Error(), "panic") {
				t.Errorf("%d pieces, streaming %v: have %+v, %v", len(m.pieces), streaming, run, err)
			}
		}
	}
}

type (
	noParts  struct{ *payer }
	noPiece  struct{ *payer }
	noStream struct{ *payer }
)

func (noParts) InvokableRun(context.Context, *schema.ToolArgument, ...tool.Option) (*schema.ToolResult, error) {
	return nil, nil
}

func (noPiece) StreamableRun(context.Context, *schema.ToolArgument, ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
	return schema.StreamReaderFromArray([]*schema.ToolResult{nil}), nil
}

func (noStream) StreamableRun(context.Context, string, ...tool.Option) (*schema.StreamReader[string], error) {
	return nil, nil
}

// A tool without a result has an empty one, as in eino; one without a stream has failed.
func TestToolGivesNothing(t *testing.T) {
	for _, test := range []struct {
		tool tool.BaseTool
		want string
	}{
		{noParts{}, "[]"}, {noPiece{}, "[]"}, {noStream{}, "[The call failed: the tool failed]"},
	} {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprintf("%T,streaming=%v", test.tool, streaming), func(t *testing.T) {
				half, face, err := agent.Wrap(t.Context(), test.tool, nil)
				if err != nil {
					t.Fatal(err)
				}
				m := after(scripted.Do(call("p", "pay", map[string]int{"amount": 1})))
				w := open(t, memstore.New(), worldOptions{tools: []*gate.Tool{half}, plain: []tool.BaseTool{face}, model: m, streaming: streaming})
				wantFinished(t, w.start(), test.want)
			})
		}
	}
}
