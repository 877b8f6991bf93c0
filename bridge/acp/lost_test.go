package acpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R25: a connection that is lost in the middle of a question records nothing. Another process that
// makes the same call again puts the same question again, and the answer is carried out.
func TestLostAndPutAgain(t *testing.T) {
	var effects counter
	file := filepath.Join(t.TempDir(), "ledger.db")
	process := func(t *testing.T) *gate.Gate {
		store, err := boltstore.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return openGate(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	}
	var first gate.Summary
	t.Run("before", func(t *testing.T) {
		g := process(t)
		ended := make(chan error, 1)
		e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
		e.prompt(`deploy {"service":"api"}`)
		e.asked(permission)
		e.out.Close()
		if err := <-ended; !errors.Is(err, gate.ErrUnavailable) {
			t.Errorf("the call ended with %v", err)
		}
		if first = recorded(t, g); first.Status != checkpoint.Open {
			t.Errorf("recorded as %v", first.Status)
		}
	})
	t.Run("after", func(t *testing.T) {
		g := process(t)
		e := connect(t, g, nil, caller(nil), plain)
		id := e.prompt(`deploy {"service":"api"}`)
		q := e.asked(permission)
		if s := recorded(t, g); s.ID != first.ID || !s.Prompt.Expires.Equal(first.Prompt.Expires) {
			t.Errorf("another question: %v", s)
		}
		e.answer(q, selected("allow_once"))
		if got := statuses("call-deploy", e.ends(id, "end_turn")); !slices.Equal(got, []string{"in_progress", "completed"}) {
			t.Errorf("statuses %v", got)
		}
	})
	effects.want(t, 1)
}

// R24: with Between a question is put again without a message, and its answer is carried out. A
// message withdraws it and puts it in a turn of its own.
func TestBetween(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	first := connect(t, g, nil, caller(nil), plain)
	first.prompt(`deploy {"service":"api"}`)
	first.asked(permission)
	first.out.Close()
	call := acpbridge.Call{ID: "call-deploy", Tool: "deploy", Arguments: json.RawMessage(`{"service":"api"}`)}
	load := func(e *editor, ended chan<- error) func(context.Context) error {
		return func(context.Context) error {
			e.bridge.Between("s1", func(ctx context.Context, turn *acpbridge.Turn) {
				_, err := turn.CallTool(ctx, call)
				ended <- err
			})
			return nil
		}
	}
	const request = `{"sessionId":"s1","cwd":"/","mcpServers":[]}`

	agent, ended := &loader{anAgent: caller(nil)}, make(chan error, 2)
	e := connect(t, g, nil, agent, plain)
	agent.load = load(e, ended)
	e.request("session/load", request)
	q := e.askedAt(permission)
	e.prompt(`deploy {"service":"api"}`)
	if err := <-ended; !errors.Is(err, gate.ErrUnavailable) {
		t.Errorf("a message came: %v", err)
	}
	again := e.askedAt(permission)
	if questionID(t, q) != questionID(t, again) {
		t.Errorf("another question: %s", again.Text)
	}
	e.out.Close() // and the window is closed once more
	e.gone()

	agent = &loader{anAgent: caller(nil)}
	e = connect(t, g, nil, agent, plain)
	agent.load = load(e, ended)
	e.request("session/load", request)
	e.answer(e.askedAt(permission), selected("allow_once"))
	if err := <-ended; err != nil {
		t.Error(err)
	}
	effects.want(t, 1)
}

// An answer together with the end of the connection does not count: nobody would hear of what it
// did.
func TestAllowAndGone(t *testing.T) {
	for range 50 {
		var effects counter
		g := memGate(t, deploy(&effects, nil))
		ended := make(chan error, 1)
		e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
		e.prompt(`deploy {"service":"api"}`)
		q := e.asked(permission)
		e.answer(q, selected("allow_once"))
		e.out.Close()
		err := <-ended
		s := recorded(t, g)
		if waits := s.Status == checkpoint.Open; waits != errors.Is(err, gate.ErrUnavailable) || waits && effects.count() != 0 {
			t.Fatalf("ended with %v, recorded as %v, %d effects", err, s.Status, effects.count())
		}
	}
}

// R32: closing breaks off and records nothing.
func TestClose(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	ended := make(chan error, 1)
	e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
	e.write(`{"jsonrpc":"2.0","id":"<&>","method":"session/prompt","params":%s}`, promptOf(`deploy {"service":"api"}`))
	e.asked(permission)
	closed := make(chan error, 1)
	go func() { closed <- e.bridge.Close(t.Context()) }()
	if err := <-ended; !errors.Is(err, gate.ErrUnavailable) {
		t.Errorf("the call ended with %v", err)
	}
	e.response(`"\u003c\u0026\u003e"`)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if s := recorded(t, g); s.Status != checkpoint.Open {
		t.Errorf("recorded as %v", s.Status)
	}
}

// The SDK gives a connection up over a line of more than 10 MiB, and reads on no more.
func TestLineTooLong(t *testing.T) {
	var effects counter
	g := memGate(t, deploy(&effects, nil))
	ended := make(chan error, 1)
	e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
	e.prompt(`deploy {"service":"api"}`)
	e.asked(permission)
	go io.Copy(e.out, strings.NewReader(strings.Repeat("x", 12<<20))) //nolint:errcheck // nobody reads it to its end
	if err := <-ended; !errors.Is(err, gate.ErrUnavailable) {
		t.Errorf("the call ended with %v", err)
	}
	if s := recorded(t, g); s.Status != checkpoint.Open {
		t.Errorf("recorded as %v", s.Status)
	}
}

// A handler that runs between two messages is told that the SDK gave the connection up.
func TestGivenUpBetween(t *testing.T) {
	for name, text := range map[string]string{
		"a line that is too long":      strings.Repeat("x", 12<<20),
		"more notices than are queued": strings.Repeat(cancelOther, 4000),
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{})
			g := memGate(t, raw("works", func(ctx context.Context) (any, error) {
				close(began)
				<-ctx.Done()
				return nil, ctx.Err()
			}, nil))
			// The SDK serves one notice at a time.
			agent := &anAgent{calls: func(string) { <-t.Context().Done() }}
			e := connect(t, g, nil, agent, plain)
			ended := make(chan error, 1)
			e.bridge.Between("s1", func(ctx context.Context, turn *acpbridge.Turn) {
				_, err := turn.CallTool(ctx, acpbridge.Call{ID: "call-works", Tool: "works"})
				ended <- err
			})
			<-began
			go io.Copy(e.out, strings.NewReader(text)) //nolint:errcheck // nobody reads it to its end
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the call came to an end of its own")
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the handler was not told")
			}
			e.bridge.Between("s1", func(ctx context.Context, _ *acpbridge.Turn) { t.Error("a turn began on a connection that is gone") })
		})
	}
}

