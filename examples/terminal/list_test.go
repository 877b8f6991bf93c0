package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if rows := listed(t, dir); len(rows) > 0 {
		t.Errorf("list of nothing is %v", rows)
	}
	p := start(t, dir, "program")
	asked := p.asks(1)
	p.say(answers[0])
	p.asks(2)
	p.exits(exitDone)
	got := listed(t, dir)
	want := []row{{
		ID: asked.Interaction.String(), Tool: "release", Status: "open", Round: 2, Expires: asked.Expires, Questions: types[1:2], Arguments: asked.Arguments,
	}}
	if len(got) == 1 {
		want[0].Since = got[0].Since
	}
	if diff := cmp.Diff(want, got); diff != "" || got[0].Since.IsZero() {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	p = start(t, dir, "program")
	p.asks(2)
	p.say(`{"action":"decline"}`)
	p.next()
	p.exits(exitDone)
	if rows := listed(t, dir); len(rows) > 0 {
		t.Errorf("list at the end is %v", rows)
	}
}

func listed(t *testing.T, dir string) (rows []row) {
	t.Helper()
	p := start(t, dir, "program", "-list")
	for p.out.Scan() {
		var r row
		if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	p.exits(exitDone)
	return rows
}
