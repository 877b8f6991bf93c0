package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint/boltstore"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/pgtest"
)

var interactions = flag.Int("interactions", 150, "how many interactions the tests of replicas have; make replicas has 2000")

// leash ends a process of the server whose input ends, as it does when the test is gone.
func leash() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// Three processes of this command on one database, and a client of MCP that goes round them: random
// processes are killed at any moment, and the database crashes once; the same and other answers
// reach different replicas in the same moment. No handler runs again but as R27 allows, no answer
// that was acknowledged is lost, every interaction ends or is open to its person, and the audit
// trail has no holes (R23, R25, R27, R28, R38).
func TestReplicas(t *testing.T) {
	server := pgtest.Private(t)
	if err := pgstore.Migrate(t.Context(), server.URL(), nil); err != nil {
		t.Fatal(err)
	}
	x := newExperiment(t, 3, []string{"PARLEY_POSTGRES=" + server.URL()}, "-lapse", "3s")
	x.run(func() error {
		if err := server.Kill(); err != nil {
			return err
		}
		return server.Restart()
	})
	x.end()
	s, err := pgstore.Open(t.Context(), server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x.verify(s)
}

// The same with one process and a file. It is killed, and the next one goes on.
func TestOneProcess(t *testing.T) {
	x := newExperiment(t, 1, nil)
	x.run(nil)
	x.end()
	s, err := boltstore.Open(x.file("ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x.verify(s)
}

// An experiment is many clients of one server, whatever happens to its processes.
type experiment struct {
	*testing.T
	dir      string
	replicas *replicas
	clients  []*client
}

func newExperiment(t *testing.T, processes int, env []string, args ...string) *experiment {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	x := &experiment{T: t, dir: t.TempDir()}
	if err := os.WriteFile(x.file("users"), []byte("the-token-of-ann ann\nthe-token-of-bob bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.KeyFile(x.file("tokens.key")); err != nil { // one for all
		t.Fatal(err)
	}
	args = append(args, "-http", "localhost:0", "-tokens", x.file("users"), "-journal", x.file("journal"))
	x.replicas = startReplicas(t, processes, func() *exec.Cmd {
		cmd := command(x.dir, args...)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	})
	return x
}

func (x *experiment) file(name string) string { return filepath.Join(x.dir, name) }

// clientsAtOnce is how many there are at a time, and killAfter after how many interactions a process
// is killed.
const (
	clientsAtOnce = 16
	killAfter     = 7
)

// run works the interactions off. Most are onboardings, which ask in four rounds and are repeatable;
// some are deployments, which ask once and never run again.
func (x *experiment) run(halfway func() error) {
	random := rand.New(rand.NewPCG(1, 2))
	work := make(chan *client)
	var workers sync.WaitGroup
	for range clientsAtOnce {
		workers.Go(func() {
			for c := range work {
				if err := c.run(time.Now().Add(time.Minute)); err != nil {
					x.Errorf("%s %s: %v", c.tool, c.on, err)
				}
			}
		})
	}
	for n := range *interactions {
		c := &client{
			replicas: x.replicas, user: []string{"ann", "bob"}[n%2], tool: "onboard", on: fmt.Sprint("work-", n),
			random: rand.New(rand.NewPCG(3, uint64(n))), taken: map[int]int{},
		}
		if n%4 == 3 {
			c.tool = "deploy"
		}
		x.clients = append(x.clients, c)
		work <- c
		if n%killAfter == killAfter-1 {
			x.replicas.kill(random.IntN(len(x.replicas.list)))
		}
		if halfway != nil && n == *interactions/2 {
			if err := halfway(); err != nil {
				x.Error(err)
			}
		}
	}
	close(work)
	workers.Wait()
}

// end repeats what every client sent last: a mark of its end that was lost is made up for by that
// (R25), and what ended stays so. Then it ends the processes, which takes their last marks along.
func (x *experiment) end() {
	ends := map[string]int{}
	for _, c := range x.clients {
		ends[fmt.Sprint(c.tool, " ", c.end.kind())]++
		if c.last.prompt.state == "" { // it failed
			continue
		}
		c.repeat(time.Now().Add(time.Minute))
	}
	for _, one := range x.replicas.list {
		x.replicas.check(one.stop())
	}
	x.replicas.list = nil
	x.Logf("%d processes were killed; ends: %v", x.replicas.kills, ends)
	if ends["onboard result"] < len(x.clients)/2 || ends["deploy result"] == 0 || x.replicas.kills == 0 {
		x.Error("that is too little to tell anything")
	}
}
