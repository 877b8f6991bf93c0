package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// clientsOfMCP is how many clients call at once, so that as many interactions are open.
const clientsOfMCP = 200

// One operation is a whole call over streamable HTTP in protocol 2026-07-28, by one of 200 clients
// of the SDK: with tool=deploy the question and the answer, which are two requests, with tool=plain
// the same result without a question, which is one. Beside the time by operation, calls/s counts
// them all and p99-ms is the time in which 99 of 100 calls were done.
func BenchmarkMCP(b *testing.B) {
	for _, tool := range []string{"deploy", "plain"} {
		b.Run("store=mem/tool="+tool, func(b *testing.B) { callsOfMCP(b, bridgeFor(b, openGate(b, memstore.New())), tool) })
		b.Run("store=bolt/tool="+tool, func(b *testing.B) { callsOfMCP(b, bridgeFor(b, openGate(b, openBolt(b))), tool) })
	}
}

func bridgeFor(b *testing.B, g *gate.Gate) *mcpbridge.Bridge {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	bridge, err := mcpbridge.New(server, g, &mcpbridge.Options{
		Logger: slog.New(slog.DiscardHandler),
		Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
			return mcpbridge.Grant{Scope: "ann", Session: "s"}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bridge.Close(context.Background()) })
	if err := bridge.AddTool(g.Tool("deploy"), nil); err != nil {
		b.Fatal(err)
	}
	mcp.AddTool(server, &mcp.Tool{Name: "plain"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deployed"}}}, nil, nil
	})
	return bridge
}

func callsOfMCP(b *testing.B, bridge *mcpbridge.Bridge, tool string) {
	server := httptest.NewServer(bridge.HTTPHandler(nil))
	defer server.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: clientsOfMCP}
	defer transport.CloseIdleConnections()
	yes := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow_once"}}, nil
	}
	var sessions []*mcp.ClientSession
	for range clientsOfMCP {
		client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: yes})
		endpoint := &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: transport}}
		session, err := client.Connect(b.Context(), endpoint, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			b.Fatal(err)
		}
		defer session.Close()
		sessions = append(sessions, session)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	times := make([][]time.Duration, clientsOfMCP)
	var all sync.WaitGroup
	b.ResetTimer()
	for i, session := range sessions {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: tool, Arguments: input{Service: fmt.Sprint(i)}})
				if err != nil || result.IsError {
					b.Errorf("call: %v, %+v", err, result)
					return
				}
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	if len(sorted) == 0 {
		return
	}
	b.ReportMetric(float64(len(sorted))/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(sorted[(len(sorted)-1)*99/100].Microseconds())/1000, "p99-ms")
}
