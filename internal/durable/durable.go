package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// CreateOnce is CreateNew for those to whom another's file is as good: where there is one by that
// name, also because somebody else was first, it returns nil.
func CreateOnce(path string, fill func(temp string) error) error {
	err := CreateNew(path, fill)
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

// CreateNew makes the file at path with what fill writes to the path it is given: that of an empty
// file beside it, of mode 0600, which fill has closed when it returns. It never replaces a file:
// where there is one by that name it returns fs.ErrExist. The directory must exist. When CreateNew
// returns nil, the file at path is whole and durable.
func CreateNew(path string, fill func(temp string) error) error {
	temp, err := TempBeside(path)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := fill(temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	err = publish(temp, path)
	if err != nil && !errors.Is(err, errThere) {
		return err
	}
	return errors.Join(err, SyncName(path))
}

// errThere is what publish returns where there is a file by that name, and nothing else does.
var errThere = fmt.Errorf("create file: %w", fs.ErrExist)

// publish gives the file its name, unless there is one by that name.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		return errThere
	}
	if err == nil {
		return nil
	}
	return publishWithoutLinks(temp, path)
}

// publishWithoutLinks is for a file system that has no hard links: whoever creates the empty file
// replaces it. A crash in between leaves the empty file, and others can see it for a moment.
func publishWithoutLinks(temp, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errThere
	}
	if err != nil {
		return err
	}
	err = f.Close()
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path)) // it is the empty one
	}
	return nil
}

// TempBeside makes an empty file of mode 0600 in the directory of path, and returns its path. A
// file that a crash left there can be told by its name, which begins with that of path.
func TempBeside(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// SyncName makes the name of a file durable, as it is after a file was created, linked or renamed.
func SyncName(path string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be synced there; its file system keeps a log of its names
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// syncFile makes the content of a file durable. Windows wants the file to be open for writing.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
