package mcpbridge_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// The users of a server over HTTP are known by their bearer tokens. What somebody calls is asked of
// him alone.
func ExampleBridge_HTTPHandler() {
	type Input struct {
		Service string `json:"service"`
	}
	deploy := gate.NewTool("deploy", func(ctx context.Context, in Input) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Service)); err != nil {
			return "", err
		}
		return "deployed " + in.Service, nil
	}, nil)
	ctx := context.Background()
	tools := []*gate.Tool{deploy}
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: tools, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close(ctx)

	handler, err := httpHandler(g, tools, func(_ context.Context, token string) (user string, ok bool) {
		return "ann", token == "token-of-ann"
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for _, user := range []string{"ann", "bob"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow_once"}}, nil
			},
		})
		transport := &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: bearer{user}}}
		session, err := client.Connect(ctx, transport, nil)
		if err != nil {
			fmt.Println(user, "is not let in")
			continue
		}
		defer session.Close()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "deploy", Arguments: Input{Service: "api"}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user, "has", result.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// ann has deployed api
	// bob is not let in
}

// httpHandler serves the tools of a gate to the users of a host.
func httpHandler(g *gate.Gate, tools []*gate.Tool, userOf func(ctx context.Context, token string) (string, bool)) (http.Handler, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "ops", Version: "1"}, nil)
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user, ok := userOf(ctx, token) // yours: it knows whose tokens are good
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
	}
	authorize := func(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
		if r.TokenInfo == nil {
			return mcpbridge.Grant{}, errors.New("there is no token")
		}
		user := r.TokenInfo.UserID // who has one dialog, whatever the client
		return mcpbridge.Grant{Scope: user, Session: user}, nil
	}
	bridge, err := mcpbridge.New(server, g, &mcpbridge.Options{Authorize: authorize})
	if err != nil {
		return nil, err
	}
	handler := auth.RequireBearerToken(verify, nil)(bridge.HTTPHandler(nil)) // for an http.Server; then add the tools
	for _, tool := range tools {
		if err := bridge.AddTool(tool, nil); err != nil {
			return nil, err
		}
	}
	return handler, nil
}
