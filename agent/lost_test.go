package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

// A lapsing store loses touch with the first that joined it.
type lapsing struct {
	*memstore.Store
	first *lapsingMember
}

type lapsingMember struct {
	checkpoint.Member
	lapsed chan struct{}
}

func (m *lapsingMember) Lapsed() <-chan struct{} { return m.lapsed }

func (s *lapsing) Join(ctx context.Context, proposed checkpoint.Ledger) (checkpoint.Ledger, checkpoint.Member, error) {
	ledger, member, err := s.Store.Join(ctx, proposed)
	if s.first != nil {
		return ledger, member, err
	}
	s.first = &lapsingMember{member, make(chan struct{})}
	return ledger, s.first, err
}

func (s *lapsing) lapse(t *testing.T) {
	t.Helper()
	if err := s.first.Leave(); err != nil {
		t.Fatal(err)
	}
	close(s.first.lapsed)
}

// A thinking model does not answer before its context ends.
type thinking struct {
	*scripted.Model
	begun chan struct{}
}

func (m *thinking) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

func (m *thinking) Generate(ctx context.Context, _ []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	close(m.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *thinking) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	_, err := m.Generate(ctx, in, opts...)
	return nil, err
}

// R23: a run that its process lost breaks off its model at once; another process goes on with it.
func TestLostRunBreaksOffItsModel(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var effects atomic.Int64
			store := &lapsing{Store: memstore.New()}
			slow := &thinking{begun: make(chan struct{})}
			first := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: slow, streaming: streaming})
			second := open(t, store, worldOptions{
				tools: []*gate.Tool{deploy(&effects, nil)}, model: after(deploying("a")), streaming: streaming,
			})
			type end struct {
				run *agent.Run
				err error
			}
			ended := make(chan end, 1)
			go func() {
				run, err := first.agent.Start(context.Background(), releaseIt).Run()
				ended <- end{run, err}
			}()
			<-slow.begun
			store.lapse(t)
			e := <-ended
			if wantCode(t, "the run that was lost", e.err, gate.ErrBusy); !errors.Is(e.err, context.Canceled) {
				t.Errorf("have %v", e.err)
			}
			run := second.resume(e.run.ID)
			wantWaiting(t, run, "a")
			if ended := second.resume(run.ID, to(run.Questions[0], allow)); ended.Status != agent.Finished || effects.Load() != 1 {
				t.Errorf("%+v", ended)
			}
			first.close()
			second.close()
		})
	}
}

// R23: a tool of a run that its process lost is broken off, and whoever goes on with the run knows
// that it may have had its effect.
func TestLostRunBreaksOffItsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lapsing{Store: memstore.New()}
		running := make(chan struct{})
		slow := gate.NewTool("deploy", func(ctx context.Context, _ deployInput) (string, error) {
			close(running)
			<-ctx.Done()
			return "", ctx.Err()
		}, nil)
		var effects atomic.Int64
		m := after(deploying("a"))
		first := open(t, store, worldOptions{tools: []*gate.Tool{slow}, model: m})
		second := open(t, store, worldOptions{tools: []*gate.Tool{deploy(&effects, nil)}, model: m})
		ended := make(chan error, 1)
		var id checkpoint.ID
		go func() {
			run, err := first.agent.Start(context.Background(), releaseIt).Run()
			id = run.ID
			ended <- err
		}()
		<-running
		store.lapse(t)
		wantCode(t, "the run that was lost", <-ended, gate.ErrBusy)
		run := second.resume(id)
		if run.Status != agent.Finished || effects.Load() != 0 {
			t.Errorf("%+v", run)
		}
		first.close()
		second.close()
	})
}
