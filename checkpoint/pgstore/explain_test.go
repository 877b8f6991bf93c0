package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/internal/pgtest"
)

// Every statement leads through an index to what it touches: none goes through a table that grows.
// This is so for the plan of a store's own connection, which it makes while the tables are small and
// keeps, and without its settings, as behind a pooler, once the tables have grown. The test is inside
// the package, since it explains the statements themselves; it fails for a statement that nobody
// thought of.
func TestPlans(t *testing.T) {
	url := pgtest.URL(t)
	ctx := context.Background()
	o, err := (&Options{Schema: pgtest.Schema()}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := Migrate(ctx, url, &o); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	q := inSchema(o.Schema)
	defer conn.Exec(ctx, "DROP SCHEMA "+o.Schema+" CASCADE")
	s, own := newStatements(o.Schema), ownConnection(t, url, &o)
	fill := func(from, to int) {
		for _, sql := range []string{
			`INSERT INTO parley.record SELECT id, 1, 2, scope, CASE WHEN n % 10 = 0 THEN scope || id END, 1000 + n, '', 0, 0, 'data' FROM (
				SELECT n, decode(lpad(to_hex(n), 24, '0'), 'hex') AS id, decode(lpad(to_hex(n % 1000), 64, '0'), 'hex') AS scope
				FROM generate_series($1::int, $2) n) made`,
			`INSERT INTO parley.record_row SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), 'a', 'data' FROM generate_series($1::int, $2) n`,
			`INSERT INTO parley.audit SELECT n, 'entry' FROM generate_series($1::int, $2) n`,
			`INSERT INTO parley.usage SELECT decode(lpad(to_hex(n), 64, '0'), 'hex'), 1, 1 FROM generate_series($1::int, $2) n`,
			`INSERT INTO parley.process SELECT 'p' || n, now() + interval '1 hour' FROM generate_series($1::int, $2) n`,
			`INSERT INTO parley.member SELECT convert_to('m' || n, 'UTF8'), 'p' || n FROM generate_series($1::int, $2) n`,
		} {
			if _, err := conn.Exec(ctx, q.Replace(sql), from, to); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	wantIndexes(t, own, s)
	fill(1, 60)
	wantIndexes(t, own, s)
	fill(61, 50000)
	for _, table := range []string{"record", "record_row", "audit", "usage", "process", "member"} {
		if _, err := conn.Exec(ctx, q.Replace("ANALYZE parley."+table)); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := conn.Exec(ctx, "SET plan_cache_mode = "+mode); err != nil {
			t.Fatal(err)
		}
		wantIndexes(t, conn, s)
	}
	wantIndexes(t, own, s)
}

// ownConnection has the settings of a store's connections.
func ownConnection(t *testing.T, url string, o *Options) *pgx.Conn {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	o.configure(config)
	conn, err := pgx.ConnectConfig(context.Background(), config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// wantIndexes explains all statements.
func wantIndexes(t *testing.T, conn *pgx.Conn, s statements) {
	t.Helper()
	id, scope := make([]byte, 12), make([]byte, 32)
	ids, numbers := [][]byte{id}, []int64{1}
	arguments := map[string][]any{
		"load": {ids}, "find": {ids}, "byID": {ids}, "known": {ids}, "holders": {ids}, "usage": {ids}, "owners": {ids},
		"list": {[]int16{1, 2, 16}, scope, id, scope, 101}, "due": {int64(2000), int64(0), id, 17}, "rows": {id, id, 10, 1000},
		"audit": {int64(100), 10}, "joinProcess": {"p", int64(1)}, "joinMember": {id, "p1"}, "leave": {ids}, "beat": {"p1", int64(1)},
		"end": {"p1"}, "live": {ids, 1}, "remove": {ids, numbers, 1}, "release": {ids},
		"put": {ids, numbers, []int16{2}, [][]byte{scope}, [][]byte{nil}, numbers, ids, numbers, numbers, ids, numbers, 1},
		"row": {ids, ids, ids, numbers, 1}, "trim": {int64(100)}, "head": {ids, int64(1)}, "order": {}, "flush": {},
	}
	// These touch tables of one row or none, or all processes once in a process's life.
	without := map[string]bool{
		"ledger": true, "join": true, "joined": true, "meta": true, "notify": true, "lazy": true, "bound": true, "checks": true, "format": true, "time": true,
		"bury": true,
	}
	statements := reflect.ValueOf(s)
	for i := range statements.NumField() {
		name := statements.Type().Field(i).Name
		if without[name] {
			continue
		}
		given, ok := arguments[name]
		if !ok {
			t.Errorf("nobody explains %s", name)
			continue
		}
		wantIndex(t, conn, name, statements.Field(i).String(), given)
	}
}

func wantIndex(t *testing.T, conn *pgx.Conn, name, sql string, arguments []any) {
	t.Helper()
	ctx := context.Background()
	if _, err := conn.Exec(ctx, "PREPARE explained AS "+sql); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer conn.Exec(ctx, "DEALLOCATE explained")
	var text string
	if err := conn.QueryRow(ctx, "EXPLAIN (FORMAT JSON) EXECUTE explained"+literals(arguments)).Scan(&text); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	for _, bad := range plans[0].Plan.scans("") {
		t.Errorf("%s: %s\n%s", name, bad, text)
	}
}

// A plan is one node of what EXPLAIN says.
type plan struct {
	Node     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Filter   string
	Plans    []plan
}

// scans are the nodes that go through a table that grows. above is the node that reads this one:
// a limit ends a walk along an index that passes nothing over, such as the look for the least.
func (p plan) scans(above string) (bad []string) {
	grows := p.Relation != "head" && p.Relation != ""
	if grows && strings.HasSuffix(p.Node, "Seq Scan") {
		bad = append(bad, fmt.Sprintf("%s of %s", p.Node, p.Relation))
	}
	if grows && strings.HasPrefix(p.Node, "Index") && p.Cond == "" && (above != "Limit" || p.Filter != "") {
		bad = append(bad, fmt.Sprintf("%s of all of %s", p.Node, p.Index))
	}
	for _, below := range p.Plans {
		bad = append(bad, below.scans(p.Node)...)
	}
	return bad
}

// literals are the arguments of an EXECUTE, which takes no parameters.
func literals(arguments []any) string {
	var texts []string
	for _, argument := range arguments {
		v := reflect.ValueOf(argument)
		switch value := argument.(type) {
		case []byte:
			texts = append(texts, literal(value))
		case string:
			texts = append(texts, "'"+value+"'")
		default:
			if v.Kind() != reflect.Slice {
				texts = append(texts, fmt.Sprint(value))
				continue
			}
			var elements []string
			for i := range v.Len() {
				if bytes, ok := v.Index(i).Interface().([]byte); ok {
					elements = append(elements, literal(bytes))
				} else {
					elements = append(elements, fmt.Sprint(v.Index(i)))
				}
			}
			texts = append(texts, "ARRAY["+strings.Join(elements, ", ")+"]")
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

func literal(value []byte) string {
	if value == nil {
		return "NULL::bytea"
	}
	return fmt.Sprintf(`'\x%x'::bytea`, value)
}
