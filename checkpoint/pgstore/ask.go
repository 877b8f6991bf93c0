package pgstore

import (
	"bytes"
	"context"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
)

// A question is a read of at most one row, on its way to the server.
type question struct {
	sql   string // finds rows by their keys, which are its first column
	key   []byte
	scan  func(row pgx.Row) error // what follows the key, into what the caller looks at once done has been answered
	until time.Time               // nobody waits for the answer any more
	done  chan error              // holds one

	found bool // of the goroutine that answers it
}

// askers is how many connections carry questions: a large record holds up only those that go with
// it.
const askers = 2

// maxQuestions is how many go together.
const maxQuestions = 64

// ask reads the row of a key, again where a connection turns out to be lost. What callers ask at
// the same time goes to the server in one round trip, and in one statement where the words are the
// same. Where it returns an error, scan may still be running.
func (s *Store) ask(ctx context.Context, sql string, key []byte, scan func(row pgx.Row) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	q := &question{sql: sql, key: key, scan: scan, until: time.Now().Add(s.opts.Timeout), done: make(chan error, 1)}
	bounded, cancel := context.WithDeadline(ctx, q.until)
	defer cancel()
	select {
	case s.questions <- q:
	case <-bounded.Done():
		return explain(ctx, bounded.Err())
	case <-s.ctx.Done():
		return errClosed
	}
	select {
	case err := <-q.done:
		return explain(ctx, err)
	case <-bounded.Done():
		return explain(ctx, bounded.Err())
	case <-s.ctx.Done():
		return errClosed
	}
}

// answerAll takes what is asked, and what was asked meanwhile the next time.
func (s *Store) answerAll() {
	for {
		var group []*question
		select {
		case q := <-s.questions:
			group = append(group, q)
		case <-s.ctx.Done():
			return
		}
		runtime.Gosched() // those who are about to ask go along
		for more := true; more && len(group) < maxQuestions; {
			select {
			case q := <-s.questions:
				group = append(group, q)
			default:
				more = false
			}
		}
		s.answer(group)
	}
}

// answer answers the questions together or, where there is an error in an answer, each on its own:
// it takes no other along. Where there is no answer, none of them has one.
func (s *Store) answer(group []*question) {
	err := s.find(group)
	for _, q := range group {
		alone := err
		if err != nil && len(group) > 1 && answered(err) {
			alone = s.find([]*question{q})
		}
		if alone == nil && !q.found {
			alone = pgx.ErrNoRows
		}
		q.done <- alone
	}
}

// answered reports whether an error is one of the server's, or what it said made no sense.
func answered(err error) bool { return state(err) != "" || reasonOf(err) == Broken }

// find finds the rows of the questions, those with the same words by one statement.
func (s *Store) find(group []*question) error {
	ctx, cancel := context.WithDeadline(s.ctx, group[len(group)-1].until) // nobody waits any longer
	defer cancel()
	same := make(map[string][]*question)
	for _, q := range group {
		same[q.sql] = append(same[q.sql], q)
	}
	return s.repeat(s.ctx, ctx, func() error {
		var batch pgx.Batch
		for sql, questions := range same {
			var keys [][]byte
			for _, q := range questions {
				keys, q.found = append(keys, q.key), false
			}
			batch.Queue(sql, keys).Query(func(rows pgx.Rows) error { return scanFound(rows, questions) })
		}
		return s.pool.SendBatch(ctx, &batch).Close()
	})
}

func scanFound(rows pgx.Rows, questions []*question) error {
	for rows.Next() {
		var key []byte
		if err := rows.Scan(append([]any{&key}, make([]any, len(rows.FieldDescriptions())-1)...)...); err != nil {
			return err
		}
		for _, q := range questions {
			if !bytes.Equal(q.key, key) {
				continue
			}
			q.found = true
			if err := q.scan(behindKey{rows}); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

// behindKey is a row without its first column.
type behindKey struct{ row pgx.Row }

func (r behindKey) Scan(to ...any) error { return r.row.Scan(append([]any{nil}, to...)...) }