const cancelOther = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"another"}}` + "\n"

// A clock that only moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// R30: a question that nobody answered in time is withdrawn, its call has failed, the turn goes on,
// and an answer that comes late is nothing.
func TestExpired(t *testing.T) {
	var effects counter
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Lifetime: 50 * time.Millisecond})
	ended := make(chan error, 1)
	e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	q := e.asked(permission)
	after := e.ends(id, "end_turn")
	e.answer(q, selected("allow_once"))
	if err := <-ended; !errors.Is(err, gate.ErrExpired) {
		t.Errorf("the call ended with %v", err)
	}
	if got := statuses("call-deploy", after); !slices.Equal(got, []string{"failed"}) {
		t.Errorf("statuses %v", got)
	}
	e.wantQuiet()
	effects.want(t, 0)
}

// R30: an answer within the bridge's time and after the gate's is late all the same.
func TestLate(t *testing.T) {
	var effects counter
	c := &clock{now: time.Now()}
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Now: c.Now})
	ended := make(chan error, 1)
	e := connect(t, g, nil, caller(func(_ string, err error) { ended <- err }), plain)
	id := e.prompt(`deploy {"service":"api"}`)
	q := e.asked(permission)
	c.add(time.Hour)
	e.answer(q, selected("allow_once"))
	e.ends(id, "end_turn")
	if err := <-ended; !errors.Is(err, gate.ErrExpired) {
		t.Errorf("the call ended with %v", err)
	}
	effects.want(t, 0)
}

// A client that stops reading stops nobody: the question expires, the call has failed, and the turn
// ends, though nobody hears of it.
func TestClientStopsReading(t *testing.T) {
	var effects counter
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Lifetime: 50 * time.Millisecond})
	ended := make(chan error, 1)
	agent := caller(func(_ string, err error) { ended <- err })
	b, err := acpbridge.New(g, &acpbridge.Options{Authorize: asAnn})
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	unread, agentOut := io.Pipe()
	conn, err := b.Connect(agent, agentOut, in)
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, out: out}
	e.request("initialize", `{"protocolVersion":1}`)
	e.prompt(`deploy {"service":"api"}`)
	if err := <-ended; !errors.Is(err, gate.ErrExpired) {
		t.Errorf("the call ended with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close waits a while for what is not read: %v", err)
	}
	unread.Close() // the client is gone: now nobody waits any more
	out.Close()
	<-conn.Done()
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	effects.want(t, 0)
}

// R32: a client that leaves a full pipe unread does not keep Close, with its writing end open or
// closed.
func TestCloseUnread(t *testing.T) {
	for name, gone := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) { closeUnread(t, gone) })
	}
}

func closeUnread(t *testing.T, gone bool) {
	synctest.Test(t, func(t *testing.T) {
		b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn})
		if err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		unread, agentOut := io.Pipe()
		agent := &anAgent{prompt: func(_ context.Context, turn *acpbridge.Turn, _ string) error { return turn.Say("Hello") }}
		conn, err := b.Connect(agent, agentOut, in)
		if err != nil {
			t.Fatal(err)
		}
		e := &editor{t: t, out: out}
		e.prompt("talk")
		synctest.Wait() // the writer waits for the client
		if gone {
			out.Close()
			<-conn.Done()
		}
		began := time.Now()
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		unread.Close()
		out.Close()
		<-conn.Done()
	})
}

// R32: so does a bridge that has no connection, whatever waits for one.
func TestCloseUnconnected(t *testing.T) {
	b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn})
	if err != nil {
		t.Fatal(err)
	}
	b.Between("s1", func(context.Context, *acpbridge.Turn) { t.Error("a turn began without a connection") })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

// R32: a Connect and a Close at the same time are one after the other, whichever is first.
func TestConnectAndClose(t *testing.T) {
	for range 100 {
		b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		closed := make(chan error, 1)
		go func() { closed <- b.Close(t.Context()) }()
		conn, refused := b.Connect(caller(nil), io.Discard, in)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		out.Close()
		if refused == nil {
			<-conn.Done()
		}
	}
}

// One that reads on, however slowly, is told all that was said.
func TestCloseReadSlowly(t *testing.T) {
	for name, gone := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) { closeReadSlowly(t, gone) })
	}
}

func closeReadSlowly(t *testing.T, gone bool) {
	synctest.Test(t, func(t *testing.T) {
		b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn})
		if err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		from, agentOut := io.Pipe()
		agent := &anAgent{prompt: func(_ context.Context, turn *acpbridge.Turn, _ string) error {
			for range 10 {
				if err := turn.Say("Hello"); err != nil {
					return err
				}
			}
			return nil
		}}
		conn, err := b.Connect(agent, agentOut, in)
		if err != nil {
			t.Fatal(err)
		}
		e := &editor{t: t, out: out}
		e.prompt("talk")
		synctest.Wait()
		if gone {
			out.Close()
			<-conn.Done()
		}
		closed := make(chan error, 1)
		go func() { closed <- b.Close(context.Background()) }()
		lines := bufio.NewReaderSize(from, 16) // no further than the line
		for range 11 {
			time.Sleep(grace - 100*time.Millisecond)
			select {
			case err := <-closed:
				t.Fatalf("closed before all was written: %v", err)
			default:
			}
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		out.Close()
		<-conn.Done()
	})
}

// grace is the time that a message has on a connection that is gone.
const grace = time.Second

// Updates wait for a client that is slow to read, until the turn is cancelled.
func TestUpdatesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunk := strings.Repeat("x", 64<<10)
		var said atomic.Int64
		agent := &anAgent{prompt: func(ctx context.Context, turn *acpbridge.Turn, _ string) error {
			for ctx.Err() == nil {
				if err := turn.Say(chunk); err != nil {
					return err
				}
				said.Add(1)
			}
			return nil
		}}
		b, err := acpbridge.New(memGate(t), &acpbridge.Options{Authorize: asAnn})
		if err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		unread, agentOut := io.Pipe()
		if _, err := b.Connect(agent, agentOut, in); err != nil {
			t.Fatal(err)
		}
		e := &editor{t: t, out: out}
		e.prompt("talk")
		synctest.Wait() // it talks until there is no more room
		if n := said.Load(); n < 8 || n > 32 {
			t.Errorf("%d updates are in memory", n)
		}
		e.write(cancelLine)
		synctest.Wait() // it has heard of it, or would talk for ever
		unread.Close()
		out.Close()
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
