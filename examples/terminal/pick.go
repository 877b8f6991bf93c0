package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// scope is whose interactions these are. A program for many people has a name for each; here there
// is one person.
const scope = "local"

// unfinished are the states in which an interaction may go on; whether it does is told by
// [gate.Summary].
var unfinished = []checkpoint.Status{
	checkpoint.Started, checkpoint.Open, checkpoint.Answered, checkpoint.Running, checkpoint.Abandoned, checkpoint.Failed,
}

// pickRelease finds the release to go on with, or else the next one. It remembers nothing itself: a
// process that was killed at whatever moment finds the same release again, since the ledger knows
// every start ID that was ever used.
func pickRelease(ctx context.Context, g *gate.Gate, o *options) (release, error) {
	r := release{Service: o.service, Version: o.version}
	if r == (release{}) {
		open, err := openRelease(ctx, g)
		if err != nil || open != r {
			return open, err
		}
	}
	if r.Service == "" {
		r.Service = "shop"
	}
	if r.Version != "" {
		return r, nil
	}
	for n := 0; ; n++ {
		r.Version = fmt.Sprintf("1.0.%d", n)
		s, err := g.Inspect(ctx, scope, startID(r))
		if errors.Is(err, gate.ErrStartUnknown) {
			return r, nil
		}
		if err != nil || s.GoesOn {
			return r, err
		}
	}
}

// openRelease returns the oldest release that goes on, or a zero one.
func openRelease(ctx context.Context, g *gate.Gate) (release, error) {
	query := gate.ListQuery{Scope: scope, Statuses: unfinished}
	for {
		page, err := g.List(ctx, query)
		if err != nil {
			return release{}, err
		}
		for _, s := range page.Interactions {
			switch {
			case s.Problem != nil:
				fmt.Fprintf(os.Stderr, "passing over interaction %s: %v\n", s.ID, s.Problem)
			case s.GoesOn:
				var r release
				err := json.Unmarshal(s.Arguments, &r)
				return r, err
			}
		}
		if page.Next == "" {
			return release{}, nil
		}
		query.After = page.Next
	}
}

// startID names the piece of work: the same call with it rejoins what it began.
func startID(r release) string { return "release/" + r.Service + "/" + r.Version }
