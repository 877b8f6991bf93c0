package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// R20: a token is 43 URL-safe characters; every malformed or forged one is refused without touching
// the store.
func TestTokenForm(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	token := string(p.Token)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if len(token) != 43 || strings.Trim(token, alphabet) != "" {
		t.Fatalf("a token of %d characters", len(token))
	}
	other := mustAsk(t, g, c)
	if other.Token == p.Token {
		t.Fatal("two interactions have one token")
	}
	_, before := store.counts()
	forged := []string{
		token + "A", token[:42], token[1:], token + "=", " " + token[1:], strings.Repeat("A", 43), token[:20] + "+" + token[21:],
		token[:21] + string(other.Token)[21:], // the block of one, the tag of another
	}
	for i := range token {
		next := alphabet[(strings.IndexByte(alphabet, token[i])+1)%len(alphabet)]
		forged = append(forged, token[:i]+string(next)+token[i+1:])
	}
	for _, forgery := range forged {
		bad := with(c, p, allow)
		bad.Token = gate.Token(forgery)
		mustFail(t, g, bad, gate.ErrInvalidContinuation)
	}
	if _, after := store.counts(); after != before {
		t.Errorf("forged tokens made %d loads", after-before)
	}
	effects.want(t, 0)
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
}

// R20: a token is not printed, whatever prints it.
func TestTokenIsNotPrinted(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var effects counter
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Logger: log})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	outcome := gate.Outcome{Prompt: p}
	log.Info("prompt", "token", p.Token, "outcome", outcome, "call", with(c, p, allow))
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x", p.Token, *p, p.Token, p.Token, p.Token, p.Token)
	if err := json.NewEncoder(&out).Encode([]any{p, outcome, with(c, p, allow)}); err != nil {
		t.Fatal(err)
	}
	stranger := with(c, p, allow)
	stranger.Scope = "bob"
	_, err := g.Invoke(t.Context(), stranger)
	fmt.Fprintf(&out, "%v %+v", err, err)
	if strings.Contains(out.String(), string(p.Token)) {
		t.Errorf("the token is printed:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "cause=scope") {
		t.Errorf("the true cause is not in the host's log:\n%s", out.String())
	}
}

// R21: a token is bound to each of these on its own. All mismatches get the same answer, change
// nothing and use nothing up.
func TestTokenBindings(t *testing.T) {
	var effects counter
	store := newMem()
	tools := func(revision string, former ...string) gate.Options {
		o := &gate.ToolOptions{Revision: revision, FormerRevisions: former}
		twin := gate.NewRawTool("twin", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, nil)
		return gate.Options{Tools: []*gate.Tool{deploy(&effects, o), twin}}
	}
	g := open(t, store, tools("1"))
	face, err := g.NewFace("mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work-1"
	p := mustAsk(t, face, c)
	good := with(c, p, allow)
	var words []string
	for name, test := range map[string]struct {
		face   host
		change func(*gate.Call)
	}{
		"scope":       {face, func(c *gate.Call) { c.Scope = "bob" }},
		"session":     {face, func(c *gate.Call) { c.Session = "s2" }},
		"start id":    {face, func(c *gate.Call) { c.StartID = "work-2" }},
		"no start id": {face, func(c *gate.Call) { c.StartID = "" }},
		"tool":        {face, func(c *gate.Call) { c.Tool = "twin" }},
		"arguments":   {face, func(c *gate.Call) { c.Arguments = json.RawMessage(`{"service":"db"}`) }},
		"face":        {g, func(*gate.Call) {}},
		"ledger":      {open(t, newMem(), tools("1")), func(*gate.Call) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			test.change(&bad)
			words = append(words, mustFail(t, test.face, bad, gate.ErrInvalidContinuation).Error())
			bad.Answers = nil
			mustFail(t, test.face, bad, gate.ErrInvalidContinuation)
		})
	}
	for _, w := range words {
		if w != words[0] {
			t.Errorf("two mismatches are told apart: %q and %q", w, words[0])
		}
	}
	effects.want(t, 0)

	// Only where all else matched is a changed revision told; a former one is fine.
	second := open(t, store, tools("2"))
	if face, err = second.NewFace("mcp", nil); err != nil {
		t.Fatal(err)
	}
	mustFail(t, face, good, gate.ErrRevisionChanged)
	stranger := good
	stranger.Scope = "bob"
	mustFail(t, face, stranger, gate.ErrInvalidContinuation)
	third := open(t, store, tools("3", "2", "1"))
	if face, err = third.NewFace("mcp", nil); err != nil {
		t.Fatal(err)
	}
	reordered := good
	reordered.Arguments = json.RawMessage("{ \"service\" : \"\\u0061pi\" }") // the same arguments, written otherwise
	mustFinish(t, face, reordered, `"deployed api"`)
	effects.want(t, 1)
}

