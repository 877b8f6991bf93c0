package main

import (
	"fmt"
	"slices"
	"strings"
)

// verdict says in one line what became of a question that was answered twice.
func (t trial) verdict(when occasion) string {
	effects := fmt.Sprintf("%d effects", t.Effects)
	if t.Effects == 1 {
		effects = "1 effect"
	}
	if when != atOnce {
		second := t.Replies[len(t.Replies)-1]
		if second.Refused != "" {
			return fmt.Sprintf("`%s`, %s", second.Refused, effects)
		}
		return fmt.Sprintf("no error, result %s, %s", second.Value, effects)
	}
	var refused []string
	for _, r := range t.Replies {
		if r.Refused != "" {
			refused = append(refused, "`"+r.Refused+"`")
		}
	}
	if len(refused) == 0 {
		return "both without error, " + effects
	}
	slices.Sort(refused)
	return fmt.Sprintf("%d without error, %d %s, %s", len(t.Replies)-len(refused), len(refused), strings.Join(refused, " "), effects)
}

// verdicts says what became of all of them: one line where it was always the same, else each with
// how often it was so, the most frequent first.
func verdicts(seen []trial, when occasion) string {
	times := map[string]int{}
	var lines []string
	for _, t := range seen {
		line := t.verdict(when)
		if times[line] == 0 {
			lines = append(lines, line)
		}
		times[line]++
	}
	if len(lines) == 1 {
		return lines[0]
	}
	slices.SortStableFunc(lines, func(a, b string) int { return times[b] - times[a] })
	for i, line := range lines {
		lines[i] = fmt.Sprintf("%d×: %s", times[line], line)
	}
	return strings.Join(lines, "; ")
}
