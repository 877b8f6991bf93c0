package parley_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/parley-go/parley"

// A place is where a package stands in the house. A package may import those of the module that
// stand on lower floors, those beside it that are named here, the standard library, and the outside
// modules that are named here.
type place struct {
	floor   int
	beside  []string // packages of the same floor
	outside []string // paths of modules, or of packages where only these are meant
}

const anything = "*"

const (
	bbolt         = "go.etcd.io/bbolt"
	btree         = "github.com/google/btree"
	eino          = "github.com/cloudwego/eino"
	einoSchema    = "github.com/eino-contrib/jsonschema"
	goCmp         = "github.com/google/go-cmp"
	jsonSchema    = "github.com/santhosh-tekuri/jsonschema/v6"
	jsonSchemaFor = "github.com/google/jsonschema-go"
	jsonV2        = "github.com/go-json-experiment/json"
	jsontext      = "github.com/go-json-experiment/json/jsontext"
	pgx           = "github.com/jackc/pgx/v5"
	s2            = "github.com/klauspost/compress/s2"
	mcpSDK        = "github.com/modelcontextprotocol/go-sdk"
	acpSDK        = "github.com/coder/acp-go-sdk"
	rapid         = "pgregory.net/rapid"
)

// house has a row for every package, by its path in the module. Whoever adds a package adds its
// row.
var house = map[string]place{
	"": {floor: 5}, // documentation only

	"internal/canon":    {floor: 0, outside: []string{jsontext}},
	"internal/crash":    {floor: 0},
	"internal/durable":  {floor: 0},
	"internal/lines":    {floor: 0},
	"internal/pgtest":   {floor: 0, outside: []string{pgx}},
	"internal/powercut": {floor: 0, beside: []string{"internal/crash"}},
	"internal/resume":   {floor: 0},
	"internal/scripted": {floor: 0, outside: []string{eino}},
	"internal/schema": {floor: 0, beside: []string{"internal/canon"},
		outside: []string{jsonSchema, jsonSchemaFor, jsontext}},

	"interrupt": {floor: 1, outside: []string{jsonV2, jsonSchema}},

	"checkpoint":                {floor: 2, outside: []string{jsonV2}},
	"internal/watch":            {floor: 2, beside: []string{"checkpoint"}},
	"checkpoint/memstore":       {floor: 2, beside: []string{"checkpoint", "internal/watch"}, outside: []string{btree}},
	"checkpoint/boltstore":      {floor: 2, beside: []string{"checkpoint", "internal/watch"}, outside: []string{bbolt}},
	"checkpoint/pgstore":        {floor: 2, beside: []string{"checkpoint", "internal/watch"}, outside: []string{pgx}},
	"checkpoint/checkpointtest": {floor: 2, beside: []string{"checkpoint"}, outside: []string{goCmp, rapid}},

	"gate":          {floor: 3, outside: []string{jsonV2, s2}},
	"gate/gatetest": {floor: 3, beside: []string{"gate"}},

	"internal/elicit": {floor: 3, beside: []string{"gate"}},

	"agent": {floor: 4, outside: []string{eino, einoSchema}},

	"bench":                    {floor: 5, outside: []string{bbolt, eino, pgx, mcpSDK, acpSDK}},
	"bench/ratios":             {floor: 5},
	"examples/observe":         {floor: 5},
	"examples/terminal":        {floor: 5, outside: []string{anything}},
	"bridge/mcp":               {floor: 4, outside: []string{mcpSDK}},
	"bridge/acp":               {floor: 4, outside: []string{acpSDK}},
	"bridge/acp/acpagent":      {floor: 4, beside: []string{"agent", "bridge/acp"}, outside: []string{acpSDK, eino}},
	"examples/mcp-server":      {floor: 5, outside: []string{mcpSDK}},
	"examples/mcp-conformance": {floor: 5, outside: []string{mcpSDK}},
	"examples/mcp-agent":       {floor: 5, outside: []string{eino, mcpSDK}},
	"examples/acp-by-hand":     {floor: 5, outside: []string{acpSDK}},
}

// A package's tests may import besides what the package may: these modules, and every package of
// the module up to its own floor.
var outsideForTests = []string{
	goCmp, rapid, "go.uber.org/goleak", "github.com/rogpeppe/go-internal/testscript", "golang.org/x/tools/txtar",
}

// An importer is one Go file, by the path of its package in the module, and what it imports.
type importer struct {
	file    string
	imports []string
}

func (i importer) pkg() string {
	if dir := path.Dir(i.file); dir != "." {
		return dir
	}
	return ""
}

