package pgstore

import (
	"context"
	"fmt"
	"runtime"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-go/parley/checkpoint"
)

// commitAll is the committer: it takes what is in the queue as one group, and what comes meanwhile
// as the next. So the groups are the larger, the slower the server, and there is no timer.
func (s *Store) commitAll() {
	defer close(s.drained)
	var later []*request // did not fit into the group before
	for {
		g := newGroup()
		for _, r := range later {
			g.add(r)
		}
		if len(later) == 0 {
			r := s.next()
			if r == nil {
				return
			}
			g.add(r)
		}
		runtime.Gosched() // those who are about to commit go along
		for more := true; more && len(g.later) < maxGroup; {
			select {
			case r := <-s.queue:
				g.add(r)
			default:
				more = false
			}
		}
		s.commitGroup(g)
		later = g.later
	}
}

// next waits for a request; nil: the store is closed, and there are no more.
func (s *Store) next() *request {
	select {
	case r := <-s.queue:
		return r
	case <-s.closing:
	}
	select { // it came before the end
	case r := <-s.queue:
		return r
	default:
		return nil
	}
}

// commitGroup commits the group and answers the callers.
func (s *Store) commitGroup(g *group) {
	batches := g.claim()
	applied := make(map[*request]bool)
	defer g.settle(applied)
	if len(batches) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	verdicts := make([]error, len(batches))
	err := s.trying(ctx, func(conn *pgxpool.Conn) error { return s.transact(ctx, conn, batches, verdicts) })
	if err != nil {
		s.doubt()
	}
	for i, r := range g.requests {
		answer := verdicts[i]
		if err != nil {
			answer = fmt.Errorf("commit: %w", err)
		}
		if answer == nil {
			applied[r] = true
			s.changed(r.batch)
		}
		r.done <- answer
	}
}

// trying makes a request that writes, and makes it again only where the server executed nothing of
// it.
func (s *Store) trying(ctx context.Context, request func(conn *pgxpool.Conn) error) error {
	var err error
	for range maxTries {
		var conn *pgxpool.Conn
		again := true
		if conn, err = s.pool.Acquire(ctx); err == nil {
			err = request(conn)
			again = nothingExecuted(err)
			conn.Release()
		}
		if err == nil {
			return nil
		}
		if s.distrust(err); !again || ctx.Err() != nil {
			break
		}
	}
	return explain(ctx, err)
}

// nothingExecuted reports whether the server has certainly done nothing of a request that failed.
func nothingExecuted(err error) bool {
	switch state(err) {
	case serialization, deadlock, readOnlyServer:
		return true
	}
	return stale(err) || pgconn.SafeToRetry(err)
}

// writeOne makes one statement that writes, and scans the row that it returns, if it is to return
// one.
func (s *Store) writeOne(ctx context.Context, scan func(row pgx.Row) error, sql string, arguments ...any) error {
	return s.trying(ctx, func(conn *pgxpool.Conn) error {
		if scan != nil {
			return scan(conn.QueryRow(ctx, sql, arguments...))
		}
		_, err := conn.Exec(ctx, sql, arguments...)
		return err
	})
}

// transact commits what of the batches nothing speaks against, and says of each other one what
// does. It supposes that there is nothing; where that was wrong the transaction was aborted, and it
// looks before it writes.
func (s *Store) transact(ctx context.Context, conn *pgxpool.Conn, batches []*checkpoint.Batch, verdicts []error) error {
	clear(verdicts)
	err := s.suppose(ctx, conn, batches)
	if err == nil || !refused(err) {
		return err
	}
	if err := rollback(ctx, conn); err != nil {
		return err
	}
	for range maxTries {
		clear(verdicts)
		err = s.judgeAndWrite(ctx, conn, batches, verdicts)
		if err == nil || !refused(err) {
			return err
		}
		// An owner's time was over between the look and the write.
		if err := rollback(ctx, conn); err != nil {
			return err
		}
	}
	return err
}

// refused reports whether what a statement expected was not so.
func refused(err error) bool {
	code := state(err)
	return code == divisionByZero || code == uniqueViolation
}

func rollback(ctx context.Context, conn *pgxpool.Conn) error {
	if conn.Conn().PgConn().TxStatus() == 'I' {
		return nil
	}
	_, err := conn.Exec(ctx, "ROLLBACK")
	return err
}

// suppose writes all of the batches in one round trip, or none.
func (s *Store) suppose(ctx context.Context, conn *pgxpool.Conn, batches []*checkpoint.Batch) error {
	w := s.newWriting(batches)
	for _, sql := range s.begin() {
		w.script.add(sql)
	}
	w.queue(nil)
	return s.send(ctx, conn, w)
}

// begin begins a transaction. What a session is told elsewhere each transaction is told where there
// are no sessions.
func (s *Store) begin() []string {
	begin := []string{"BEGIN ISOLATION LEVEL READ COMMITTED"}
	if s.opts.Pooler {
		statement, idle, whole := s.opts.timeouts()
		begin = append(begin, fmt.Sprintf(s.sql.bound, statement, idle, whole))
	}
	return begin
}

// judgeAndWrite takes the lock that puts all commits in one order, looks at what is stored, and
// writes the batches that nothing speaks against.
func (s *Store) judgeAndWrite(ctx context.Context, conn *pgxpool.Conn, batches []*checkpoint.Batch, verdicts []error) error {
	found, err := s.look(ctx, conn, batches)
	if err != nil {
		return err
	}
	var good []*checkpoint.Batch
	for i, b := range batches {
		if verdicts[i] = found.judge(b); verdicts[i] == nil {
			good = append(good, b)
		}
	}
	if len(good) == 0 {
		return rollback(ctx, conn)
	}
	w := s.newWriting(good)
	w.queue(found.released(good))
	return s.send(ctx, conn, w)
}

// send sends the statements of a transaction and its end.
func (s *Store) send(ctx context.Context, conn *pgxpool.Conn, w *writing) error {
	pg := conn.Conn().PgConn()
	delete(pg.CustomData(), brokenWait)
	defer uncancelled(pg)()
	w.script.add("COMMIT")
	ended, err := w.script.run(ctx, conn.Conn(), s.prepares)
	if err != nil {
		return err
	}
	s.raiseFloor(w.floor)
	if ended != "COMMIT" {
		return &ServerError{Broken, fmt.Errorf("COMMIT was answered with %q", ended)}
	}
	return durable(w.settings, pg.CustomData()[brokenWait])
}
