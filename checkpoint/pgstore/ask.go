package pgstore

import (
	"context"
	"errors"

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
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout) // it waits for others, too
	defer cancel()
	q := &question{sql, arguments, scan, make(chan error, 1)}
	select {
	case s.questions <- q:
	case <-ctx.Done():
		return explain(ctx, ctx.Err())
	case <-s.ctx.Done():
		return errClosed
	}
	select {
	case err := <-q.done:
		return explain(ctx, err)
	case <-ctx.Done():
		return explain(ctx, ctx.Err())
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
	err := s.answering(func(ctx context.Context) error { return s.answerTogether(ctx, group) })
	if err == nil {
		return
	}
	for _, q := range group {
		if len(group) > 1 && answered(err) {
			q.done <- s.answering(func(ctx context.Context) error { return q.scan(s.pool.QueryRow(ctx, q.sql, q.arguments...)) })
		} else {
			q.done <- err
		}
	}
}

// answered reports whether an error is one of the server's, or what it said made no sense.
func answered(err error) bool { return state(err) != "" || reasonOf(err) == Broken }

// answering asks, again where a connection turns out to be lost.
func (s *Store) answering(request func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	var err error
	for range maxTries {
		if err = request(ctx); err == nil || !s.again(ctx, err) {
			break
		}
	}
	return err
}

func (s *Store) answerTogether(ctx context.Context, group []*question) error {
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
	if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for i, q := range group {
		q.done <- found[i]
	}
	return nil
}
