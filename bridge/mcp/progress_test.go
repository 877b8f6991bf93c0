package mcpbridge_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// notes are the progress notifications that a client got.
type notes struct {
	mu  sync.Mutex
	all []*mcp.ProgressNotificationParams
}

func (n *notes) listen(o *mcp.ClientOptions) {
	o.ProgressNotificationHandler = func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all = append(n.all, req.Params)
	}
}

func (n *notes) got() []*mcp.ProgressNotificationParams {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*mcp.ProgressNotificationParams(nil), n.all...)
}

func listening(tool string) *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
	p.SetProgressToken("p1")
	return p
}

// R35: what a handler tells of its progress reaches a client that listens, strictly increasing over
// all rounds of a call; nothing comes after the call.
func TestProgress(t *testing.T) {
	total := 3.0
	tool := raw("slow", func(ctx context.Context) (any, error) {
		for i := range 3 {
			// The pause lets each update through: they are at most one per 100 ms.
			time.Sleep(200 * time.Millisecond)
			if err := interrupt.Progress(ctx, interrupt.Update{Completed: float64(i + 1), Total: &total, Message: "working"}); err != nil {
				return nil, err
			}
		}
		_, err := interrupt.Ask(ctx, interrupt.UserSelection(interrupt.UserChoice{Title: "a"}, interrupt.UserChoice{Title: "b"}))
		return "done", err
	}, nil)
	for _, version := range sessions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &notes{}
				s := memSite(t, nil, tool)
				cs := connect(t, s, version, answering(`accept:{"choice":"0"}`), n.listen)
				wantText(t, send(t, cs, listening("slow")), "done")
				synctest.Wait()
				all := n.got()
				if len(all) != 6 {
					t.Fatalf("%d notifications", len(all))
				}
				last := -1.0
				for _, p := range all {
					if p.Progress <= last || p.ProgressToken != "p1" || p.Message != "working" || p.Total != 0 && p.Total < p.Progress {
						t.Errorf("after %v: %+v", last, p)
					}
					last = p.Progress
				}
				// Nobody listens without a token.
				wantText(t, send(t, connect(t, s, version, answering(`accept:{"choice":"0"}`), n.listen), &mcp.CallToolParams{Name: "slow"}), "done")
				if len(n.got()) != 6 {
					t.Errorf("%d notifications", len(n.got()))
				}
			})
		})
	}
}

// A call that waits, for its handler or for a person, says from time to time that it is still at
// it.
func TestKeepAlive(t *testing.T) {
	for name, tc := range map[string]struct {
		interval time.Duration
		want     int
	}{
		"default": {0, 7}, "a minute": {time.Minute, 1}, "never": {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &notes{}
				tool := rounds(1)
				g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
				s := newSite(t, g, &mcpbridge.Options{KeepAlive: tc.interval}, tool)
				cs := connect(t, s, legacy, nil, n.listen, func(o *mcp.ClientOptions) {
					o.Capabilities = both()
					o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						time.Sleep(110 * time.Second)
						return accept(`{"choice":"0"}`), nil
					}
				})
				wantText(t, send(t, cs, listening("rounds")), "done")
				time.Sleep(time.Hour)
				all := n.got()
				if len(all) != tc.want {
					t.Errorf("%d notifications, want %d", len(all), tc.want)
				}
				for i, p := range all {
					if i > 0 && p.Progress <= all[i-1].Progress {
						t.Errorf("%v after %v", p.Progress, all[i-1].Progress)
					}
				}
			})
		})
	}
}
