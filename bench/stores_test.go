package bench_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// BenchmarkInteraction on every store in one run, and on PostgreSQL beside its floors on the same
// server: the insert and the update of the same bytes with the same indexes, and nothing else. Each is
// in a transaction of its own (store=bare), the same pipelined over eight connections, so that none
// waits for the answer to the one before (store=pipelined), and those of all callers in one
// transaction while the one before is on its way (store=grouped). They have no audit trail, no sums, no
// finish mark and no fence. The tests' server is used, or the one that PARLEY_TEST_POSTGRES names.
func BenchmarkStores(b *testing.B) {
	url := pgtest.URL(b)
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("store=mem/callers=%d", n), func(b *testing.B) { interactions(b, openGate(b, memstore.New()), "deploy", n) })
		b.Run(fmt.Sprintf("store=bolt/callers=%d", n), func(b *testing.B) { interactions(b, openGate(b, openBolt(b)), "deploy", n) })
		b.Run(fmt.Sprintf("store=postgres/callers=%d", n), func(b *testing.B) {
			interactions(b, openGate(b, openPostgres(b, url)), "deploy", n)
		})
		b.Run(fmt.Sprintf("store=bare/callers=%d", n), func(b *testing.B) {
			t := newTable(b, url)
			measure(b, n, func(int64) error { return t.each(b.Context(), newID(b)) })
		})
		b.Run(fmt.Sprintf("store=pipelined/callers=%d", n), func(b *testing.B) {
			t := newTable(b, url)
			measure(b, n, t.through(b, t.serve(b, pipes, t.pipelined)))
		})
		b.Run(fmt.Sprintf("store=grouped/callers=%d", n), func(b *testing.B) {
			t := newTable(b, url)
			measure(b, n, t.through(b, t.serve(b, 1, t.grouped)))
		})
	}
}

func openPostgres(b *testing.B, url string) *pgstore.Store {
	o := &pgstore.Options{Schema: pgtest.Schema()}
	if err := pgstore.Migrate(b.Context(), url, o); err != nil {
		b.Fatal(err)
	}
	store, err := pgstore.Open(b.Context(), url, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		store.Close()
		drop(b, url, "SCHEMA "+o.Schema)
	})
	return store
}

func drop(b *testing.B, url, what string) {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), "DROP "+what+" CASCADE"); err != nil {
		b.Error(err)
	}
}

// A table is the floor on PostgreSQL.
type table struct {
	pool           *pgxpool.Pool
	insert, update string
	scope          []byte
	data           [2][]byte // of the question and of its answer
}

// A tableWrite is the insert or the update of one row.
type tableWrite struct {
	id   checkpoint.ID
	step int
	done chan error
}

func newTable(b *testing.B, url string) *table {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	name := pgtest.Schema()
	_, err = pool.Exec(b.Context(), "CREATE TABLE "+name+` (id bytea PRIMARY KEY, revision bigint NOT NULL, status smallint NOT NULL,
		scope bytea NOT NULL, due bigint NOT NULL, data bytea NOT NULL)`)
	for _, columns := range []string{"(status, scope, id)", "(due, id)"} {
		if err == nil {
			_, err = pool.Exec(b.Context(), "CREATE INDEX ON "+name+columns)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	sizes := sizesOf(b)
	t := &table{
		pool: pool, scope: make([]byte, 32),
		insert: "INSERT INTO " + name + " VALUES ($1, 1, 2, $2, $3, $4)",
		update: "UPDATE " + name + " SET revision = 2, status = 4, due = $3, data = $4 WHERE id = $1 AND revision = 1 AND scope = $2",
		data:   [2][]byte{make([]byte, sizes[raised].row), make([]byte, sizes[answered].row)},
	}
	b.Cleanup(func() {
		pool.Close()
		drop(b, url, "TABLE "+name)
	})
	return t
}

func (t *table) statement(step int, id checkpoint.ID) (string, []any) {
	sql := t.insert
	if step == answered {
		sql = t.update
	}
	return sql, []any{id[:], t.scope, dueOf(id), t.data[step]}
}

func dueOf(id checkpoint.ID) int64 { return int64(id[5]) + 1000 }

// each makes the two writes in transactions of their own.
func (t *table) each(ctx context.Context, id checkpoint.ID) error {
	for step := range t.data {
		sql, arguments := t.statement(step, id)
		if _, err := t.pool.Exec(ctx, sql, arguments...); err != nil {
			return err
		}
	}
	return nil
}

// through makes the two writes by way of the queue.
func (t *table) through(b *testing.B, queue chan<- *tableWrite) func(int64) error {
	return func(int64) error {
		id := newID(b)
		for step := range t.data {
			w := &tableWrite{id, step, make(chan error, 1)}
			queue <- w
			if err := <-w.done; err != nil {
				return err
			}
		}
		return nil
	}
}

// pipes is how many connections are pipelined over: with one each transaction would wait for the disk
// on its own.
const pipes = 8

// serve writes what is in the queue, and what comes meanwhile the next time, on each of so many
// connections.
func (t *table) serve(b *testing.B, connections int, write func(*pgxpool.Conn, []*tableWrite) error) chan<- *tableWrite {
	queue := make(chan *tableWrite, 512)
	var stopped sync.WaitGroup
	for range connections {
		conn, err := t.pool.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		stopped.Go(func() {
			defer conn.Release()
			for w := range queue {
				group := []*tableWrite{w}
				for range min(len(queue), 64) {
					select {
					case w, open := <-queue:
						if open {
							group = append(group, w)
						}
					default: // another connection took it
					}
				}
				err := write(conn, group)
				for _, w := range group {
					w.done <- err
				}
			}
		})
	}
	b.Cleanup(func() {
		close(queue)
		stopped.Wait()
	})
	return queue
}

// grouped writes them in one transaction.
func (t *table) grouped(conn *pgxpool.Conn, group []*tableWrite) error {
	var batch pgx.Batch
	for _, w := range group {
		sql, arguments := t.statement(w.step, w.id)
		batch.Queue(sql, arguments...)
	}
	return conn.SendBatch(context.Background(), &batch).Close()
}

// pipelined writes them in a transaction each, without waiting for the one before.
func (t *table) pipelined(conn *pgxpool.Conn, group []*tableWrite) error {
	ctx := context.Background()
	var prepared [2]*pgconn.StatementDescription
	for step := range prepared {
		sql, _ := t.statement(step, group[0].id)
		var err error
		if prepared[step], err = conn.Conn().Prepare(ctx, sql, sql); err != nil { // once for each connection
			return err
		}
	}
	p := conn.Conn().PgConn().StartPipeline(ctx)
	for _, w := range group {
		due := binary.BigEndian.AppendUint64(nil, uint64(dueOf(w.id)))
		p.SendQueryPrepared(prepared[w.step].Name, [][]byte{w.id[:], t.scope, due, t.data[w.step]}, []int16{1, 1, 1, 1}, nil)
		p.SendPipelineSync()
	}
	err := p.Flush()
	for range group {
		if err == nil {
			err = readTransaction(p)
		}
	}
	return errors.Join(err, p.Close())
}

// readTransaction reads what comes of one statement, up to its end.
func readTransaction(p *pgconn.Pipeline) error {
	for {
		result, err := p.GetResults()
		if err != nil {
			return err
		}
		switch result := result.(type) {
		case *pgconn.ResultReader:
			if _, err := result.Close(); err != nil {
				return err
			}
		case *pgconn.PipelineSync:
			return nil
		}
	}
}
