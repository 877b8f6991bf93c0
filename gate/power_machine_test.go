package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

const (
	effectsEnv = "GATE_TEST_EFFECTS" // the file of effects, which is not on the machine's disk
	lazyEnv    = "GATE_TEST_LAZY"    // set: no answer is durable when it is acknowledged
)

// A powerOrder is what a machine with a gate is told to do: one of these.
type powerOrder struct {
	Call   *gate.Call          `json:",omitempty"`
	Token  gate.Token          // of Call, which leaves it out of its JSON form
	Answer *gate.AnswerRequest `json:",omitempty"`
	Check  bool
	Reopen bool
}

type powerReply struct {
	Prompt  *gate.Prompt
	Token   gate.Token // of Prompt
	Result  json.RawMessage
	Code    gate.Code // or the text of any other error
	Message string
}

// serveGate is the machine's side.
func serveGate(dir string) (func(json.RawMessage) any, error) {
	m := &machine{dir: dir}
	if err := m.open(); err != nil {
		return nil, err
	}
	return func(body json.RawMessage) any {
		var o powerOrder
		var r powerReply
		err := json.Unmarshal(body, &o)
		if err == nil {
			err = m.do(o, &r)
		}
		var e *gate.Error
		if errors.As(err, &e) {
			r.Code, r.Message = e.Code, e.Message
		} else if err != nil {
			r.Code = gate.Code(err.Error())
		}
		return r
	}, nil
}

type machine struct {
	dir   string
	store *boltstore.Store
	gate  *gate.Gate
}

func (m *machine) open() (err error) {
	if m.store, err = boltstore.Open(filepath.Join(m.dir, "ledger.db"), &boltstore.Options{IdleFlush: time.Hour}); err != nil {
		return err
	}
	var store checkpoint.Store = m.store
	if os.Getenv(lazyEnv) != "" {
		store = lazyStore{m.store}
	}
	m.gate, err = gate.Open(context.Background(), store, &gate.Options{
		Tools: []*gate.Tool{gate.NewTool("deploy", deployOnMachine, nil)}, Keys: [][]byte{testKey},
		Lifetime: gate.NoExpiry, Logger: slog.New(slog.DiscardHandler),
	})
	return err
}

func (m *machine) do(o powerOrder, r *powerReply) error {
	ctx := context.Background()
	switch {
	case o.Answer != nil:
		return m.gate.Answer(ctx, *o.Answer)
	case o.Check:
		return m.store.Check(ctx)
	case o.Reopen:
		// What could not be written is told by Close, and is nothing that was acknowledged.
		_ = errors.Join(m.gate.Close(ctx), m.store.Close())
		return m.open()
	}
	o.Call.Token = o.Token
	outcome, err := m.gate.Invoke(ctx, *o.Call)
	if r.Prompt, r.Result = outcome.Prompt, outcome.Result; r.Prompt != nil {
		r.Token = r.Prompt.Token
	}
	return err
}

// A lazyStore acknowledges what the disk does not have yet.
type lazyStore struct{ *boltstore.Store }

func (s lazyStore) Commit(ctx context.Context, b *checkpoint.Batch) error {
	lazy := *b
	lazy.Lazy = true
	return s.Store.Commit(ctx, &lazy)
}

type machineInput struct {
	Name    string `json:"name"`
	Twice   bool   `json:"twice,omitempty"`
	Ballast string `json:"ballast,omitempty"`
}

// deployOnMachine asks once or twice. Its effect is a line in a file that keeps it when the power
// is cut.
func deployOnMachine(ctx context.Context, in machineInput) (string, error) {
	if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy "+in.Name)); err != nil {
		return "", err
	}
	if in.Twice {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Really deploy "+in.Name)); err != nil {
			return "", err
		}
	}
	f, err := os.OpenFile(os.Getenv(effectsEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(in.Name + "\n")
	return "deployed", errors.Join(err, f.Close())
}
