package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// writeTable writes the rows as one Markdown table that can also be read as it is.
func writeTable(w io.Writer, p plan, rows []*row) error {
	head := []string{"peer", "store", "durable to power loss", "syncs a cycle"}
	for _, n := range p.callers {
		head = append(head, fmt.Sprintf("cycles/s, callers: %d", n))
	}
	head = append(head, "two different answers at once", "a different answer later", "the same answer later")
	lines := [][]string{head}
	for _, r := range rows {
		lines = append(lines, r.columns(len(head)))
	}
	width := make([]int, len(head))
	for _, line := range lines {
		for i, text := range line {
			width[i] = max(width[i], utf8.RuneCountInString(text))
		}
	}
	var out strings.Builder
	for n, line := range lines {
		for i, text := range line {
			fmt.Fprintf(&out, "| %s%s ", text, strings.Repeat(" ", width[i]-utf8.RuneCountInString(text)))
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, w := range width {
				out.WriteString("| " + strings.Repeat("-", w) + " ")
			}
			out.WriteString("|\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *row) columns(count int) []string {
	if r.skipped != nil {
		text := []string{r.name, "skipped: " + strings.ReplaceAll(r.skipped.Error(), "|", "/")}
		return slices.Concat(text, slices.Repeat([]string{""}, count-len(text)))
	}
	syncs := "not counted"
	if r.syncs >= 0 {
		syncs = fmt.Sprintf("%.1f", r.syncs)
	}
	text := []string{r.name, r.setting, r.keeps(), syncs}
	for _, c := range r.cells {
		text = append(text, fmt.Sprintf("%.0f (%.2f)", median(c.rates), median(c.ratios)))
	}
	return append(text, r.second[atOnce], r.second[late], r.second[again])
}

// keeps says whether a question and its answer survive a power loss. Settings that promise it do
// not count where fewer syncs were seen than one for the question and one for the answer.
func (r *row) keeps() string {
	if r.durable && (r.syncs < 0 || r.syncs >= 2) {
		return "yes"
	}
	return "no"
}
