package main

import (
	"context"
	"time"
)

// A peer is one row of the table.
type peer struct {
	name string
	// durable says whether its settings are meant to keep what it acknowledged over a power loss.
	// Whether it syncs at all is counted besides.
	durable bool
	bench   bench
}

// A bench does with one peer what the table asks for, each time over a fresh store in dir.
type bench interface {
	cycles(ctx context.Context, dir string, l load) (measured, error)
	second(ctx context.Context, dir string, when occasion, trials int) ([]trial, error)
}

// A load is how cycles are done: by that many callers for that time, after a warm-up that does not
// count; or by one caller exactly count times, untimed, where count is given.
type load struct {
	callers          int
	warmup, duration time.Duration
	count            int
}

type measured struct {
	Cycles  int     `json:"cycles"`
	Seconds float64 `json:"seconds"`
	Setting string  `json:"setting"` // of the store, as it was read back where that is possible
}

func (m measured) rate() float64 { return float64(m.Cycles) / m.Seconds }

// An occasion is when the second answer comes to a question that is answered with blue.
type occasion string

const (
	atOnce occasion = "at once" // green, while blue is on its way
	late   occasion = "late"    // green, after blue was carried out
	again  occasion = "again"   // blue, after blue was carried out
)

// A trial is one question that two answers were given to.
type trial struct {
	Replies []reply `json:"replies"`
	Effects int     `json:"effects"` // how often the code behind the question ran
}

// A reply is what an answer brought: a value, or the name of the error that refused it.
type reply struct {
	Value   string `json:"value"`
	Refused string `json:"refused"`
}

// Every peer asks which of these to deploy, and keeps state of that many bytes beside the question.
const stateSize = 1024

var colours = []string{"blue", "green"}
