package acpbridge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// An outbound is what the SDK writes to. It gives the requests of the bridge their names on the
// wire: the SDK hands out the text of an answer for extension methods only, whose names begin with
// an underscore. And it does not wait for the client to read, so that one that stops reading stops
// nothing else: what is urgent is written to memory, and what is not waits for room.
type outbound struct {
	out  io.Writer
	sent func(text []byte) // is told of every message, and of nil when no more is taken

	mu      sync.Mutex // guards what follows
	waiting [][]byte
	size    int
	written int           // counts what was written
	err     error         // why no more is taken
	changed chan struct{} // closed and renewed when something of it changes
}

const (
	// room is how much may wait before updates are held up, and maxWaiting before the connection
	// is lost.
	room       = 1 << 20
	maxWaiting = 64 << 20
	// grace is how long a message may take once the connection is gone, or the bridge is closing.
	grace = time.Second
)

// extension is what the names of the bridge's requests begin with until they are written.
const extension = "_parley/"

var errNotReading = errors.New("the client does not read")

func newOutbound(out io.Writer, sent func(text []byte)) *outbound {
	return &outbound{out: out, sent: sent, changed: make(chan struct{})}
}

// Write takes one message; the SDK writes each in one piece.
func (o *outbound) Write(p []byte) (int, error) {
	text := renamed(p)
	if err := o.take(text); err != nil {
		o.sent(nil)
		return 0, err
	}
	o.sent(text)
	return len(p), nil
}

func (o *outbound) take(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.size+len(text) > maxWaiting {
		o.err = errNotReading
		o.notify()
	}
	if o.err == nil {
		o.waiting, o.size = append(o.waiting, text), o.size+len(text)
		o.notify()
	}
	return o.err
}

// renamed is a copy of the message under the name that it has on the wire. The SDK writes a request
// with its version, its id and its method first.
func renamed(p []byte) []byte {
	const version = `{"jsonrpc":"2.0",`
	rest, ok := bytes.CutPrefix(p, []byte(version))
	head := len(version)
	id, after, found := bytes.Cut(rest, []byte(","))
	if number, is := bytes.CutPrefix(id, []byte(`"id":`)); found && is && isNumber(number) {
		rest, head = after, head+len(id)+1
	}
	const method = `"method":"` + extension
	if !ok || !bytes.HasPrefix(rest, []byte(method)) {
		return bytes.Clone(p)
	}
	text := append([]byte(nil), p[:head]...)
	text = append(text, `"method":"`...)
	return append(text, rest[len(method):]...)
}

func isNumber(b []byte) bool {
	return len(b) > 0 && len(bytes.Trim(b, "0123456789")) == 0
}

// write writes what is waiting, until the connection is gone or out fails.
func (o *outbound) write(gone, closing <-chan struct{}) {
	ended := make(chan struct{})
	defer close(ended)
	go o.abandon(gone, closing, ended)
	for {
		o.mu.Lock()
		batch, changed, failed := o.waiting, o.changed, o.err != nil
		o.waiting = nil
		o.mu.Unlock()
		if failed {
			break
		}
		for _, text := range batch {
			_, err := o.out.Write(text)
			o.wrote(len(text), err)
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-gone:
			o.wrote(0, io.ErrClosedPipe)
		}
	}
	o.sent(nil)
}

// abandon gives up what is waiting where the connection is gone, or the bridge is closing, and out
// takes no message for a while: a client that does not read leaves a pipe that is full, and no
// error.
func (o *outbound) abandon(gone, closing, ended <-chan struct{}) {
	select {
	case <-gone:
	case <-closing:
	case <-ended:
		return
	}
	for before := -1; ; {
		o.mu.Lock()
		idle, written, changed := o.size == 0, o.written, o.changed
		o.mu.Unlock()
		next := time.After(grace)
		switch {
		case idle:
			before, next = -1, nil
		case written == before:
			o.wrote(0, errNotReading)
			o.sent(nil)
			return
		default:
			before, changed = written, nil
		}
		select {
		case <-next:
		case <-changed:
		case <-ended:
			return
		}
	}
}

func (o *outbound) wrote(size int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= size
	o.written++
	if o.err == nil {
		o.err = err
	}
	o.notify()
}

// notify wakes whoever waits. o.mu is held.
func (o *outbound) notify() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// full reports whether more than that is waiting.
func (o *outbound) full(most int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size > most
}

// wait waits until no more than that is waiting, or it makes no difference any more.
func (o *outbound) wait(ctx context.Context, most int) {
	for {
		o.mu.Lock()
		full, changed := o.size > most && o.err == nil, o.changed
		o.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
