package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// A plan is how much is done.
type plan struct {
	callers          []int
	rounds, trials   int
	warmup, duration time.Duration
	probe            time.Duration
	dir              string // for the stores, on the disk to be measured
}

// A row is what was seen of one peer.
type row struct {
	peer
	setting string
	syncs   float64 // in one cycle of one caller; negative: not counted
	cells   []cell  // by number of callers
	second  map[occasion]string
	skipped error
}

// A cell holds one measurement a round.
type cell struct {
	rates, ratios []float64 // cycles a second, and those to the probe's syncs
}

// run measures every peer in every round, in another order each time, and each beside a probe. A
// peer that fails is skipped from there on, with its reason; only a failing disk ends the run.
func (p plan) run(ctx context.Context, rows []*row) (probes []float64, err error) {
	for _, r := range rows {
		r.cells = make([]cell, len(p.callers))
	}
	for round := range p.rounds {
		turn := round * len(rows) / p.rounds
		for _, r := range slices.Concat(rows[turn:], rows[:turn]) {
			for i := range p.callers {
				if r.skipped != nil {
					continue
				}
				synced, err := probe(p.dir, p.probe)
				if err != nil {
					return nil, err
				}
				probes = append(probes, synced)
				m, err := p.measure(ctx, r, i)
				if err != nil {
					r.skipped = err
					continue
				}
				r.setting = m.Setting
				r.cells[i].rates = append(r.cells[i].rates, m.rate())
				r.cells[i].ratios = append(r.cells[i].ratios, m.rate()/synced)
			}
		}
	}
	return probes, p.answerTwice(ctx, rows)
}

func (p plan) measure(ctx context.Context, r *row, i int) (m measured, err error) {
	err = p.inFresh(func(dir string) error {
		m, err = r.bench.cycles(ctx, dir, load{callers: p.callers[i], warmup: p.warmup, duration: p.duration})
		return err
	})
	return m, err
}

// answerTwice gives every peer two answers to one question.
func (p plan) answerTwice(ctx context.Context, rows []*row) error {
	for _, r := range rows {
		r.second = map[occasion]string{}
		for _, when := range []occasion{atOnce, late, again} {
			if r.skipped != nil {
				continue
			}
			r.skipped = p.inFresh(func(dir string) error {
				seen, err := r.bench.second(ctx, dir, when, p.trials)
				if err == nil {
					r.second[when] = verdicts(seen, when)
				}
				return err
			})
		}
	}
	return ctx.Err()
}

// inFresh gives a new directory for the time of a function.
func (p plan) inFresh(do func(dir string) error) error {
	dir, err := os.MkdirTemp(p.dir, "")
	if err != nil {
		return err
	}
	err = do(dir)
	if removing := os.RemoveAll(dir); err == nil && removing != nil {
		return fmt.Errorf("remove a store: %w", removing)
	}
	return err
}

// median returns the middle of a series, or the mean of the middle two; zero of an empty one.
func median(series []float64) float64 {
	if len(series) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(series))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
