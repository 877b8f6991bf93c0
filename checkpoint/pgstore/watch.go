package pgstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint"
)

// Watch implements [checkpoint.Watcher]. Commits of this process wake at once, those of others by a
// notice of the server. Notices are lost while the connection that listens is: when it is there
// again, everybody is woken.
func (s *Store) Watch(id checkpoint.ID) (<-chan struct{}, func()) { return s.hub.Watch(id) }

// channel is the one that notices of this schema go through.
func (s *Store) channel() string { return "parley/" + s.opts.Schema }

// listen starts the goroutine that listens, where one shall.
func (s *Store) listen(url string) error {
	if s.opts.Quiet || s.opts.Pooler && s.opts.ListenURL == "" {
		return nil
	}
	if s.opts.ListenURL != "" {
		url = s.opts.ListenURL
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	toPrimary(&config.Config)
	config.RuntimeParams["application_name"] = "parley listens"
	s.running.Go(func() { s.listenOn(config) })
	return nil
}

// The pause before a lost connection is opened anew grows from the first to the second.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// listenOn listens until the store is closed. It logs once when the connection is lost, and once
// when there is one again.
func (s *Store) listenOn(config *pgx.ConnConfig) {
	pause, lost := firstPause, false
	for s.ctx.Err() == nil {
		err := s.hear(config, func() {
			if lost {
				s.log.Info("listening again")
			}
			pause, lost = firstPause, false
		})
		if s.ctx.Err() != nil {
			return
		}
		if !lost {
			s.log.Warn("not listening: who waits on this replica looks again by itself", "error", explain(s.ctx, err))
		}
		lost = true
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

// hear listens on one connection until it is lost.
func (s *Store) hear(config *pgx.ConnConfig, begun func()) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(s.ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	begun()
	s.hub.ChangedAll()
	for {
		notice, err := conn.WaitForNotification(s.ctx)
		if err != nil {
			return err
		}
		ids, err := hex.DecodeString(notice.Payload)
		if err != nil {
			continue // not ours: a notice is a hint
		}
		for ; len(ids) >= len(checkpoint.ID{}); ids = ids[len(checkpoint.ID{}):] {
			s.hub.Changed(checkpoint.ID(ids[:len(checkpoint.ID{})]))
		}
	}
}
