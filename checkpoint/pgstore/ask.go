package pgstore

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
)

// A question is a read of at most one row, on its way to the server.
type question struct {
	sql       string
	arguments []any
	scan      func(row pgx.Row) error // into what the caller looks at once done has been answered
	until     time.Time               // nobody waits for the answer any more
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
	q := &question{sql, arguments, scan, time.Now().Add(s.opts.Timeout), make(chan error, 1)}
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
	err := s.answerTogether(group)
	if err == nil {
		return
	}
	for _, q := range group {
		if len(group) > 1 && answered(err) {
			q.done <- s.answerOne(q)
		} else {
			q.done <- err
		}
	}
}

// answered reports whether an error is one of the server's, or what it said made no sense.
func answered(err error) bool { return state(err) != "" || reasonOf(err) == Broken }

func (s *Store) answerTogether(group []*question) error {
	ctx, cancel := context.WithDeadline(s.ctx, group[len(group)-1].until) // nobody waits any longer
	defer cancel()
	found := make([]error, len(group))
	err := s.repeat(s.ctx, ctx, func() error {
		var batch pgx.Batch
		for i, q := range group {
			batch.Queue(q.sql, q.arguments...).QueryRow(func(row pgx.Row) error {
				if found[i] = q.scan(row); errors.Is(found[i], pgx.ErrNoRows) {
					return nil // an answer like any other
				}
				return found[i]
			})
		}
		return s.pool.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return err
	}
	for i, q := range group {
		q.done <- found[i]
	}
	return nil
}

func (s *Store) answerOne(q *question) error {
	ctx, cancel := context.WithDeadline(s.ctx, q.until)
	defer cancel()
	return s.repeat(s.ctx, ctx, func() error { return q.scan(s.pool.QueryRow(ctx, q.sql, q.arguments...)) })
}
