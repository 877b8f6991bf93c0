package gate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/powercut"
)

func TestMain(m *testing.M) {
	if powercut.Booted() {
		os.Exit(powercut.Serve(serveGate))
	}
	if url := os.Getenv(replicaChild); url != "" {
		os.Exit(replica(url))
	}
	if dir := os.Getenv(stepsChild); dir != "" {
		os.Exit(stepsUntilKilled(dir))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(max(code, leaks.verdict())) }))
}

// R22, R37: a key file is made once, durably, readable by its owner only; whoever comes at the same
// time gets the same keys.
func TestKeyFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "parley", "test.key")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var seen [][]byte
	for range 8 {
		wg.Go(func() {
			keys, err := gate.KeyFile(path)
			if err != nil || len(keys) != 1 || len(keys[0]) != 32 {
				t.Errorf("%d keys, %v", len(keys), err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, keys[0])
		})
	}
	wg.Wait()
	for _, key := range seen {
		if !bytes.Equal(key, seen[0]) {
			t.Error("two processes use two keys")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A key file that is not one is refused with its path and the place, never with what stands in it,
// and never overwritten.
func TestBadKeyFiles(t *testing.T) {
	secret := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		keys int // where it is good
	}{
		"one key":             {secret + "\n", 0o600, 1},
		"two, and a comment":  {"# new\n" + secret + "\n\n  " + strings.Repeat("cd", 32), 0o400, 2},
		"others can read it":  {secret, 0o640, 0},
		"everybody can":       {secret, 0o604, 0},
		"empty":               {"", 0o600, 0},
		"only a comment":      {"# nothing\n", 0o600, 0},
		"a short key":         {secret[2:], 0o600, 0},
		"a long key":          {secret + "00", 0o600, 0},
		"no hexadecimal":      {strings.Repeat("zz", 32), 0o600, 0},
		"the second is wrong": {secret + "\n" + secret[1:], 0o600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.key")
			if err := os.WriteFile(path, []byte(test.text), test.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil { // whatever the umask
				t.Fatal(err)
			}
			keys, err := gate.KeyFile(path)
			if len(keys) != test.keys || (err == nil) != (test.keys > 0) {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			if err != nil && (!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), secret[:16])) {
				t.Errorf("the error does not name the file, or shows the key: %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != test.text {
				t.Errorf("the file changed: %v", err)
			}
		})
	}
	if _, err := gate.KeyFile(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

func TestDefaultKeyFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/somewhere")
	t.Setenv("HOME", "/somewhere")
	path, err := gate.DefaultKeyFile("demo")
	if err != nil || filepath.Base(path) != "demo.key" || !strings.HasPrefix(path, "/somewhere") {
		t.Errorf("%q, %v", path, err)
	}
}
