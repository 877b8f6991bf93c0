package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A row is one interaction that waits for something, as -list shows it.
type row struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Status    string          `json:"status"`
	Round     int             `json:"round"` // 0: it has not asked yet
	Since     time.Time       `json:"since"`
	Expires   time.Time       `json:"expires,omitzero"`
	Questions []string        `json:"questions"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func list(ctx context.Context, g *gate.Gate, out *os.File) error {
	rows, err := openRows(ctx, g)
	if err != nil {
		return err
	}
	if isTerminal(out) {
		return table(rows, out)
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, r := range rows {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func openRows(ctx context.Context, g *gate.Gate) ([]row, error) {
	var rows []row
	query := gate.ListQuery{Scope: scope, Statuses: unfinished}
	for {
		page, err := g.List(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Interactions {
			switch {
			case s.Problem != nil:
				rows = append(rows, row{ID: s.ID.String(), Status: "unreadable"})
			case s.GoesOn:
				rows = append(rows, rowOf(s))
			}
		}
		if page.Next == "" {
			return rows, nil
		}
		query.After = page.Next
	}
}

func rowOf(s gate.Summary) row {
	r := row{ID: s.ID.String(), Tool: s.Tool, Status: s.Status.String(), Since: s.Created, Questions: []string{}, Arguments: s.Arguments}
	if s.Prompt == nil {
		return r
	}
	r.Round = s.Prompt.Round
	if s.Status == checkpoint.Open || s.Status == checkpoint.Answered { // otherwise nobody is waited for
		r.Expires = s.Prompt.Expires
	}
	for _, q := range s.Prompt.Questions {
		r.Questions = append(r.Questions, q.Type)
	}
	return r
}

func table(rows []row, out *os.File) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "Nothing is open.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTOOL\tSTATUS\tROUND\tSINCE\tEXPIRES\tQUESTIONS")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.ID, printable(r.Tool), r.Status, r.Round, local(r.Since), local(r.Expires),
			strings.Join(r.Questions, ","))
		if r.Arguments != nil {
			fmt.Fprintf(w, "  %s\n", printable(string(r.Arguments)))
		}
	}
	return w.Flush()
}

func local(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("Jan 2 15:04")
}
