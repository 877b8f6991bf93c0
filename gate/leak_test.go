package gate_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/parley-go/parley/gate"
)

// leaks takes what the gates of this package's tests write for others to read: logs, errors with
// their causes, audit entries, events, outcomes as they print; and every token that they give out.
// TestMain looks at the end whether one of these is in one of those (R20, R38).
var leaks leakage

// A leakage holds of every text only what a token could be in.
type leakage struct {
	mu     sync.Mutex
	tokens map[string]bool
	runs   map[string]bool // of characters of which tokens are made
	texts  int
}

// token takes a token that was given out. It must not be found as it is, and not in hexadecimal.
func (l *leakage) token(t gate.Token) {
	if len(t) != gate.TokenLength {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tokens == nil {
		l.tokens = map[string]bool{}
	}
	l.tokens[string(t)] = true
	l.tokens[hex.EncodeToString([]byte(t))] = true
}

// text takes a text, or an error with all its causes.
func (l *leakage) text(v any) {
	switch v := v.(type) {
	case nil:
	case error:
		for err := error(v); err != nil; err = errors.Unwrap(err) {
			l.bytes(fmt.Appendf(nil, "%v %+v %#v", err, err, err))
		}
	default:
		l.bytes(fmt.Append(nil, v))
	}
}

// outcome takes the token of an outcome, and what the outcome looks like where it is printed.
func (l *leakage) outcome(o gate.Outcome) {
	if o.Prompt == nil {
		return
	}
	l.token(o.Prompt.Token)
	l.text(fmt.Sprintf("%+v %#v %+v %q", o, o, *o.Prompt, o.Prompt.Token))
	if text, err := json.Marshal(o); err == nil {
		l.bytes(text)
	}
}

// trail takes the audit trail of a gate.
func (l *leakage) trail(ctx context.Context, g *gate.Gate) {
	page, err := g.Audit(ctx, gate.AuditQuery{Limit: 1000})
	l.text(err)
	for _, e := range page.Entries {
		l.text(fmt.Sprintf("%+v", e))
	}
}

// overheard is an observer that is listened to.
type overheard struct{ gate.Observer }

func (o overheard) Observe(ctx context.Context, e gate.Event) {
	leaks.text(fmt.Sprintf("%+v", e))
	if o.Observer != nil {
		o.Observer.Observe(ctx, e)
	}
}

// Write makes it something to log to.
func (l *leakage) Write(text []byte) (int, error) {
	l.bytes(text)
	return len(text), nil
}

func (l *leakage) bytes(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[string]bool{}
	}
	l.texts++
	begin := 0
	for i := range len(text) + 1 {
		if i < len(text) && inToken(text[i]) {
			continue
		}
		if i-begin >= gate.TokenLength {
			l.runs[string(text[begin:i])] = true
		}
		begin = i + 1
	}
}

func inToken(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

// found returns the runs that hold a token.
func (l *leakage) found() (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, run := range slices.Sorted(maps.Keys(l.runs)) {
		for _, size := range []int{gate.TokenLength, 2 * gate.TokenLength} {
			for i := 0; i+size <= len(run); i++ {
				if l.tokens[run[i:i+size]] {
					found = append(found, run)
				}
			}
		}
	}
	return found
}

// verdict is the exit code of the tests, 1 where there is a leak. It tells the texts, which are not
// secret here, so that the place can be found.
func (l *leakage) verdict() int {
	found := l.found()
	for _, text := range found {
		fmt.Fprintf(os.Stderr, "a token is in what others can read: %s\n", text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.list").Value.String() == ""
	if whole && (len(l.tokens) == 0 || l.texts == 0) {
		fmt.Fprintln(os.Stderr, "no token or no text was looked at")
		return 1
	}
	return min(1, len(found))
}

// What the search would find, wherever it is, and that it finds nothing else.
func TestLeaksAreFound(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	secret := mustAsk(t, g, call("deploy", `{"service":"api"}`)).Token
	other := mustAsk(t, g, call("deploy", `{"service":"db"}`)).Token
	for name, leak := range map[string]func(l *leakage, text string){
		"log": func(l *leakage, text string) {
			slog.New(slog.NewTextHandler(l, nil)).Info("asked", "link", "/p?t="+text)
		},
		"log of bytes": func(l *leakage, text string) {
			slog.New(slog.NewJSONHandler(l, nil)).Info("asked", "t", []string{text})
		},
		"error":                  func(l *leakage, text string) { l.text(errors.New("refused " + text)) },
		"cause of an error":      func(l *leakage, text string) { l.text(fmt.Errorf("refused: %w", errors.New(text))) },
		"audit entry":            func(l *leakage, text string) { l.text(fmt.Sprintf("%+v", gate.Event{Scope: text})) },
		"among other characters": func(l *leakage, text string) { l.text("xx" + text + "yy") },
		"hexadecimal":            func(l *leakage, text string) { l.text(fmt.Sprintf("%x", text)) },
	} {
		var l leakage
		l.token(secret)
		leak(&l, string(other))
		if found := l.found(); len(found) > 0 {
			t.Errorf("%s: found %q, which is no token that it was given", name, found)
		}
		leak(&l, string(secret))
		if len(l.found()) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
