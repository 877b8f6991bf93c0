package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/parley-go/parley/interrupt"
)

// A journal is the file in which tools write down when they run and what they did: it stands for
// the world outside, which all processes of a server share. Without a name nothing is written.
type journal string

// runs writes down that a tool runs, for which answer, and whether it ran for it before.
func (j journal) runs(ctx context.Context, tool, on string) error {
	r, _ := interrupt.ResumeFrom(ctx)
	return j.add("run", tool, on, r.Round, r.Attempt)
}

func (j journal) add(words ...any) error {
	if j == "" {
		return nil
	}
	f, err := os.OpenFile(string(j), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, words...)
	return errors.Join(err, f.Close())
}

// has reports whether a line with these words was written.
func (j journal) has(words ...any) (bool, error) {
	text, err := os.ReadFile(string(j))
	if j == "" || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Contains(append([]byte("\n"), text...), []byte("\n"+fmt.Sprintln(words...))), err
}
