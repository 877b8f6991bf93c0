package boltstore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

// childFile names the variable that makes the test binary a process that commits to the file it
// names until it is killed, and childRound the one that says how many such processes there were
// before.
const (
	childFile    = "BOLTSTORE_TEST_COMMIT_TO"
	childRound   = "BOLTSTORE_TEST_ROUND"
	childWriters = 8
)

// commitUntilKilled creates records, and lazily writes them once more, from several goroutines,
// with rows and audit entries. It prints the number of each record whose creation was acknowledged.
func commitUntilKilled(path string) int {
	round, err := strconv.Atoi(os.Getenv(childRound))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := boltstore.Open(path, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	var wg sync.WaitGroup
	for writer := range childWriters {
		wg.Go(func() {
			for n := round*1_000_000 + writer; ; n += childWriters {
				r := record(n, 1)
				r.Start = checkpoint.Hash{1, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
				r.Due = time.UnixMilli(int64(n + 1))
				first := put(r)
				first.Rows = []checkpoint.RowPut{{Row: checkpoint.Row{ID: r.ID, Name: "row", Data: []byte("row")}}}
				first.Audit = [][]byte{[]byte(strconv.Itoa(n))}
				if err := s.Commit(context.Background(), first); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				os.Stdout.WriteString(strconv.Itoa(n) + "\n")
				r.Status, r.Revision = checkpoint.Finished, 2
				second := lazily(put(r))
				second.Rows = []checkpoint.RowPut{{Row: checkpoint.Row{ID: r.ID, Name: "row"}}}
				second.Audit = [][]byte{[]byte("finished")}
				if err := s.Commit(context.Background(), second); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return 1
}

func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	path := newPath(t)
	acknowledged := make(map[int]bool)
	for round := range 10 {
		runAndKill(t, path, round, acknowledged)
		s, err := boltstore.Open(path, nil)
		if err != nil {
			t.Fatalf("kill %d: open: %v", round, err)
		}
		check(t, s)
		entries := auditOf(t, s)
		for n := range acknowledged {
			r, err := s.Load(t.Context(), idOf(n))
			if err != nil {
				t.Fatalf("kill %d: acknowledged record %d: %v", round, n, err)
			}
			rows, err := s.Rows(t.Context(), idOf(n), "", 10)
			if want := 2 - int(r.Revision); err != nil || len(rows) != want || !entries[strconv.Itoa(n)] {
				t.Fatalf("kill %d: record %d at revision %d: %d rows, error %v, want %d; audit entry %t", round, n, r.Revision,
					len(rows), err, want, entries[strconv.Itoa(n)])
			}
		}
		shut(t, s)
	}
	t.Logf("%d records acknowledged over 10 kills", len(acknowledged))
}

// auditOf returns all audit entries, and fails the test where their numbers have a gap.
func auditOf(t *testing.T, s *boltstore.Store) map[string]bool {
	t.Helper()
	entries := make(map[string]bool)
	for after := uint64(0); ; {
		page, err := s.Audit(t.Context(), after, 1000)
		if err != nil {
			t.Fatalf("audit: %v", err)
		}
		for _, entry := range page {
			if after++; entry.Seq != after {
				t.Fatalf("audit: number %d, want %d", entry.Seq, after)
			}
			entries[string(entry.Data)] = true
		}
		if len(page) == 0 {
			return entries
		}
	}
}

// runAndKill kills a process at a random moment after its first acknowledged commit, and notes what
// it acknowledged.
func runAndKill(t *testing.T, path string, round int, acknowledged map[int]bool) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), childFile+"="+path, childRound+"="+strconv.Itoa(round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// What was printed before the kill is read to its end afterwards.
	limit := 1 + rand.IntN(400)
	lines := 0
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if n, err := strconv.Atoi(scanner.Text()); err == nil {
			acknowledged[n] = true
		}
		if lines++; lines == limit {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if lines < limit {
		t.Fatalf("the process ended by itself after %d commits", lines)
	}
}
