package checkpointtest_test

import (
	"fmt"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/checkpointtest"
	"github.com/parley-go/parley/checkpoint/memstore"
)

// A store's own test is one function like this.
func Example() {
	testContract := func(t *testing.T) {
		checkpointtest.Run(t, checkpointtest.Harness{
			Open: func(testing.TB) checkpoint.Store { return memstore.New() },
		})
	}
	ok := testing.RunTests(func(_, name string) (bool, error) { return name == "TestContract", nil },
		[]testing.InternalTest{{Name: "TestContract", F: testContract}})
	fmt.Println("the store keeps its promises:", ok)
	// Output:
	// the store keeps its promises: true
}