// breaches returns what in the files is against the house.
func breaches(house map[string]place, files []importer) []string {
	var found []string
	empty := maps.Clone(house)
	for _, file := range files {
		pkg := file.pkg()
		here, ok := house[pkg]
		if !ok {
			found = append(found, fmt.Sprintf("%s: package %q has no place in the house", file.file, pkg))
			continue
		}
		delete(empty, pkg)
		for _, imported := range file.imports {
			if why := here.refuses(house, imported, strings.HasSuffix(file.file, "_test.go")); why != "" {
				found = append(found, fmt.Sprintf("%s imports %q: %s", file.file, imported, why))
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(empty)) {
		found = append(found, fmt.Sprintf("the house has a place for %q, and there is no such package", pkg))
	}
	return found
}

func (p place) refuses(house map[string]place, imported string, test bool) string {
	inside, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		allowed := p.outside
		if test {
			allowed = slices.Concat(allowed, outsideForTests)
		}
		if standard(imported) ||
			slices.ContainsFunc(allowed, func(a string) bool { return a == anything || within(a, imported) }) {
			return ""
		}
		return "the outside module is not for this package"
	}
	there, ok := house[inside]
	switch {
	case !ok:
		return "it has no place in the house"
	case there.floor < p.floor, slices.Contains(p.beside, inside), test && there.floor == p.floor:
		return ""
	case there.floor == p.floor:
		return "it stands beside, and is not named there"
	}
	return fmt.Sprintf("it stands on floor %d, above floor %d", there.floor, p.floor)
}

// standard reports whether an import is of the standard library, whose paths alone begin without a
// dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether an import path is that of the module or package, or below it.
func within(module, imported string) bool {
	return imported == module || strings.HasPrefix(imported, module+"/")
}

// Files are read as they are, not as one platform builds them: a breach behind a build constraint
// is one too.
func TestLayering(t *testing.T) {
	var files []importer
	for _, name := range repositoryFiles(t) {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") || nested(name) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Errorf("read imports: %v", err)
			continue
		}
		file := importer{file: name}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Errorf("%s: import %s: %v", name, spec.Path.Value, err)
			}
			file.imports = append(file.imports, imported)
		}
		files = append(files, file)
	}
	for _, breach := range breaches(house, files) {
		t.Error(breach)
	}
}

// The check itself finds each kind of breach.
func TestLayeringFindsBreaches(t *testing.T) {
	small := map[string]place{
		"low":    {floor: 1},
		"store":  {floor: 2, outside: []string{bbolt}},
		"beside": {floor: 2, beside: []string{"store"}},
		"high":   {floor: 3},
	}
	clean := []importer{
		{"low/a.go", []string{"context", "net/http"}},
		{"low/a_test.go", []string{module + "/low", goCmp + "/cmp", rapid}},
		{"store/a.go", []string{module + "/low", bbolt, bbolt + "/errors"}},
		{"beside/a.go", []string{module + "/store", module + "/low"}},
		{"store/a_test.go", []string{module + "/beside"}},
		{"high/a.go", []string{module + "/store", module + "/low"}},
	}
	if found := breaches(small, clean); len(found) > 0 {
		t.Errorf("clean files: have breaches %q", found)
	}
	for _, tt := range []struct {
		name string
		file importer
	}{
		{"upwards", importer{"low/b.go", []string{module + "/high"}}},
		{"upwards in a test", importer{"store/b_test.go", []string{module + "/high"}}},
		{"sideways without a word", importer{"store/b.go", []string{module + "/beside"}}},
		{"of no place", importer{"high/b.go", []string{module + "/new"}}},
		{"package without a place", importer{"new/a.go", nil}},
		{"package in the root without a place", importer{"a.go", nil}},
		{"outside module of another package", importer{"high/b.go", []string{bbolt}}},
		{"outside module with the same beginning", importer{"store/b.go", []string{bbolt + "x"}}},
		{"test module outside of a test", importer{"high/b.go", []string{goCmp + "/cmp"}}},
		{"unknown module in a test", importer{"high/b_test.go", []string{"github.com/stretchr/testify/assert"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if found := breaches(small, append(slices.Clone(clean), tt.file)); len(found) != 1 {
				t.Errorf("want one breach, have %q", found)
			}
		})
	}
	t.Run("place without a package", func(t *testing.T) {
		if found := breaches(small, clean[:len(clean)-1]); len(found) != 1 {
			t.Errorf("want one breach, have %q", found)
		}
	})
}

// nested reports whether a file is of a module of its own inside this one: its packages have no
// place in the house, and nobody can import them from here.
func nested(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(repository, path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// repositoryFiles returns every file of the repository, but for git's own and what npm installed.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case (entry.Name() == ".git" || entry.Name() == "node_modules") && entry.IsDir():
			return fs.SkipDir
		case entry.Type().IsRegular() && entry.Name() != ".git":
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the repository: %v", err)
	}
	return files
}
