package gate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-go/parley/gate"
)

// R36: docs/errors.md has a row for each code of code.go and no other, says for each protocol what
// becomes of it, and agrees with the code on whether trying again helps.
func TestEveryCodeIsInTheTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	again := map[gate.Code]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		cells := strings.Split(m[2], "|")
		if len(cells) != 6 {
			t.Errorf("%s: %d cells", m[1], len(cells))
			continue
		}
		for i, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: cell %d is empty", m[1], i+2)
			}
		}
		again[gate.Code(m[1])] = strings.TrimSpace(cells[0])
	}
	codes := declaredCodes(t)
	if len(codes) != 25 {
		t.Errorf("%d codes", len(codes))
	}
	for _, code := range codes {
		want := "no"
		if code.Retryable() {
			want = "yes"
		}
		if got, ok := again[code]; !ok || got != want {
			t.Errorf("%s: the page says %q, want %q", code, got, want)
		}
		delete(again, code)
	}
	for code := range again {
		t.Errorf("%s is in the table and not in the code", code)
	}
}

// declaredCodes reads the constants of type Code.
func declaredCodes(t *testing.T) (codes []gate.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Code" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, gate.Code(value))
		}
		return true
	})
	return codes
}