// R21: the prompt's digest is bound: a record whose question was changed is not answered.
func TestTokenBindsThePrompt(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}})
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	record, err := store.Load(t.Context(), p.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	in, err := checkpoint.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	in.Revision++
	in.Rounds[0].Questions[0].Body = json.RawMessage(strings.Replace(string(in.Rounds[0].Questions[0].Body), "Deploy api", "Say hello", 1))
	forged, err := checkpoint.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: forged}}}); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, with(c, p, allow), gate.ErrInvalidContinuation)
	effects.want(t, 0)
}

// R22: the first key mints, the others verify; a key that leaves the ring takes its tokens with it,
// at once. Start IDs survive.
func TestKeyRing(t *testing.T) {
	var effects counter
	k1, k2 := gate.NewKey(), gate.NewKey()
	g := open(t, newMem(), gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, Keys: [][]byte{k1}})
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p1 := mustAsk(t, g, c)
	if err := g.SetKeys([][]byte{k2, k1}); err != nil {
		t.Fatal(err)
	}
	look := c
	look.Token = p1.Token
	if again := mustAsk(t, g, look); again.Token != p1.Token {
		t.Error("a token changed although its key is in the ring")
	}
	if err := g.SetKeys([][]byte{k2}); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, look, gate.ErrInvalidContinuation)
	mustFail(t, g, with(c, p1, allow), gate.ErrInvalidContinuation)
	// R31: a rejoin gets a new token for the same round, prompt and deadline.
	p2 := mustAsk(t, g, c)
	if p2.Token == p1.Token || p2.Interaction != p1.Interaction || p2.Round != 1 || !p2.Expires.Equal(p1.Expires) {
		t.Errorf("rejoined with %+v, was %+v", p2, p1)
	}
	if err := g.SetKeys([][]byte{k2, k1}); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, look, gate.ErrInvalidContinuation) // void although its key is back
	if err := g.SetKeys(nil); err == nil {
		t.Error("an empty ring was taken")
	}
	mustFinish(t, g, with(c, p2, allow), `"deployed api"`)
	effects.want(t, 1)
}

// R22, R31: a rejoin from another session makes the former session's token void, and the other way
// round.
func TestRejoinFromAnotherSession(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p1 := mustAsk(t, g, c)
	moved := c
	moved.Session = "s2"
	p2 := mustAsk(t, g, moved)
	if p2.Interaction != p1.Interaction || p2.Token == p1.Token || !p2.Expires.Equal(p1.Expires) {
		t.Errorf("rejoined with %+v, was %+v", p2, p1)
	}
	mustFail(t, g, with(c, p1, allow), gate.ErrInvalidContinuation)
	stolen := with(c, p2, allow) // the new token in the old session
	mustFail(t, g, stolen, gate.ErrInvalidContinuation)
	mustFinish(t, g, with(moved, p2, allow), `"deployed api"`)
	effects.want(t, 1)
}

// R20, R26: an identical replay gets the same token after a restart, though none is stored.
func TestTokenIsDerived(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	tools := gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}}
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, open(t, store, tools), c)
	store.crash()
	record, err := store.Load(t.Context(), p.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record.Data, []byte(p.Token)) {
		t.Error("the token is stored")
	}
	c.Token = p.Token
	if again := mustAsk(t, open(t, store, tools), c); again.Token != p.Token {
		t.Error("after a restart the token is another")
	}
}
