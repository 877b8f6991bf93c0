package pgstore

import (
	"context"
	"errors"
	"runtime"

	"github.com/jackc/pgx/v5"
)

// A question is a read of at most one row, on its way to the server.
type question struct {
	sql       string
	arguments []any
	scan      func(row pgx.Row) error // into what the caller looks at once done has been answered
	done      chan error              // holds one
}

// askers is how many connections carry questions: a large record holds up only those that go with
// it.
const askers = 2

// maxQuestions is how many go together.
const maxQuestions = 64

// ask reads one row, again where a connection turns out to be lost. What callers ask at the same
// time goes to the server in one round trip. Where it returns an error, scan may still be running.
func (s *Store) ask(ctx context.Context, sql string, scan func(row pgx.Row) error, arguments ...any) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	q := &question{sql, arguments, scan, make(chan error, 1)}
	select {
	case s.questions <- q:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errClosed
	}
	select {
	case err := <-q.done:
		return explain(ctx, err)
	case <-ctx.Done():
		return ctx.Err()
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

// answer answers the questions together or, where that fails, each on its own: one that is answered
// with an error takes no other along.
func (s *Store) answer(group []*question) {
	if len(group) > 1 && s.answerTogether(group) {
		return
	}
	for _, q := range group {
		q.done <- s.answerOne(q)
	}
}

func (s *Store) answerTogether(group []*question) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	var batch pgx.Batch
	found := make([]error, len(group))
	for i, q := range group {
		batch.Queue(q.sql, q.arguments...).QueryRow(func(row pgx.Row) error {
			if found[i] = q.scan(row); errors.Is(found[i], pgx.ErrNoRows) {
				return nil // an answer like any other
			}
			return found[i]
		})
	}
	if s.pool.SendBatch(ctx, &batch).Close() != nil {
		return false
	}
	for i, q := range group {
		q.done <- found[i]
	}
	return true
}

func (s *Store) answerOne(q *question) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	var err error
	for range maxTries {
		err = q.scan(s.pool.QueryRow(ctx, q.sql, q.arguments...))
		if err == nil || !s.again(ctx, reasonOf(err)) {
			return err
		}
	}
	return err
}
