package main

import (
	"fmt"
	"slices"
	"strings"
)

// An aim is a ratio of two benchmarks, or a value of one, and what it is to be at most or at least.
type aim struct {
	what        string
	unit        string // default: ns/op
	above       string // the benchmark whose value is above the line
	below       string // the one below it; empty: the value itself
	first, then string // where set: how above grows from the one size to the other, and so below
	most        float64
	least       float64
}

const (
	one   = "Interaction/store=bolt/callers=1"
	many  = "Interaction/store=bolt/callers=64"
	mem   = "Interaction/store=mem/callers=1"
	raw   = "Interaction/store=raw/callers="
	disk  = "Interaction/store=disk/callers=1"
	once  = "Once/store="
	small = "open=1000/"
	big   = "open=1000000/"
	mid   = "open=10000/"
)

var aims = append([]aim{
	{what: "one caller: time by that of two raw commits", above: one, below: raw + "1", most: 1.15},
	{what: "one caller: rate by that of four syncs", above: disk, below: one, least: 0.7},
	{what: "four syncs, µs: its spread is the machine's", above: disk},
	{what: "two raw commits: rate by that of four syncs", above: disk, below: raw + "1"},
	{what: "8 callers: rate by raw grouped", above: raw + "8", below: "Interaction/store=bolt/callers=8"},
	{what: "64 callers: rate by raw grouped", above: raw + "64", below: many, least: 0.8},
	{what: "256 callers: rate by raw grouped", above: raw + "256", below: "Interaction/store=bolt/callers=256"},
	{what: "64 callers: rate by one caller's", above: one, below: many, least: 10},
	{what: "64 callers: processor time, µs", unit: "cpu-ns/op", above: many},
	{what: "raw grouped, 64 callers: processor time, µs", unit: "cpu-ns/op", above: raw + "64"},
	{what: "memstore, one caller: µs", above: mem, most: 50},
	{what: "memstore, one caller: processor time, µs", unit: "cpu-ns/op", above: mem, most: 50},
	{what: "memstore, one caller: allocations", unit: "allocs/op", above: mem, most: 250},
	sealed("mem", 1, ""), sealed("mem", 1, "cpu-ns/op"), sealed("bolt", 1, ""), sealed("bolt", 64, ""),
	{what: "five steps and a question by a question alone, memstore", above: once + "mem/tool=steps", below: once + "mem/tool=deploy"},
	{what: "five steps and a question by a question alone, file", above: once + "bolt/tool=steps", below: once + "bolt/tool=deploy"},
}, slices.Concat(agents(), postgres(), postgresGrowth(), growth())...)

// agents are an agent of eino's under the gate by the same one alone.
func agents() (all []aim) {
	add := func(a aim, what string, args ...any) {
		a.what = fmt.Sprintf(what, args...)
		all = append(all, a)
	}
	for _, n := range []int{2, 50, 200} {
		at := fmt.Sprintf("Agent/messages=%d/store=", n)
		add(aim{above: at + "mem", below: at + "eino", most: 1.1}, "agent, %d messages, memstore: time by eino alone", n)
		add(aim{above: at + "mem", below: at + "eino", unit: "cpu-ns/op"}, "agent, %d messages, memstore: processor time by eino alone", n)
		add(aim{above: at + "bolt", below: at + "eino"}, "agent, %d messages, file: time by eino alone in memory", n)
		add(aim{above: at + "mem", below: at + "eino", unit: stored}, "agent, %d messages: bytes stored by eino's", n)
	}
	for _, n := range []int{1, 4, 16} {
		at := fmt.Sprintf("AgentQuestions/open=%d/store=", n)
		add(aim{above: at + "mem", unit: stored}, "%d open questions: bytes stored for each", n)
		add(aim{above: at + "eino", unit: stored}, "%d open questions: bytes stored for each, eino alone", n)
	}
	for depth := range 7 {
		at := fmt.Sprintf("AgentDepth/depth=%d/store=", depth)
		add(aim{above: at + "mem", unit: stored}, "depth %d: bytes stored", depth)
		add(aim{above: at + "eino", unit: stored}, "depth %d: bytes stored, eino alone", depth)
		add(aim{above: at + "mem", below: at + "eino", unit: "cpu-ns/op"}, "depth %d: processor time by eino alone", depth)
		if top := "AgentDepth/depth=0/store=mem"; depth > 0 {
			add(aim{above: at + "mem", below: top, unit: "cpu-ns/op"}, "depth %d: processor time by that of depth 0", depth)
		}
	}
	return all
}

