package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coder/acp-go-sdk"

	acpbridge "github.com/parley-go/parley/bridge/acp"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A workspace is the directory that tools work in.
type workspace struct{ root string }

type editInput struct {
	Path string `json:"path" jsonschema:"a file of the directory of the work"`
	Old  string `json:"old" jsonschema:"a text that is there once, or empty to write to the end"`
	New  string `json:"new" jsonschema:"what takes its place"`
}

// edit replaces a text in a file where the person allows it, who sees the difference. What is
// written is that difference: a file that changed meanwhile and holds the text no longer is left.
func (w workspace) edit() *gate.Tool {
	return gate.NewTool("edit_file", func(ctx context.Context, in editInput) (string, error) {
		if _, err := w.edited(in); err != nil {
			return "", err // it need not be asked
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("edit_file", "Edit "+in.Path)); err != nil {
			return "", err
		}
		e, err := w.edited(in)
		if err != nil {
			return "", err
		}
		root, err := os.OpenRoot(w.root)
		if err != nil {
			return "", err
		}
		defer root.Close()
		return "edited " + in.Path, root.WriteFile(in.Path, []byte(e.after), 0o644)
	}, &gate.ToolOptions{Title: "Edit a file", Description: "Replaces a text in a file, or writes to its end."})
}

// An edition is a file before and after.
type edition struct {
	path   string
	before *string // nil: there is no such file
	after  string
}

func (w workspace) edited(in editInput) (edition, error) {
	if !filepath.IsLocal(in.Path) {
		return edition{}, &interrupt.Failure{Text: fmt.Sprintf("%q is not in the directory of the work", in.Path)}
	}
	e := edition{path: filepath.Join(w.root, in.Path)}
	root, err := os.OpenRoot(w.root) // out of which no link leads
	if err != nil {
		return e, err
	}
	defer root.Close()
	data, err := root.ReadFile(in.Path)
	text := string(data)
	switch {
	case err == nil:
		e.before = &text
	case !errors.Is(err, fs.ErrNotExist):
		return e, err
	}
	switch {
	case in.Old == "":
		e.after = text + in.New
	case strings.Count(text, in.Old) != 1:
		return e, &interrupt.Failure{Text: fmt.Sprintf("%q is %d times in %s, and not once", in.Old, strings.Count(text, in.Old), in.Path)}
	default:
		e.after = strings.Replace(text, in.Old, in.New, 1)
	}
	return e, nil
}

// view shows calls in the editor: an edit as a difference, a command as what it is.
func (w workspace) view(tool string, arguments json.RawMessage) acpbridge.View {
	switch tool {
	case "run_command":
		var in commandInput
		if json.Unmarshal(arguments, &in) == nil {
			return acpbridge.View{Title: in.Command, Kind: acp.ToolKindExecute}
		}
	case "edit_file":
		var in editInput
		if json.Unmarshal(arguments, &in) != nil {
			break
		}
		v := acpbridge.View{Title: "Edit " + in.Path, Kind: acp.ToolKindEdit}
		if e, err := w.edited(in); err == nil {
			v.Locations = []acp.ToolCallLocation{{Path: e.path}}
			diff := &acp.ToolCallContentDiff{Type: "diff", Path: e.path, OldText: e.before, NewText: e.after}
			v.Content = []acp.ToolCallContent{{Diff: diff}}
		}
		return v
	}
	return acpbridge.View{}
}
