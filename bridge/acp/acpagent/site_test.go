package acpagent_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/agent"
	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A site is an agent's process: a gate, a bridge, and an agent of eino's.
type site struct {
	gate    *gate.Gate
	bridge  *acpbridge.Bridge
	agent   *agent.Agent
	rest    acpbridge.Agent
	person  *person
	effects atomic.Int64
	refuses atomic.Bool // the host, as whom anybody is served
	close   func()
}

var quiet = slog.New(slog.DiscardHandler)

// build makes a process on a store.
func build(store checkpoint.Store, m *scripted.Model, poll time.Duration, tools ...*gate.Tool) (*site, error) {
	var faces []tool.BaseTool
	for _, one := range tools {
		faces = append(faces, agent.Tool(one))
	}
	return buildOf(store, m, poll, tools, faces, false)
}

// buildOf is build, of an agent that has these faces of the tools.
func buildOf(
	store checkpoint.Store, m model.BaseChatModel, poll time.Duration, tools []*gate.Tool, faces []tool.BaseTool, streaming bool,
) (*site, error) {
	ctx := context.Background()
	s := &site{}
	var err error
	keys := [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	if s.gate, err = gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys, Logger: quiet}); err != nil {
		return nil, err
	}
	s.bridge, err = acpbridge.New(s.gate, &acpbridge.Options{
		Logger: quiet, PollInterval: poll, Fallback: acpbridge.Fallbacks{URL: true},
		Authorize: func(context.Context, acpbridge.Request) (acpbridge.Grant, error) {
			if s.refuses.Load() {
				return acpbridge.Grant{}, errors.New("not any more")
			}
			return acpbridge.Grant{Scope: "ann"}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	s.agent, err = agent.New(ctx, s.gate, func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "release", Description: "d", Model: agent.Model(m),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: faces}},
		})
	}, &agent.Options{Fits: s.bridge.Fits, Streaming: streaming})
	return s, err
}

// connect connects an editor with the agent.
func (s *site) connectTo(agent acpbridge.Agent, p *person, capabilities acp.ClientCapabilities) (*acp.ClientSideConnection, error) {
	in, out := io.Pipe()
	back, agentOut := io.Pipe()
	conn, err := s.bridge.Connect(agent, agentOut, in)
	if err != nil {
		return nil, err
	}
	s.person = p
	s.close = func() {
		out.Close()
		<-conn.Done()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(s.bridge.Close(ctx), s.agent.Close(ctx), s.gate.Close(ctx)); err != nil {
			panic(err)
		}
		agentOut.Close()
	}
	client := acp.NewClientSideConnection(p, out, back)
	client.SetLogger(quiet)
	_, err = client.Initialize(context.Background(), acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientCapabilities: capabilities,
	})
	return client, err
}

// newSite is the site of the example.
func newSite() *site {
	s := &site{}
	m := scripted.Func(func(input []*schema.Message) (*schema.Message, error) {
		if last := input[len(input)-1]; last.Role == schema.Tool {
			return scripted.Say(last.Content), nil
		}
		return scripted.Do(scripted.Call{ID: "1", Tool: "deploy", Arguments: service{"api"}}), nil
	})
	s, err := build(memstore.New(), m, pollInterval, deploy(&s.effects))
	if err != nil {
		panic(err)
	}
	s.rest = &anAgent{}
	return s
}

func (s *site) connect(agent acpbridge.Agent, answer func(title string) string) (*acp.ClientSideConnection, error) {
	p := &person{answer: func(_ context.Context, title string) string { return answer(title) }}
	return s.connectTo(agent, p, acp.ClientCapabilities{})
}

func (s *site) text() string {
	_, text := s.person.told()
	return strings.TrimSpace(text)
}
