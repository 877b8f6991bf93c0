package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A ratio is that of two benchmarks of the same run, and the median of them is held to the aim.
func TestRatios(t *testing.T) {
	input := `goos: linux
BenchmarkInteraction/store=mem/callers=1-2  1000  40000 ns/op  45000 cpu-ns/op  100 B/op  251 allocs/op
BenchmarkInteraction/store=bolt/callers=1-2  10  1100 ns/op
BenchmarkInteraction/store=raw/callers=1-2  10  1000 ns/op
BenchmarkInteraction/store=bolt/callers=1-2  10  2600 ns/op
BenchmarkInteraction/store=raw/callers=1-2  10  2000 ns/op
BenchmarkInteraction/store=bolt/callers=1-2  10  100 ns/op
BenchmarkInteraction/store=raw/callers=1-2  10  90 ns/op
BenchmarkGrowth/store=bolt/open=1000/op=raise-2  10  100 ns/op
BenchmarkGrowth/store=raw/open=1000/op=raise-2  10  50 ns/op
BenchmarkGrowth/store=bolt/open=10000/op=raise-2  10  300 ns/op
BenchmarkGrowth/store=raw/open=10000/op=raise-2  10  100 ns/op
PASS
`
	all, err := read(strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := write(&out, all); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"median least greatest aim",
		"one caller: time by that of two raw commits 1.11 1.10 1.30 at most 1.15 reached",
		"memstore, one caller: µs 40.00 40.00 40.00 at most 50 reached",
		"memstore, one caller: processor time, µs 45.00 45.00 45.00 at most 50 reached",
		"memstore, one caller: allocations 251 251 251 at most 250 missed",
		"raise, ns/op: growth from open=1000 to open=10000 3.00 3.00 3.00",
		"raise, ns/op: growth from open=1000 to open=10000, by bbolt's 1.50 1.50 1.50 at most 1.2 missed",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	if all, err := read(strings.NewReader("PASS\n")); err != nil || write(&out, all) == nil {
		t.Errorf("nothing was measured: %v, %v", all, err)
	}
}
