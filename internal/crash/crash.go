package crash

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// ErrDied is returned for a request whose child died before it answered: whether the request was
// carried out is not known.
var ErrDied = errors.New("child died before it answered")

// A Child is a running child process. Requests may be made from several goroutines at once.
type Child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when no more answers come

	mu      sync.Mutex // guards what follows, and writes to in
	next    int
	waiting map[int]chan json.RawMessage
}

// A Line is one request or answer on a child's pipe.
type Line struct {
	N    int             `json:"n"`
	Body json.RawMessage `json:"body"`
}

// Start starts the command, whose process calls [Serve].
func Start(cmd *exec.Cmd) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Child{cmd: cmd, in: in, done: make(chan struct{}), waiting: map[int]chan json.RawMessage{}}
	go c.read(out)
	return c, nil
}

func (c *Child) read(out io.Reader) {
	defer close(c.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line Line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // half a line, or what the test framework prints
		}
		c.mu.Lock()
		reply := c.waiting[line.N]
		delete(c.waiting, line.N)
		c.mu.Unlock()
		if reply != nil {
			reply <- line.Body
		}
	}
}

// Call sends a request and reads its answer, or returns ErrDied.
func (c *Child) Call(request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	reply := make(chan json.RawMessage, 1)
	if err := c.send(body, reply); err != nil {
		return fmt.Errorf("%w: %w", ErrDied, err)
	}
	select {
	case body := <-reply:
		return json.Unmarshal(body, answer)
	case <-c.done:
	}
	select { // it may have answered with its last breath
	case body := <-reply:
		return json.Unmarshal(body, answer)
	default:
		return ErrDied
	}
}

func (c *Child) send(body []byte, reply chan json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	line, err := json.Marshal(Line{c.next, body})
	if err != nil {
		return err
	}
	c.waiting[c.next] = reply
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// Kill ends the child with SIGKILL and waits until it is gone. It returns an error where the child
// had ended by itself.
func (c *Child) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill child: %w", err)
	}
	<-c.done
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return nil
		}
	}
	return fmt.Errorf("child ended by itself: %w", errors.Join(err, errors.New("not killed")))
}

// Serve is the child's side: it calls answer for every request, each in a goroutine of its own,
// until in ends.
func Serve(in io.Reader, out io.Writer, answer func(request json.RawMessage) any) error {
	var mu sync.Mutex // guards out
	var wg sync.WaitGroup
	defer wg.Wait()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		wg.Go(func() {
			body, err := json.Marshal(answer(line.Body))
			if err != nil {
				panic(err)
			}
			reply, err := json.Marshal(Line{line.N, body})
			if err != nil {
				panic(err)
			}
			mu.Lock()
			defer mu.Unlock()
			_, _ = out.Write(append(reply, '\n')) // who does not listen has ended
		})
	}
	return lines.Err()
}
