package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/parley-go/parley/internal/durable"
)

// want fails the test where the directory of path holds anything but path, with that content; "" is
// no file.
func want(t *testing.T, path, content string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) || content == "" {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
	got, err := os.ReadFile(path)
	if string(got) != content || errors.Is(err, fs.ErrNotExist) != (content == "") {
		t.Errorf("the file holds %q, %v, want %q", got, err, content)
	}
}

func writing(content string) func(string) error {
	return func(temp string) error { return os.WriteFile(temp, []byte(content), 0o644) }
}

func TestCreateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.CreateOnce(path, writing("first")); err != nil {
		t.Fatal(err)
	}
	want(t, path, "first")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := durable.CreateOnce(path, writing("second")); err != nil {
		t.Fatal(err)
	}
	want(t, path, "first")
}

func TestCreateNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.CreateNew(path, writing("first")); err != nil {
		t.Fatal(err)
	}
	if err := durable.CreateNew(path, writing("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	want(t, path, "first")
	// What fill says is not about the file itself.
	if err := durable.CreateOnce(path, func(string) error { return fs.ErrExist }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want what fill returned", err)
	}
}

// Of several who come at once one is first, and all of them find its file, whole.
func TestCreateOnceTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	found := make(chan string, 8)
	var group sync.WaitGroup
	for n := range cap(found) {
		group.Go(func() {
			if err := durable.CreateOnce(path, writing(strconv.Itoa(n))); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || len(got) != 1 {
				t.Errorf("the file holds %q, %v", got, err)
			}
			found <- string(got)
		})
	}
	group.Wait()
	close(found)
	first := <-found
	for got := range found {
		if got != first {
			t.Errorf("the file holds once %q and once %q", first, got)
		}
	}
	want(t, path, first)
}

func TestCreateOnceFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	cause := errors.New("no")
	if err := durable.CreateOnce(path, func(string) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("got %v, want what fill returned", err)
	}
	want(t, path, "")
	if err := durable.CreateOnce(filepath.Join(path, "file"), writing("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist: there is no directory", err)
	}
	want(t, path, "")
}

func TestPublishWithoutLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second"} {
		temp, err := durable.TempBeside(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writing(content)(temp); err != nil {
			t.Fatal(err)
		}
		if err := durable.PublishWithoutLinks(temp, path); errors.Is(err, fs.ErrExist) != (content == "second") {
			t.Fatalf("%s: got %v", content, err)
		}
		if err := os.Remove(temp); (err == nil) != (content == "second") {
			t.Errorf("temporary file of the %s: %v", content, err)
		}
		want(t, path, "first")
	}
	os.Remove(path)
	if err := durable.PublishWithoutLinks(path+".gone", path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	want(t, path, "")
}

func TestSyncName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.SyncName(path); err != nil { // the file itself need not be there: its name was removed
		t.Error(err)
	}
	if err := durable.SyncName(filepath.Join(path, "file")); err == nil && runtime.GOOS != "windows" {
		t.Error("there is no directory")
	}
}
