package parley_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// repository is the tree of the module; tests run in its root.
var repository = os.DirFS(".")

// A path of somebody's machine means nothing on another one.
func TestNoMachinePaths(t *testing.T) {
	machine := []string{"/" + "work/", "/" + "root/"} // in two parts, so that this file has none either
	for _, name := range repositoryFiles(t) {
		for n, line := range strings.Split(readText(t, name), "\n") {
			if slices.ContainsFunc(machine, func(p string) bool { return strings.Contains(line, p) }) {
				t.Errorf("%s:%d: holds the path of a machine: %s", name, n+1, line)
			}
		}
	}
}

// Comments are read in columns: a line of them has at most 100, a line of code at most 140.
func TestLinesAreReadable(t *testing.T) {
	for _, file := range repositoryFiles(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for n, line := range strings.Split(readText(t, file), "\n") {
			line, most := strings.ReplaceAll(line, "\t", "    "), 140
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				most = 100
			}
			if width := utf8.RuneCountInString(line); width > most {
				t.Errorf("%s:%d has %d columns, more than %d", file, n+1, width, most)
			}
		}
	}
}

// Every package says what it is in doc.go, a command in main.go.
func TestPackagesHaveDoc(t *testing.T) {
	for dir, pkg := range packages(t) {
		name := "doc.go"
		if pkg.command {
			name = "main.go"
		}
		file := pkg.files[path.Join(dir, name)]
		switch {
		case file == nil:
			t.Errorf("package %q has no %s", dir, name)
		case file.Doc == nil:
			t.Errorf("package %q: %s has no package comment", dir, name)
		}
	}
}

// Every package that others can import shows how, in an example that runs.
func TestPackagesHaveExamples(t *testing.T) {
	for dir, pkg := range packages(t) {
		if pkg.command || !pkg.code || strings.HasPrefix(dir, "internal/") {
			continue
		}
		if !slices.ContainsFunc(doc.Examples(pkg.tests...), func(e *doc.Example) bool { return e.Output != "" }) {
			t.Errorf("package %q has no Example with an Output", dir)
		}
	}
}

// What the README and the pages on handlers and agents show is code that compiles and runs in a test.
func TestShownCodeIsTested(t *testing.T) {
	for page, tested := range map[string][]string{
		"README.md":        {"gate/example_test.go", "agent/example_test.go", "bridge/mcp/example_test.go"},
		"docs/mcp.md":      {"bridge/mcp/example_test.go", "bridge/mcp/example_http_test.go"},
		"docs/acp.md":      {"examples/acp-by-hand/main.go"},
		"docs/handlers.md": {"gate/gatetest/handlers_test.go"},
		"docs/agent.md":    {"agent/example_test.go", "agent/example_wrap_test.go"},
	} {
		code := ""
		for _, file := range tested {
			code += unindented(readText(t, file))
		}
		code = strings.ReplaceAll(code, "deploy := func(", "func deploy(") // a local function there
		blocks := strings.Split(readText(t, page), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s has no code", page)
		}
		for _, block := range blocks {
			shown, _, ok := strings.Cut(block, "```\n")
			if !ok {
				t.Errorf("%s: a code block has no end", page)
			}
			if !strings.Contains(code, unindented(shown)) {
				t.Errorf("%v do not hold this code of %s:\n%s", tested, page, shown)
			}
		}
	}
}

// What go.mod requires has its reason in docs/dependencies.md, and nothing else has.
func TestDependenciesHaveReasons(t *testing.T) {
	var required, explained []string
	for line := range strings.Lines(readText(t, "go.mod")) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			required = append(required, fields[0])
		}
	}
	for line := range strings.Lines(readText(t, "docs/dependencies.md")) {
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(row, "`")
			explained = append(explained, name)
		}
	}
	for _, name := range required {
		if !slices.Contains(explained, name) {
			t.Errorf("go.mod requires %s, and docs/dependencies.md does not say why", name)
		}
	}
	for _, name := range explained {
		if !slices.Contains(required, name) {
			t.Errorf("docs/dependencies.md explains %s, and go.mod does not require it directly", name)
		}
	}
}

// SECURITY.md names tests that there are.
func TestSecurityNamesTests(t *testing.T) {
	there := map[string]bool{}
	for _, pkg := range packages(t) {
		for _, file := range pkg.tests {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
					there[f.Name.Name] = true
				}
			}
		}
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(readText(t, "SECURITY.md"), -1) {
		if !there[name[1]] {
			t.Errorf("SECURITY.md names %s, and there is no such test", name[1])
		}
	}
}

// Every fuzz target has a committed corpus, so that what it found or what its author thought of is
// run by every `go test`; and there is no corpus without a target.
func TestFuzzTargetsHaveCorpora(t *testing.T) {
	targets := map[string]bool{}
	for dir, pkg := range packages(t) {
		for _, file := range pkg.tests {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
					continue
				}
				corpus := path.Join(dir, "testdata/fuzz", f.Name.Name)
				targets[corpus] = true
				if inputs, err := fs.ReadDir(repository, corpus); err != nil || len(inputs) < 4 {
					t.Errorf("%s has %d inputs in %s, want 4 or more: %v", f.Name.Name, len(inputs), corpus, err)
				}
			}
		}
	}
	for _, name := range repositoryFiles(t) {
		if corpus := path.Dir(name); strings.HasSuffix(path.Dir(corpus), "testdata/fuzz") && !targets[corpus] {
			t.Errorf("%s is an input of no fuzz target", name)
		}
	}
}

// A sourcePackage is one directory of Go files.
type sourcePackage struct {
	command bool // package main
	code    bool // holds more than its documentation
	files   map[string]*ast.File
	tests   []*ast.File
}

// packages returns those of this module, by directory.
func packages(t *testing.T) map[string]*sourcePackage {
	t.Helper()
	found := map[string]*sourcePackage{}
	for _, name := range repositoryFiles(t) {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") || nested(name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Errorf("read package: %v", err)
			continue
		}
		dir := path.Dir(name)
		if found[dir] == nil {
			found[dir] = &sourcePackage{files: map[string]*ast.File{}}
		}
		pkg := found[dir]
		pkg.files[name] = file
		switch {
		case strings.HasSuffix(name, "_test.go"):
			pkg.tests = append(pkg.tests, file)
		default:
			pkg.command = pkg.command || file.Name.Name == "main"
			pkg.code = pkg.code || len(file.Decls) > 0
		}
	}
	return found
}

// readText returns a file's text, or nothing where it is not text.
func readText(t *testing.T, name string) string {
	t.Helper()
	content, err := fs.ReadFile(repository, name)
	if err != nil {
		t.Errorf("read file: %v", err)
	}
	if !utf8.Valid(content) {
		return ""
	}
	return string(content)
}

// unindented is the text with every line's indentation and empty lines left out, so that one code
// compares at any depth.
func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
