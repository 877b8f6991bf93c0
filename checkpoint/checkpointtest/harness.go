package checkpointtest

import (
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

// A Harness opens the stores that [Run] tests. Its functions end the test where they fail.
type Harness struct {
	// Open returns an empty store, and has t close it when the test ends. It must be set.
	Open func(t testing.TB) checkpoint.Store
	// Reopen closes the store and returns one that holds the same records, as the next process
	// would open it. Nil: the store is not durable.
	Reopen func(t testing.TB, s checkpoint.Store) checkpoint.Store
	// Crash returns a store with what the records of s would be if the process were killed now.
	// Nil: the store is not durable, or cannot tell.
	Crash func(t testing.TB, s checkpoint.Store) checkpoint.Store
	// Check fails the test where the store contradicts itself. It is called at the end of each
	// case. Nil: there is nothing to check.
	Check func(t testing.TB, s checkpoint.Store)
}

// A promise is one case of the contract.
type promise struct {
	name string
	text string // the promise, printed when the case fails
	run  func(t *testing.T, f *fixture)
}

// Run tests every promise of a store, each as a subtest with a store of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	groups := [][]promise{writing, conflicts, finding, listing, laziness, membership, keeping, auditing, counting, racing, refusing}
	for _, group := range groups {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("promise: %s", p.text)
					}
				})
				f := &fixture{h: h, t: t, store: h.Open(t)}
				p.run(t, f)
				f.check()
			})
		}
	}
	t.Run("model", func(t *testing.T) { runModel(t, h) })
}
