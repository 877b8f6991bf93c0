package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/crash"
	"github.com/parley-go/parley/internal/pgtest"
	"github.com/parley-go/parley/interrupt"
)

// replicaChild names the variable that makes the test binary a replica: a process with a gate on
// the database at the URL it names, which serves requests until it is killed.
const (
	replicaChild  = "GATE_TEST_REPLICA_OF"
	replicaSchema = "GATE_TEST_REPLICA_SCHEMA"
	replicaEffect = "GATE_TEST_REPLICA_EFFECTS"
)

// replicaRounds is how often each interaction asks.
const replicaRounds = 3

// A replicaRequest is a call; its answer is to the prompt of its token.
type replicaRequest struct {
	Tool, Work, Token, Question string
	Choice                      int
}

type replicaReply struct {
	Result, Token, Question string
	Round                   int
	Code                    gate.Code
}

func replicaTools(effects string) (tools []*gate.Tool) {
	for _, replay := range []gate.Replay{gate.NeverAgain, gate.Repeatable, gate.Recover} {
		tools = append(tools, gate.NewTool(fmt.Sprint(replay), func(ctx context.Context, in struct{ Work string }) (string, error) {
			if r, _ := interrupt.ResumeFrom(ctx); r.Recovery {
				return "recovered", nil
			}
			for n := range replicaRounds {
				if _, err := interrupt.Ask(ctx, choose("0", "1", fmt.Sprint("of round ", n))); err != nil {
					return "", err
				}
			}
			return "done", stepsJournal{path: effects}.add("%s", in.Work)
		}, &gate.ToolOptions{Replay: replay}))
	}
	return tools
}

// replica serves requests until it is killed.
func replica(url string) int {
	ctx := context.Background()
	fatal := func(err error) int { fmt.Fprintln(os.Stderr, err); return 1 }
	open := func() (*pgstore.Store, error) {
		return pgstore.Open(ctx, url, &pgstore.Options{
			Schema: os.Getenv(replicaSchema), Connections: 6, Lapse: 1500 * time.Millisecond, Timeout: time.Second,
			Logger: slog.New(slog.DiscardHandler),
		})
	}
	store, err := open()
	for range 100 { // the database is restarted meanwhile, too
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		store, err = open()
	}
	if err != nil {
		return fatal(err)
	}
	g, err := gate.Open(ctx, store, &gate.Options{
		Tools: replicaTools(os.Getenv(replicaEffect)), Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fatal(err)
	}
	err = crash.Serve(os.Stdin, os.Stdout, func(body json.RawMessage) any {
		var in replicaRequest
		if err := json.Unmarshal(body, &in); err != nil {
			return replicaReply{Code: "malformed"}
		}
		c := call(in.Tool, fmt.Sprintf(`{"Work":%q}`, in.Work))
		c.StartID, c.Token = in.Work, gate.Token(in.Token)
		if in.Question != "" {
			c.Answers = gate.Answers{in.Question: fmt.Appendf(nil, `{"selectionIdx":%d}`, in.Choice)}
		}
		outcome, err := g.Invoke(ctx, c)
		reply := replicaReply{Result: string(outcome.Result)}
		var e *gate.Error
		if errors.As(err, &e) {
			reply.Code = e.Code
		}
		if p := outcome.Prompt; p != nil {
			reply.Token, reply.Round, reply.Question = string(p.Token), p.Round, p.Questions[0].ID
		}
		return reply
	})
	return fatal(err)
}

// A fleet is replicas that are killed and come again.
type fleet struct {
	t   *testing.T
	env []string

	mu       sync.Mutex
	replicas []*crash.Child
	kills    int
}

func (f *fleet) start() *crash.Child {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), f.env...), os.Stderr
	child, err := crash.Start(cmd)
	if err != nil {
		f.t.Error(err)
	}
	return child
}

func (f *fleet) replica(n int) *crash.Child {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replicas[n%len(f.replicas)]
}

// kill kills one replica and starts another in its place.
func (f *fleet) kill(n int) {
	child := f.start()
	f.mu.Lock()
	gone := f.replicas[n]
	f.replicas[n] = child
	f.kills++
	f.mu.Unlock()
	if err := gone.Kill(); err != nil {
		f.t.Error(err)
	}
}

// A client works one interaction off, at any replica.
type client struct {
	fleet        *fleet
	tool, work   string
	random       *rand.Rand
	acknowledged map[int]int // the choice that was taken, by round
	end          string
}

func (c *client) call(replica int, in replicaRequest) replicaReply {
	in.Tool, in.Work = c.tool, c.work
	var reply replicaReply
	if err := c.fleet.replica(replica).Call(in, &reply); err != nil {
		return replicaReply{Code: gate.ErrUnavailable} // it died: its answer is not known
	}
	return reply
}

// together sends the requests to different replicas in the same moment.
func (c *client) together(in ...replicaRequest) []replicaReply {
	replies := make([]replicaReply, len(in))
	var all sync.WaitGroup
	first := c.random.IntN(3)
	for i := range in {
		all.Go(func() { replies[i] = c.call(first+i, in[i]) })
	}
	all.Wait()
	return replies
}

