package gate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every row of docs/transitions.md is named where the code does it, and the code names no row that
// the page does not have.
func TestEveryRowIsNamed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "transitions.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	letters := ""
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z][0-9][mu]?) \|`).FindAllSubmatch(page, -1) {
		rows[string(m[1])] = false
		letters += string(m[1][:1])
	}
	if len(rows) < 30 {
		t.Fatalf("the page has %d rows: it was not read right", len(rows))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b([` + letters + `][0-9][mu]?)\b`)
	span := regexp.MustCompile(`\b([` + letters + `])([0-9])(?:–| to )([` + letters + `])([0-9])\b`)
	for _, file := range files {
		if matched, _ := filepath.Match("*_test.go", file); matched {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllSubmatch(code, -1) {
			if _, ok := rows[string(m[1])]; !ok {
				t.Errorf("%s names row %s, which the page does not have", file, m[1])
			}
			rows[string(m[1])] = true
		}
		for _, m := range span.FindAllSubmatch(code, -1) {
			for n := m[2][0]; n <= m[4][0]; n++ {
				rows[string(m[1])+string(n)] = true
			}
		}
	}
	for row, named := range rows {
		if !named {
			t.Errorf("row %s is named nowhere in the code", row)
		}
	}
}
