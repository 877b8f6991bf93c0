// Command ratios reads what the benchmarks of this module printed, and prints the ratios that
// docs/performance.md speaks of, with what they are to be: make bench-ratios.
//
// A benchmark that ran several times is compared run by run with its floor, since a machine is not
// the same a minute later; the median of those ratios is printed, with the least and the greatest.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	runs, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if err := write(os.Stdout, runs); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

// runs are the values of each benchmark and unit, in the order of its runs.
type runs map[string][]float64

func key(benchmark, unit string) string { return benchmark + " " + unit }

var processors = regexp.MustCompile(`-\d+$`)

// read takes the lines of benchmarks, and passes over all others.
func read(from io.Reader) (runs, error) {
	all := runs{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
			}
			all[key(name, fields[i+1])] = append(all[key(name, fields[i+1])], value)
		}
	}
	return all, lines.Err()
}

// write prints a row for each aim whose benchmarks are there.
func write(to io.Writer, all runs) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tmedian\tleast\tgreatest\taim\t")
	rows := 0
	for _, a := range aims {
		values := a.of(all)
		if len(values) == 0 {
			continue
		}
		rows++
		slices.Sort(values)
		median := values[len(values)/2]
		verdict := ""
		switch {
		case a.text() == "":
		case a.reached(median):
			verdict = "reached"
		default:
			verdict = "missed"
		}
		least, greatest := values[0], values[len(values)-1]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", a.what, number(median), number(least), number(greatest), a.text(), verdict)
	}
	if rows == 0 {
		return fmt.Errorf("no benchmark that has an aim was in the input")
	}
	return table.Flush()
}

func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