// run goes through the rounds, each of which is answered twice alike and once otherwise in one
// moment. It returns how the interaction ended.
func (c *client) run(until time.Time) (string, error) {
	prompt := replicaReply{}
	for time.Now().Before(until) {
		if prompt.Token == "" {
			reply := c.call(c.random.IntN(3), replicaRequest{})
			switch {
			case reply.Token != "":
				prompt = reply
			case !reply.Code.Retryable():
				return fmt.Sprint(reply.Code, reply.Result), nil
			default:
				time.Sleep(20 * time.Millisecond)
			}
			continue
		}
		choice := c.random.IntN(2)
		same := replicaRequest{Token: prompt.Token, Question: prompt.Question, Choice: choice}
		other := same
		other.Choice = 1 - choice
		sent := []replicaRequest{same, same, other}
		next := replicaReply{}
		for i, reply := range c.together(sent...) {
			took := reply.Token != "" || reply.Result != ""
			if took {
				if before, ok := c.acknowledged[prompt.Round]; ok && before != sent[i].Choice {
					return "", fmt.Errorf("round %d: two different answers were taken", prompt.Round)
				}
				c.acknowledged[prompt.Round] = sent[i].Choice
			}
			switch {
			case reply.Result != "":
				return "finished", nil
			case reply.Round > prompt.Round:
				next = reply
			case !took && reply.Code != gate.ErrAnswerConflict && !reply.Code.Retryable():
				return string(reply.Code), nil
			}
		}
		prompt = next // or, where nobody knows, whatever the start id leads to
	}
	return "", errors.New("it did not end in time")
}

// The replica test: several replicas on one database, which are killed at random, and a database
// that crashes once; the same and other answers go to different replicas in one moment. No handler
// runs again but as R27 allows, no acknowledged answer is lost, and every interaction ends (R23,
// R25, R27, R28). GATE_TEST_REPLICA_WORK is how many interactions there are; 60 is what CI has time
// for.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	count := 60
	if n, err := strconv.Atoi(os.Getenv("GATE_TEST_REPLICA_WORK")); err == nil {
		count = n
	}
	server := pgtest.Private(t)
	schema := newSchema(t, server.URL())
	effects := filepath.Join(t.TempDir(), "effects")
	f := &fleet{t: t, env: []string{replicaChild + "=" + server.URL(), replicaSchema + "=" + schema, replicaEffect + "=" + effects}}
	for range 3 {
		f.replicas = append(f.replicas, f.start())
	}
	var mu sync.Mutex
	var clients []*client
	ends := map[string]int{}
	work := make(chan int)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for n := range work {
				tool := []gate.Replay{gate.NeverAgain, gate.Repeatable, gate.Recover}[n%3]
				c := &client{f, fmt.Sprint(tool), fmt.Sprint("work-", n), rand.New(rand.NewPCG(1, uint64(n))), map[int]int{}, ""}
				var err error
				if c.end, err = c.run(time.Now().Add(2 * time.Minute)); err != nil {
					t.Errorf("%s: %v", c.work, err)
				}
				mu.Lock()
				clients = append(clients, c)
				ends[c.end]++
				mu.Unlock()
			}
		})
	}
	for n := range count {
		work <- n
		switch {
		case n == count/2:
			if err := errors.Join(server.Kill(), server.Restart()); err != nil {
				t.Error(err)
			}
		case n%7 == 6:
			f.kill(n % 3)
		}
	}
	close(work)
	workers.Wait()
	for n := range f.replicas {
		f.kill(n)
	}
	for _, child := range f.replicas {
		if err := child.Kill(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d kills; ends: %v", f.kills, ends)
	f.verify(clients, server.URL(), schema, effects)
}

// verify holds what the database has against what clients were told and the world saw.
func (f *fleet) verify(clients []*client, url, schema, effects string) {
	t := f.t
	store := openPostgres(t, url, schema)
	g := open(t, store, gate.Options{Tools: replicaTools(effects)})
	lines, err := stepsJournal{path: effects}.lines()
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, line := range lines {
		times[strings.Join(line, " ")]++
	}
	entries := auditPerInteraction(t, store)
	for _, c := range clients {
		if n := times[c.work]; n > 1 && (c.tool != fmt.Sprint(gate.Repeatable) || n > 1+f.kills) {
			t.Errorf("%s: tool %s had its effect %d times", c.work, c.tool, n)
		} else if n == 0 && c.end == "finished" && c.tool != fmt.Sprint(gate.Recover) { // which may finish without
			t.Errorf("%s: tool %s finished, and had no effect", c.work, c.tool)
		}
		s, err := g.Inspect(t.Context(), "ann", c.work)
		if err != nil {
			t.Errorf("%s: %v", c.work, err)
			continue
		}
		in := recorded(t, store, s.ID)
		for round, choice := range c.acknowledged {
			if !strings.Contains(string(in.Rounds[round-1].Answer.Payloads[0]), fmt.Sprintf(`"selectionIdx":%d`, choice)) {
				t.Errorf("%s: round %d has another answer than was acknowledged: %s", c.work, round, in.Rounds[round-1].Answer.Payloads[0])
			}
		}
		if n := entries[in.ID]; uint64(n) != in.Revision {
			t.Errorf("%s: %d audit entries for %d transitions", c.work, n, in.Revision)
		}
	}
}

// auditPerInteraction counts the entries of the audit trail, which has no holes.
func auditPerInteraction(t *testing.T, store checkpoint.Store) map[checkpoint.ID]int {
	t.Helper()
	counts := map[checkpoint.ID]int{}
	for after := uint64(0); ; {
		page, err := store.Audit(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return counts
		}
		for _, stored := range page {
			if after++; stored.Seq != after {
				t.Fatalf("audit entry %d follows %d", stored.Seq, after-1)
			}
			e, err := checkpoint.DecodeEntry(stored.Data)
			if err != nil {
				t.Fatal(err)
			}
			counts[e.Interaction]++
		}
	}
}
