package memstore_test

import (
	"errors"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/checkpoint/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	checkpointtest.Run(t, checkpointtest.Harness{
		Open: func(testing.TB) checkpoint.Store { return memstore.New(nil) },
	})
}

func TestNoRandomness(t *testing.T) {
	want := errors.New("empty")
	s := memstore.New(&memstore.Options{Random: iotest.ErrReader(want)})
	if _, _, err := s.Join(t.Context(), checkpoint.Ledger{}); !errors.Is(err, want) {
		t.Fatalf("join: got %v, want %v", err, want)
	}
}
