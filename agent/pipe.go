package agent

import (
	"context"
	"sync"

	"github.com/cloudwego/eino/schema"
)

// streams are the streams that models and tools write in one drive of an agent. Where something
// beside a stream fails, eino drops the stream without closing it. Its writer would wait for ever,
// and hold its claim, so that the gate could not be closed.
type streams struct {
	writing sync.WaitGroup

	mu      sync.Mutex // guards what follows
	over    bool
	closers []func()
}

type streamsKey struct{}

// end closes the streams, so that no writer waits for eino any more, and returns when all writers
// have ended.
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

// add notes a stream, which end closes. It reports false, and notes nothing, after end.
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

// pipe makes a stream of the drive to which ctx belongs. Wherever there is a run there is a drive.
func pipe[T any](ctx context.Context) (*schema.StreamReader[T], *writer[T]) {
	reader, to := schema.Pipe[T](1)
	reader.SetAutomaticClose() // lets it be closed twice: by eino, and by end
	s := ctx.Value(streamsKey{}).(*streams)
	// A reader that becomes unreachable closes itself, and what is in it is lost: s keeps it.
	if !s.add(reader.Close) {
		reader.Close()
		return reader, &writer[T]{to, func() {}}
	}
	return reader, &writer[T]{to, s.writing.Done}
}

// feed runs write in a goroutine, for which end waits, and closes the stream after it.
func (w *writer[T]) feed(write func()) {
	go func() {
		defer w.ended()
		defer w.Close()
		write()
	}()
}
