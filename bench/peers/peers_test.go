package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	taken, other, refused := reply{Value: "blue"}, reply{Value: "green"}, reply{Refused: "answer_conflict"}
	for _, tt := range []struct {
		name string
		when occasion
		seen []trial
		want string
	}{
		{"both taken", atOnce, []trial{{[]reply{taken, other}, 2}}, "both without error, 2 effects"},
		{"one refused", atOnce, []trial{{[]reply{refused, other}, 1}, {[]reply{taken, refused}, 1}},
			"1 without error, 1 `answer_conflict`, 1 effect"},
		{"both refused", atOnce, []trial{{[]reply{refused, {Refused: "busy"}}, 0}}, "0 without error, 2 `answer_conflict` `busy`, 0 effects"},
		{"late, taken", late, []trial{{[]reply{taken, other}, 2}}, "no error, result green, 2 effects"},
		{"late, swallowed", late, []trial{{[]reply{taken, taken}, 1}}, "no error, result blue, 1 effect"},
		{"late, refused", late, []trial{{[]reply{taken, refused}, 1}}, "`answer_conflict`, 1 effect"},
		{"not always the same", atOnce, []trial{{[]reply{taken, refused}, 1}, {[]reply{taken, other}, 2}, {[]reply{taken, other}, 2}},
			"2×: both without error, 2 effects; 1×: 1 without error, 1 `answer_conflict`, 1 effect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if have := verdicts(tt.seen, tt.when); have != tt.want {
				t.Errorf("have %q, want %q", have, tt.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		series []float64
		want   float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3},
	} {
		if have := median(tt.series); have != tt.want {
			t.Errorf("median of %v: have %v, want %v", tt.series, have, tt.want)
		}
	}
}

// The peers that need nothing installed go through the whole program. What parley says of a second
// answer is its rule (R26, R27, R28); what eino does is seen, not asked for.
func TestWholeRun(t *testing.T) {
	p := plan{
		callers: []int{1, 8}, rounds: 2, trials: 3, warmup: time.Millisecond, duration: 20 * time.Millisecond, probe: time.Millisecond,
		dir: t.TempDir(),
	}
	rows := peers(&node{dir: t.TempDir()})
	probes, err := p.run(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	if len(probes) == 0 || median(probes) <= 0 {
		t.Errorf("the disk was not probed: %v", probes)
	}
	for _, r := range rows {
		if strings.HasPrefix(r.name, "LangGraph") {
			if r.skipped == nil {
				t.Errorf("%s is not installed, and was not skipped", r.name)
			}
			continue
		}
		if r.skipped != nil {
			t.Errorf("%s was skipped: %v", r.name, r.skipped)
			continue
		}
		for i, c := range r.cells {
			if len(c.rates) != p.rounds || median(c.rates) <= 0 || median(c.ratios) <= 0 {
				t.Errorf("%s, %d callers: measured %+v", r.name, p.callers[i], c)
			}
		}
		if !strings.HasPrefix(r.name, "parley") {
			continue
		}
		for when, want := range map[occasion]string{
			atOnce: "1 without error, 1 `answer_conflict`, 1 effect",
			late:   "`answer_conflict`, 1 effect",
			again:  "`already_completed`, 1 effect",
		} {
			if have := r.second[when]; have != want {
				t.Errorf("%s, second answer %s: have %q, want %q", r.name, when, have, want)
			}
		}
	}
	var table strings.Builder
	if err := writeTable(&table, p, rows); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(table.String(), "\n"); lines != len(rows)+2 {
		t.Errorf("the table has %d lines, want %d:\n%s", lines, len(rows)+2, table.String())
	}
}
