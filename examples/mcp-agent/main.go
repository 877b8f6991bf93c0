// Command mcp-agent is an eino agent that uses an MCP server. What the server asks goes to the
// person at this terminal, by the same rules as a question of the agent's own tools. In
// examples/mcp-server:
//
//	go run ../mcp-agent deploy '{"service":"api","version":"2"}' go run .
//
// has the agent call the tool deploy of the server that "go run ." starts. Its model is a script
// that calls this one tool; a model of yours takes its place. The server's tools become the agent's
// in tools.go, and converse.go asks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/agent"
	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

type options struct {
	protocol        string
	tool, arguments string
	server          []string
}

func main() {
	var o options
	flag.StringVar(&o.protocol, "protocol", "", "the protocol to speak with the server (default: the latest that it knows)")
	flag.Parse()
	if flag.NArg() < 3 {
		log.Fatal("usage: mcp-agent [-protocol VERSION] TOOL ARGUMENTS COMMAND [ARGUMENT...]")
	}
	o.tool, o.arguments, o.server = flag.Arg(0), flag.Arg(1), flag.Args()[2:]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, in io.Reader, out io.Writer) (err error) {
	client := mcpbridge.NewClient(&mcp.Implementation{Name: "mcp-agent", Version: "1"}, nil)
	command := exec.CommandContext(ctx, o.server[0], o.server[1:]...)
	command.Stderr = os.Stderr
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: o.protocol})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", o.server[0], err)
	}
	server := mcpbridge.NewClientHandler("The MCP server", session, nil)
	defer func() { err = errors.Join(err, server.Close()) }()

	tools, err := toolsOf(ctx, session, server)
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: tools, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()
	a, err := agent.New(ctx, g, build(o, tools), nil)
	if err != nil {
		return err
	}
	return converse(ctx, a, in, out)
}

// build makes the agent. Its tools are the server's.
func build(o options, tools []*gate.Tool) agent.Build {
	var faces []tool.BaseTool
	for _, t := range tools {
		faces = append(faces, agent.Tool(t))
	}
	model := scripted.New(scripted.Do(scripted.Call{ID: "1", Tool: o.tool, Arguments: o.arguments}), scripted.Say("That is all."))
	return func(ctx context.Context) (adk.Agent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "user", Description: "uses an MCP server", Model: agent.Model(model),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: faces}},
		})
	}
}
