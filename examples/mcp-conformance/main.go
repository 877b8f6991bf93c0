// Command mcp-conformance serves the tools that the conformance tests of MCP call
// (@modelcontextprotocol/conformance), over streamable HTTP:
//
//	go run ./examples/mcp-conformance -http localhost:8080
//	npx @modelcontextprotocol/conformance server --url http://localhost:8080 \
//		--scenario input-required-result-multi-round --spec-version 2026-07-28
//
// The tools that ask a person are a gate's (tools.go). Those that ask for a model or for roots are
// the SDK's own, beside them (native.go). What is expected to fail, and why, is in
// expected-failures.yml.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

func main() {
	address := flag.String("http", "localhost:8080", "the address to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *address); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string) error {
	tools := newTools()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: tools, Keys: [][]byte{gate.NewKey()}})
	if err != nil {
		return err
	}
	defer g.Close(context.WithoutCancel(ctx))
	server := mcp.NewServer(&mcp.Implementation{Name: "parley-conformance", Version: "1"}, nil)
	bridge, err := mcpbridge.New(server, g, &mcpbridge.Options{Authorize: anybody})
	if err != nil {
		return err
	}
	defer bridge.Close(context.WithoutCancel(ctx))
	for _, tool := range tools {
		if err := bridge.AddTool(tool, nil); err != nil {
			return err
		}
	}
	addNative(server)
	s := &http.Server{Addr: address, Handler: bridge.HTTPHandler(nil), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	return s.ListenAndServe()
}

// anybody is whoever runs the tests, without a name: no server that others can reach does this.
func anybody(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
	return mcpbridge.Grant{Scope: "conformance", Session: "conformance"}, nil
}
