package pgtest

import (
	"crypto/rand"
	"errors"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared is the server of this process. It ends with the process: see [Server].
var shared = sync.OnceValues(Start)

// URL returns where the tests' server is found. It skips the test where there is none.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("PARLEY_TEST_POSTGRES"); url != "" {
		return url
	}
	s, err := shared()
	check(t, err)
	return s.URL()
}

// Private returns a server of the test's own, which it may stop and kill. It skips the test where
// none can be started.
func Private(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	check(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrNone) && os.Getenv("PARLEY_REQUIRE_POSTGRES") == "":
		t.Skipf("%v; set PARLEY_TEST_POSTGRES to the URL of one", err)
	case err != nil:
		t.Fatal(err)
	}
}

// Schema returns the name of a schema that nobody has.
func Schema() string { return "parley_test_" + strings.ToLower(rand.Text()[:16]) }

// FewerChecks makes rapid try fewer times until the test ends: a server takes longer than memory
// does. A flag says otherwise.
func FewerChecks(t testing.TB, checks string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	if err := f.Value.Set(checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) }) // it was a number before
}
