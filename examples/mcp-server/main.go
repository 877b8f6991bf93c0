// Command mcp-server is an MCP server whose tools ask a person: whatever client it is connected to,
// and also where the server is restarted between a question and its answer.
//
//	go run ./examples/mcp-server
//
// speaks over standard input and output, for one local user; give that command to a client. With
//
//	go run ./examples/mcp-server -http localhost:8080 -tokens tokens.txt
//
// it serves streamable HTTP for the users of a file, each line of which is a bearer token and a
// name. The questions are kept in mcp-server.db; the key of the tokens is beside the user's
// settings, and made where there is none. With the URL of a database any number of processes on any
// number of machines serve the same questions, all of them with copies of one key file:
//
//	export PARLEY_POSTGRES=postgres://…
//	go run ./examples/mcp-server -migrate
//	go run ./examples/mcp-server -http localhost:8080 -tokens tokens.txt -key parley.key
//
// The first of these makes the tables and ends. docs/scaling.md has all of the steps.
//
// The tools are in tools.go and onboard.go, who may call in users.go, where questions are kept in
// store.go.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/gate"
)

type options struct {
	db, postgres, key, address, tokens, journal string
	migrate                                     bool
	lapse                                       time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.db, "db", "mcp-server.db", "the file in which questions are kept, without a database")
	flag.BoolVar(&o.migrate, "migrate", false, "make the tables of the database, and end")
	flag.DurationVar(&o.lapse, "lapse", 30*time.Second, "how long the claims of a process of the database hold that died")
	flag.StringVar(&o.key, "key", "", "the file with the keys of the tokens (default: in the user's configuration)")
	flag.StringVar(&o.address, "http", "", "the address to serve HTTP at, instead of standard input and output")
	flag.StringVar(&o.tokens, "tokens", "tokens.txt", "the file with the users, for -http: lines of a bearer token and a name")
	flag.StringVar(&o.journal, "journal", "", "the file in which the tools write what they do")
	flag.Parse()
	o.postgres = os.Getenv("PARLEY_POSTGRES") // it can hold a password, and arguments are there for everybody to see
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.migrate {
		return migrate(ctx, o)
	}
	var u users
	if o.address != "" {
		if u, err = readUsers(o.tokens); err != nil {
			return err
		}
	}
	keys, err := readKeys(o)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tools := newTools(journal(o.journal))
	g, err := gate.Open(ctx, store, &gate.Options{Tools: tools, Keys: keys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()

	server := mcp.NewServer(&mcp.Implementation{Name: "parley-example", Version: "1"}, nil)
	bridgeOptions := &mcpbridge.Options{}
	if o.address != "" {
		bridgeOptions.Authorize = authorize
	}
	bridge, err := mcpbridge.New(server, g, bridgeOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bridge.Close(context.WithoutCancel(ctx))) }()
	for _, tool := range tools {
		if err := bridge.AddTool(tool, looks[tool.Name()]); err != nil {
			return err
		}
	}
	if o.address == "" {
		return server.Run(ctx, bridge.Transport(&mcp.StdioTransport{}))
	}
	return serve(ctx, o.address, u, bridge)
}

// serve serves HTTP until ctx ends.
func serve(ctx context.Context, address string, u users, bridge *mcpbridge.Bridge) error {
	handler := auth.RequireBearerToken(u.verify, nil)(bridge.HTTPHandler(nil))
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("serving MCP at %s", listener.Addr())
	return s.Serve(listener)
}