// stored is the unit of what a run takes in its store while it waits.
const stored = "stored-B/question"

// postgres are the rates on PostgreSQL by those of bare statements on the same server.
func postgres() (all []aim) {
	for _, callers := range []int{1, 8, 64} {
		for _, floor := range []string{"bare", "pipelined", "grouped"} {
			a := aim{
				what:  fmt.Sprintf("PostgreSQL, %d callers: rate by %s insert and update", callers, floor),
				above: fmt.Sprintf("Stores/store=%s/callers=%d", floor, callers),
				below: fmt.Sprintf("Stores/store=postgres/callers=%d", callers),
			}
			if callers == 64 && floor == "pipelined" {
				a.least = 0.8
			}
			all = append(all, a)
		}
	}
	return all
}

// postgresGrowth is how what one request costs grows with the open questions on PostgreSQL.
func postgresGrowth() (all []aim) {
	for _, op := range []string{"interaction", "raise", "list", "due"} {
		for _, to := range []string{"10000", "100000", "1000000"} {
			all = append(all, aim{
				what:  fmt.Sprintf("PostgreSQL, %s: growth from open=1000 to open=%s", op, to),
				above: "PostgresGrowth/", first: small + "op=" + op, then: "open=" + to + "/op=" + op,
			})
		}
	}
	return all
}

func sealed(store string, callers int, unit string) aim {
	name := fmt.Sprintf("Encrypted/store=%s/callers=%d/sealed=", store, callers)
	what := fmt.Sprintf("sealed by plain, %sstore, %d callers", store, callers)
	if unit != "" {
		what += ", " + unit
	}
	return aim{what: what, unit: unit, above: name + "true", below: name + "false", most: 1.2}
}

// growth are the aims of a ledger that grows, for the sizes that were measured.
func growth() (all []aim) {
	for _, grows := range []struct{ op, unit string }{
		{"raise", "ns/op"}, {"raise", "cpu-ns/op"}, {"reopen", "ns/op"},
		// These only read: what they wait for is a processor that others keep busy.
		{"list", "cpu-ns/op"}, {"due", "cpu-ns/op"},
	} {
		for _, to := range []string{mid, big} {
			what := fmt.Sprintf("%s, %s: growth from %s to %s", grows.op, grows.unit, small[:len(small)-1], to[:len(to)-1])
			a := aim{
				what: what, unit: grows.unit, above: "Growth/store=bolt/", first: small + "op=" + grows.op, then: to + "op=" + grows.op,
			}
			all = append(all, a)
			a.what, a.below, a.most = a.what+", by bbolt's", "Growth/store=raw/", 1.2
			all = append(all, a)
		}
	}
	for _, of := range []string{mid, big} {
		for _, unit := range []string{"cpu-ns/op", "B/op"} {
			all = append(all, aim{
				what:  fmt.Sprintf("raise, %s: after nine tenths of %s were swept by before", unit, of[:len(of)-1]),
				above: "Growth/store=bolt/" + of + "op=raise-after-sweep", below: "Growth/store=bolt/" + of + "op=raise",
				unit: unit, most: 1.1,
			})
		}
	}
	return all
}

// of returns the aim's value in each run; none where something was not measured.
func (a aim) of(all runs) (values []float64) {
	unit := a.unit
	if unit == "" {
		unit = "ns/op"
	}
	value := func(benchmark string, run int) (float64, bool) {
		measured := all[key(benchmark, unit)]
		if run >= len(measured) || measured[run] == 0 {
			return 0, false
		}
		return measured[run], true
	}
	grown := func(benchmark string, run int) (float64, bool) {
		then, ok := value(benchmark+a.then, run)
		if a.first == "" {
			return then, ok
		}
		first, before := value(benchmark+a.first, run)
		return then / first, ok && before
	}
	for run := 0; ; run++ {
		above, ok := grown(a.above, run)
		below := 1.0
		switch {
		case a.below != "":
			var both bool
			below, both = grown(a.below, run)
			ok = ok && both
		case a.first == "" && strings.HasSuffix(unit, "ns/op"):
			below = 1000 // µs
		}
		if !ok {
			return values
		}
		values = append(values, above/below)
	}
}

func (a aim) reached(value float64) bool {
	return (a.most == 0 || value <= a.most) && (a.least == 0 || value >= a.least)
}

func (a aim) text() string {
	switch {
	case a.most != 0:
		return fmt.Sprintf("at most %v", a.most)
	case a.least != 0:
		return fmt.Sprintf("at least %v", a.least)
	}
	return ""
}
