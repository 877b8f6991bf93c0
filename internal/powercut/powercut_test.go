package powercut_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-go/parley/internal/crash"
	"github.com/parley-go/parley/internal/powercut"
)

// The machine writes files, and says what it has.
func TestMain(m *testing.M) {
	if powercut.Booted() {
		os.Exit(powercut.Serve(serve))
	}
	os.Exit(m.Run())
}

type order struct {
	Write string // the name of a file to write
	Sync  bool
}

func serve(dir string) (func(json.RawMessage) any, error) {
	return func(body json.RawMessage) any {
		var o order
		if err := json.Unmarshal(body, &o); err != nil {
			return err.Error()
		}
		if o.Write == "" {
			return content(dir)
		}
		if err := writeFile(filepath.Join(dir, o.Write), o.Sync); err != nil {
			return err.Error()
		}
		return ""
	}, nil
}

func writeFile(path string, sync bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString("text")
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// content is the names of the files that hold what was written.
func content(dir string) string {
	var names []string
	paths, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && string(text) == "text" {
			names = append(names, filepath.Base(path))
		}
	}
	return strings.Join(names, " ")
}

func ask(t *testing.T, m *powercut.Machine, o order) string {
	t.Helper()
	var answer string
	if err := m.Call(o, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// What was synced is there after a cut and what was not is lost; a kill alone loses neither. Nobody
// but the machine sees its mount.
func TestCut(t *testing.T) {
	for fs, size := range map[powercut.FileSystem]int64{powercut.Ext4: 64 << 20, powercut.XFS: 512 << 20} {
		t.Run(string(fs), func(t *testing.T) {
			disk := powercut.NewDisk(t, fs, size)
			m := disk.Boot(t)
			if failed := ask(t, m, order{Write: "killed.txt"}); failed != "" {
				t.Fatal(failed)
			}
			if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), "/TestCut") {
				t.Errorf("the machine's mount is seen here (%v)", err)
			}
			m.Kill()
			m = disk.Boot(t)
			for _, o := range []order{{"synced.txt", true}, {"unsynced.txt", false}} {
				if failed := ask(t, m, o); failed != "" {
					t.Fatal(failed)
				}
			}
			m.Stop()
			if failed := ask(t, m, order{"late.txt", true}); failed == "" {
				t.Error("a stopped disk was written to")
			}
			m.Kill()
			if err := m.Call(order{}, new(string)); !errors.Is(err, crash.ErrDied) {
				t.Errorf("call after the kill: got %v, want ErrDied", err)
			}
			if have := ask(t, disk.Boot(t), order{}); have != "killed.txt synced.txt" {
				t.Errorf("after the cut there is %q", have)
			}
		})
	}
}

// A full disk takes nothing, and is as before when it was freed.
func TestFill(t *testing.T) {
	m := powercut.NewDisk(t, powercut.Ext4, 16<<20).Boot(t)
	for _, full := range []bool{true, false} {
		if full {
			m.Fill()
		} else {
			m.Free()
		}
		if failed := ask(t, m, order{"file.txt", true}); (failed != "") != full {
			t.Errorf("full: %v, but writing a file: %q", full, failed)
		}
	}
}
