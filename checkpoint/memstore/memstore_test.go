package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/checkpoint/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	checkpointtest.Run(t, checkpointtest.Harness{
		Open: func(testing.TB) checkpoint.Store { return memstore.New() },
	})
}

// An owner of one store is nobody in another, also within one process.
func TestOwnersOfTwoStores(t *testing.T) {
	var members []checkpoint.Member
	for range 2 {
		s := memstore.New()
		for range 2 {
			_, m, err := s.Join(t.Context(), checkpoint.Ledger{ID: [16]byte{1}})
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, m)
		}
	}
	for i, m := range members {
		for j, other := range members {
			if same := i/2 == j/2; alive(t, m, other) != same {
				t.Errorf("owner %d is alive for member %d: %v, want %v", j, i, !same, same)
			}
			if i != j && m.Owner() == other.Owner() {
				t.Errorf("members %d and %d are one owner", i, j)
			}
		}
	}
}

func alive(t *testing.T, m, owner checkpoint.Member) bool {
	t.Helper()
	ok, err := m.Alive(t.Context(), owner.Owner())
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
