package acpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/coder/acp-go-sdk"
)

// A Turn is one prompt of a session, from where it was read to its response. Its methods can be
// called from several goroutines, until the agent's Prompt has returned.
type Turn struct {
	bridge    *Bridge
	sessionID acp.SessionId
	session   *session
	number    int    // in the order in which the bridge's were read
	key       string // in the _meta of its prompt
	request   string // the id of its request, in canonical form
	id        string // the same as the SDK writes it
	between   bool   // it has none: see [Bridge.Between]

	ctx    context.Context // ends with the turn, or before it
	cancel context.CancelCauseFunc
	told   chan struct{} // closed when its response was sent, or will not be

	work sync.WaitGroup
	mu   sync.Mutex // guards what follows
	over bool       // no new work, no new updates
}

// Why a turn ends before the agent is done with it. The first cause counts.
var (
	errSessionCancel = errors.New("the client cancelled the turn")
	errCancelRequest = errors.New("the client cancelled the prompt")
	errSessionClose  = errors.New("the client closed the session")
	errBrokenOff     = errors.New("the person broke off")

	errPrompt  = errors.New("the person went on with a new message")
	errLost    = errors.New("the connection to the client is lost")
	errClosing = errors.New("the bridge is closing")

	errDone = errors.New("the turn is over")
)

// recorded reports whether the cause is the person's or their client's, so that open questions are
// recorded as cancelled. Else they wait.
func recorded(cause error) bool {
	return slices.Contains([]error{errSessionCancel, errCancelRequest, errSessionClose, errBrokenOff}, cause)
}

type turnKey struct{}

// TurnOf returns the turn of the context of an agent's Prompt; nil elsewhere.
func TurnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}

// Session returns the session's id.
func (t *Turn) Session() acp.SessionId { return t.sessionID }

// Cancelled reports whether the client, or the person, ended the turn.
func (t *Turn) Cancelled() bool { return recorded(context.Cause(t.ctx)) }

// Say sends a piece of the agent's message.
func (t *Turn) Say(text string) error { return t.Update(acp.UpdateAgentMessageText(text)) }

// Update sends a session update. After the turn it is an error and sends nothing; after a cancel it
// still sends, as the agent may do. Where the client is slow to read it waits.
//
// The statuses of the bridge's tool calls are the bridge's to tell.
func (t *Turn) Update(u acp.SessionUpdate) error {
	leave, err := t.enter()
	if err != nil {
		return fmt.Errorf("update session %s: %w", t.sessionID, err)
	}
	defer leave()
	t.bridge.out.wait(t.ctx, room)
	return t.update(u)
}

// update sends an update now. Its context does not end: what was begun is told to its end.
func (t *Turn) update(u acp.SessionUpdate) error {
	return t.bridge.peer.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: t.sessionID, Update: u})
}

// enter begins something that the turn waits for.
func (t *Turn) enter() (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil, errDone
	}
	t.work.Add(1)
	return t.work.Done, nil
}

// read is called when a prompt was read: its turn is there from now on.
func (b *Bridge) read(key string, id acp.SessionId, request json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.turns {
		if t.between && t.sessionID == id {
			t.cancel(errPrompt)
		}
	}
	t := b.turn(key, id)
	written, _ := json.Marshal(request) // it was read as JSON
	t.id, t.request = string(written), requestID(request)
}

// turn makes a turn. b.mu is held.
func (b *Bridge) turn(key string, id acp.SessionId) *Turn {
	b.count++
	t := &Turn{
		bridge: b, sessionID: id, session: b.session(id), number: b.count, key: key, told: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	b.turns[key] = t
	if b.closed {
		t.cancel(errClosing)
	}
	return t
}

// take returns the turn that a prompt brings, and takes its key away.
func (b *Bridge) take(p *acp.PromptRequest) (*Turn, error) {
	key, _ := p.Meta[b.metas].(string)
	delete(p.Meta, b.metas)
	if len(p.Meta) == 0 {
		p.Meta = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.turns[key]
	if t == nil {
		return nil, acp.NewInternalError(map[string]any{"error": "the prompt was not read by the bridge"})
	}
	if b.closed { // Close may not wait any more
		delete(b.turns, key)
		close(t.told)
		return nil, unavailable(errClosing)
	}
	b.alive.Add(1)
	return t, nil
}

// begin makes the turn the session's. It is refused beside one that was read before it. Where that
// is being cancelled its response is waited for: until then a client takes what comes for that
// turn's, and answers what it is asked with cancelled.
func (t *Turn) begin() error {
	for {
		var before *Turn
		for _, other := range t.bridge.unanswered() {
			if other.sessionID == t.sessionID && other.number < t.number && (before == nil || before.ctx.Err() != nil) {
				before = other
			}
		}
		switch {
		case before == nil:
			return nil
		case before.ctx.Err() == nil:
			return acp.NewInvalidRequest(map[string]any{"error": "a turn of the session is going on"})
		}
		<-before.told
	}
}

// unanswered returns the turns whose response is not sent yet.
func (b *Bridge) unanswered() []*Turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.AppendSeq(slices.Clone(b.owed), maps.Values(b.turns))
}

// finish waits for all that goes on in the turn, so that nothing of it follows its response.
func (t *Turn) finish() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.cancel(errDone)
	t.work.Wait()
	b := t.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, t.key)
	b.forget(t.session, t.sessionID)
	if t.between || b.gone {
		t.wasTold()
		return
	}
	b.owed = append(b.owed, t)
}

// wasTold is called once, when the response was sent or will not be.
func (t *Turn) wasTold() {
	close(t.told)
	t.bridge.alive.Done()
}

// sent notes the response of a turn that is over; until then the bridge is not closed. Without a
// message there will be none.
func (b *Bridge) sent(text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = b.gone || text == nil
	rest, response := bytes.CutPrefix(text, []byte(`{"jsonrpc":"2.0","id":`))
	b.owed = slices.DeleteFunc(b.owed, func(t *Turn) bool {
		paid := b.gone || response && bytes.HasPrefix(rest, []byte(t.id+",")) && !bytes.HasPrefix(rest, []byte(t.id+`,"method"`))
		if paid {
			t.wasTold()
		}
		return paid
	})
}

// forget forgets a session that has no turn. b.mu is held.
func (b *Bridge) forget(s *session, id acp.SessionId) {
	for _, t := range b.turns {
		if t.session == s {
			return
		}
	}
	delete(b.sessions, id)
}

// cancelSession ends every turn of the session whose prompt was read.
func (b *Bridge) cancelSession(id acp.SessionId, cause error) {
	b.cancelTurns(cause, func(t *Turn) bool { return t.sessionID == id })
}

func (b *Bridge) cancelRequest(request string) {
	b.cancelTurns(errCancelRequest, func(t *Turn) bool { return request != "" && t.request == request })
}

// lost is called when nothing more can be read.
func (b *Bridge) lost() { b.cancelTurns(errLost, func(*Turn) bool { return true }) }

func (b *Bridge) cancelTurns(cause error, which func(t *Turn) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.turns {
		if which(t) {
			t.cancel(cause)
		}
	}
}
