package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
)

// A process is what the owners that joined here are alive by: one row, which is written a few times
// in each Options.Lapse. Once it lapsed it never lives again; the store makes another one.
type process struct {
	id     string
	until  time.Time     // by this machine's monotonic clock, never later than the server has it
	lapsed chan struct{} // closed when it lapsed
}

// start makes the first process.
func (s *Store) start(ctx context.Context) error {
	if s.opts.ReadOnly {
		return s.askTime(ctx)
	}
	return s.startProcess(ctx)
}

func (s *Store) askTime(ctx context.Context) error {
	var now int64
	asked := time.Now()
	if err := s.pool.QueryRow(ctx, s.sql.time).Scan(&now); err != nil {
		return err
	}
	s.tell(now, asked)
	return nil
}

func (s *Store) startProcess(ctx context.Context) error {
	if err := s.writeOne(ctx, nil, s.sql.bury); err != nil {
		return err
	}
	asked := time.Now()
	p := &process{id: rand.Text(), until: asked.Add(s.opts.Lapse), lapsed: make(chan struct{})}
	var now int64
	scan := func(row pgx.Row) error { return row.Scan(&now) }
	if err := s.writeOne(ctx, scan, s.sql.joinProcess, p.id, s.opts.Lapse.Microseconds()); err != nil {
		return err
	}
	s.tell(now, asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

// retry is how soon a sign of life is given again that did not get through.
const retry = 100 * time.Millisecond

// live gives the signs of life until the store is closed. It logs when they get through no more,
// each reason once, and when they do again.
func (s *Store) live() {
	told := make(map[Reason]bool)
	for pause := s.opts.Lapse / 5; ; {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		pause = s.opts.Lapse / 5
		err := s.beat()
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			pause = min(pause, retry)
			if reason := reasonOf(err); !told[reason] {
				s.log.Warn("no sign of life given: it is tried again until one gets through", "error", explain(s.ctx, err))
				told[reason] = true
			}
		case len(told) > 0:
			s.log.Info("signs of life are given again")
			clear(told)
		}
	}
}

// beat gives one sign of life, and writes down who left.
func (s *Store) beat() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	if s.opts.ReadOnly {
		return s.askTime(ctx)
	}
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return s.startProcess(ctx)
	}
	ctx, cancelBeat := context.WithDeadline(ctx, p.until)
	defer cancelBeat()
	asked := time.Now()
	var now int64
	scan := func(row pgx.Row) error { return row.Scan(&now) }
	err := s.writeOne(ctx, scan, s.sql.beat, p.id, s.opts.Lapse.Microseconds())
	switch {
	case err == nil:
		s.tell(now, asked)
		p.until = asked.Add(s.opts.Lapse)
		return s.writeLeft(ctx)
	case errors.Is(err, checkpoint.ErrNotFound):
		s.lapse(p)
		return errors.New("it came too late for the server")
	case !time.Now().Before(p.until):
		s.lapse(p)
	}
	return err
}

// lapse ends the memberships of a process.
func (s *Store) lapse(p *process) {
	s.log.Warn("this process is not counted alive any more: its claims are given up", "process", p.id, "lapse", s.opts.Lapse)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
	close(p.lapsed)
}

// writeLeft deletes the owners that left while the server could not be told.
func (s *Store) writeLeft(ctx context.Context) error {
	s.mu.Lock()
	var owners [][]byte
	for owner := range s.left {
		owners = append(owners, []byte(owner))
	}
	s.mu.Unlock()
	if len(owners) == 0 {
		return nil
	}
	if err := s.writeOne(ctx, nil, s.sql.leave, owners); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owner := range owners {
		delete(s.left, string(owner))
	}
	return nil
}

// endProcess ends the memberships of a store that is closed, so that nobody has to wait for them.
// Its commit is waited for, and makes durable what lazy ones left.
func (s *Store) endProcess() error {
	if s.opts.ReadOnly {
		return nil
	}
	s.mu.Lock()
	p := s.process
	s.process = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	if p == nil {
		return explain(ctx, s.flush(ctx))
	}
	return s.writeOne(ctx, nil, s.sql.end, p.id)
}
