package gatetest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/gate/gatetest"
)

// A recorder is a test that only takes down what is reported.
type recorder struct {
	testing.TB
	ctx     context.Context
	reports []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) FailNow()                 { runtime.Goexit() }

func (r *recorder) Errorf(format string, args ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.FailNow()
}

// record runs a script and returns what is reported of it.
func record(t *testing.T, newTool func() *gate.Tool, script gatetest.Script) []string {
	t.Helper()
	r := &recorder{ctx: t.Context()}
	done := make(chan struct{})
	go func() { // FailNow ends its goroutine
		defer close(done)
		gatetest.Run(r, newTool, script)
	}()
	<-done
	return r.reports
}
