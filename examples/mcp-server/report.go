package main

import (
	"context"
	"time"

	"github.com/parley-go/parley/interrupt"
)

func slowReport(ctx context.Context, _ struct{}) (string, error) {
	const steps = 10
	total := float64(steps)
	for i := range steps {
		interrupt.Progress(ctx, interrupt.Update{Completed: float64(i), Total: &total, Message: "reading"}) //nolint:errcheck // advice
		select {
		case <-time.After(150 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "nothing to report", nil
}
