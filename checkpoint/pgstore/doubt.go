package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// doubt takes note of a group whose outcome is unknown. What is read back of it may be applied and
// yet not on the disk, or not on the standby that was to be waited for.
func (s *Store) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts++
}

// overcome makes durable whatever a commit of unknown outcome may have left, before a record is
// read that others act upon (R25): a commit that is waited for takes along all that came before it.
func (s *Store) overcome(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if _, is := s.inDoubt(); !is {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := take(bounded, s.flushing); err != nil {
		return explain(ctx, err)
	}
	defer release(s.flushing)
	doubts, is := s.inDoubt()
	if !is { // somebody else overcame it
		return nil
	}
	if err := s.repeat(ctx, bounded, func() error { return s.flush(bounded) }); err != nil {
		return explain(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = max(s.settled, doubts)
	return nil
}

// inDoubt returns how many groups had an unknown outcome, and whether one of them may not be
// durable.
func (s *Store) inDoubt() (doubts uint64, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubts, s.doubts > s.settled
}

// flush makes a commit that changes nothing, and waits for the disk.
func (s *Store) flush(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	told := conn.Conn().PgConn().CustomData()
	delete(told, brokenWait)
	var settings string
	if err := conn.QueryRow(ctx, s.sql.flush).Scan(&settings); err != nil {
		return err
	}
	return durable(settings, told[brokenWait])
}

// durable refuses a commit that the server called a success, and that may be lost.
func durable(settings string, warning any) error {
	switch {
	case strings.Contains(settings, " off"):
		return &ServerError{Unsafe, errors.New(settings)}
	case warning != nil:
		return &ServerError{Unsafe, fmt.Errorf("committed with a warning: %v", warning)}
	}
	return nil
}
