package agent

import (
	"context"
	"sync"

	"github.com/cloudwego/eino/schema"
)

// streams are those that models and tools write in one drive of an agent. Where something beside
// it fails eino drops a stream without closing it, and who writes it would wait for ever: with its
// claim held, so that the gate could not be closed.
type streams struct {
	writing sync.WaitGroup

	mu      sync.Mutex // guards what follows
	over    bool
	closers []func()
}

type streamsKey struct{}

// end lets nobody wait for eino any more, and returns when all that is written here has ended.
func (s *streams) end() {
	s.mu.Lock()
	closers := s.closers
	s.closers, s.over = nil, true
	s.mu.Unlock()
	for _, closeReader := range closers {
		closeReader()
	}
	s.writing.Wait()
}

// add notes a stream. It reports whether the drive goes on.
func (s *streams) add(closeReader func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.closers = append(s.closers, closeReader)
	s.writing.Add(1)
	return true
}

// A writer writes one stream of a drive.
type writer[T any] struct {
	*schema.StreamWriter[T]
	ended func()
}

// pipe makes a stream of the drive that ctx is of; there is one wherever there is a run.
func pipe[T any](ctx context.Context) (*schema.StreamReader[T], *writer[T]) {
	reader, to := schema.Pipe[T](1)
	reader.SetAutomaticClose() // eino may close it, and end does
	s := ctx.Value(streamsKey{}).(*streams)
	if !s.add(reader.Close) { // which also keeps it reachable: closed by itself, it would lose what is in it
		reader.Close()
		return reader, &writer[T]{to, func() {}}
	}
	return reader, &writer[T]{to, s.writing.Done}
}

// feed runs what writes the stream.
func (w *writer[T]) feed(write func()) {
	go func() {
		defer w.ended()
		defer w.Close()
		write()
	}()
}
