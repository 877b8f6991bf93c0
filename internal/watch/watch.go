package watch

import (
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// A Hub keeps who waits for which record. The zero Hub is ready; it is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	waiting map[checkpoint.ID]*waiters
}

type waiters struct {
	changed chan struct{}
	count   int
}

// Watch implements [checkpoint.Watcher].
func (h *Hub) Watch(id checkpoint.ID) (<-chan struct{}, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiting[id]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		if h.waiting == nil {
			h.waiting = make(map[checkpoint.ID]*waiters)
		}
		h.waiting[id] = w
	}
	w.count++
	return w.changed, sync.OnceFunc(func() { h.leave(id, w) })
}

func (h *Hub) leave(id checkpoint.ID, w *waiters) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.count--; w.count == 0 && h.waiting[id] == w {
		delete(h.waiting, id)
	}
}

// Changed wakes everybody who waits for the record.
func (h *Hub) Changed(id checkpoint.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[id]; w != nil {
		close(w.changed)
		delete(h.waiting, id)
	}
}

// ChangedAll wakes everybody.
func (h *Hub) ChangedAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.waiting {
		close(w.changed)
	}
	clear(h.waiting)
}
