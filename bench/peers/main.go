package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// atMost ends a run that hangs; one with the default flags takes less than two minutes.
const atMost = 10 * time.Minute

type flags struct {
	plan
	langgraph string
	parley    string
	only      string
	count     int
}

func parseFlags() flags {
	f := flags{plan: plan{callers: []int{1, 8, 64}}}
	flag.IntVar(&f.rounds, "rounds", 3, "how often each peer is measured")
	flag.DurationVar(&f.duration, "time", 600*time.Millisecond, "how long one measurement takes")
	flag.DurationVar(&f.warmup, "warmup", 200*time.Millisecond, "how long each store is in use before it is measured")
	flag.DurationVar(&f.probe, "probe", 150*time.Millisecond, "how long the disk is probed before each measurement")
	flag.IntVar(&f.trials, "trials", 20, "how many questions get two answers, for each way")
	flag.StringVar(&f.dir, "dir", ".", "where the stores are made, on the disk to be measured")
	flag.StringVar(&f.langgraph, "langgraph", "langgraph", "where LangGraph is installed")
	flag.StringVar(&f.parley, "parley", "of this tree", "parley's version, to be printed")
	flag.StringVar(&f.only, "only", "", "with -count: the peer")
	flag.IntVar(&f.count, "count", 0, "do that many cycles with one caller and print nothing, for counting syncs")
	flag.Parse()
	return f
}

func run() (err error) {
	f := parseFlags()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	n := &node{dir: f.langgraph}
	defer func() {
		if stopping := n.stop(); err == nil {
			err = stopping
		}
	}()
	rows := peers(n)
	if f.dir, err = filepath.Abs(f.dir); err != nil { // the process of Node.js has a directory of its own
		return err
	}
	if f.dir, err = os.MkdirTemp(f.dir, "scratch-"); err != nil {
		return err
	}
	defer func() {
		if removing := os.RemoveAll(f.dir); err == nil {
			err = removing
		}
	}()
	if f.count > 0 {
		return f.justCycles(ctx, rows)
	}
	return f.compare(ctx, rows, n)
}

func peers(n *node) []*row {
	sqlite := func(synchronous, durability string) langgraph {
		return langgraph{node: n, saver: "sqlite", synchronous: synchronous, durability: durability}
	}
	return []*row{
		{peer: peer{"LangGraph JS, MemorySaver, durability async", false, langgraph{node: n, saver: "memory", durability: "async"}}},
		{peer: peer{"LangGraph JS, SqliteSaver as shipped, durability async", false, sqlite("", "async")}},
		{peer: peer{"LangGraph JS, SqliteSaver, durability sync", true, sqlite("FULL", "sync")}},
		{peer: peer{"LangGraph JS, SqliteSaver, durability exit", true, sqlite("FULL", "exit")}},
		{peer: peer{"eino, store in memory", false, einoInMemory()}},
		{peer: peer{"parley, memstore", false, parleyInMemory()}},
		{peer: peer{"parley, boltstore", true, parleyOnDisk()}},
	}
}

// justCycles is what strace looks at.
func (f flags) justCycles(ctx context.Context, rows []*row) error {
	i := slices.IndexFunc(rows, func(r *row) bool { return r.name == f.only })
	if i < 0 {
		return fmt.Errorf("there is no peer %q", f.only)
	}
	return f.inFresh(func(dir string) error {
		_, err := rows[i].bench.cycles(ctx, dir, load{callers: 1, count: f.count})
		return err
	})
}

func (f flags) compare(ctx context.Context, rows []*row, n *node) error {
	begin, busy := time.Now(), load1()
	probes, err := f.run(ctx, rows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.syncs = -1
		if r.skipped != nil {
			continue
		}
		syncs, err := countSyncs(ctx, []string{"-only", r.name, "-dir", f.dir, "-langgraph", f.langgraph}, f.dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "peers: syncs of %q: %v\n", r.name, err)
			continue
		}
		r.syncs = syncs
	}
	f.writeHead(ctx, begin, busy, probes, n)
	return writeTable(os.Stdout, f.plan, rows)
}

func (f flags) writeHead(ctx context.Context, begin time.Time, busy string, probes []float64, n *node) {
	fmt.Printf("%s, %s/%s, %d CPUs, load average %s before and %s after, took %v.\n", begin.Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), busy, load1(), time.Since(begin).Round(time.Second))
	fmt.Printf("%s.\n", strings.Join(f.versions(ctx, n), ", "))
	fmt.Printf("Medians of %d rounds of %v each; in parentheses the ratio to the fdatasyncs a second that a probe made right before.\n",
		f.rounds, f.duration)
	fmt.Printf("The probe: median %.0f, from %.0f to %.0f. Second answers: %d questions for each way.\n\n",
		median(probes), slices.Min(probes), slices.Max(probes), f.trials)
}

// load1 is the load average of the last minute, which tells whether the machine did other things
// too.
func load1() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
}

// versions names what was measured, as the build and the installed packages say.
func (f flags) versions(ctx context.Context, n *node) []string {
	versions := []string{"parley " + f.parley, strings.Replace(runtime.Version(), "go", "Go ", 1)}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			switch module.Path {
			case "github.com/cloudwego/eino", "github.com/bytedance/sonic", "go.etcd.io/bbolt":
				versions = append(versions, module.Path[strings.LastIndex(module.Path, "/")+1:]+" "+strings.TrimPrefix(module.Version, "v"))
			}
		}
	}
	packages := n.versions(ctx)
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		versions = append(versions, name+" "+packages[name])
	}
	if exec.Command("strace", "-V").Run() != nil {
		versions = append(versions, "no strace")
	}
	return versions
}
