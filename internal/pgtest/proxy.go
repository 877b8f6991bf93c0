package pgtest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
)

// A Proxy is the network between clients and a server. It can lose what it carries, and it can be
// cut: then it closes nothing and tells nobody, as a network does.
type Proxy struct {
	listener net.Listener
	network  string // of the server
	address  string
	running  sync.WaitGroup
	done     chan struct{} // closed when the test ends

	mu    sync.Mutex // guards what follows
	look  func(d Direction, data []byte) Fate
	pairs map[*pair]bool
	whole chan struct{} // closed while the network is whole
}

// A Direction is what is carried: requests to the server, or its answers.
type Direction int

// The directions.
const (
	Requests Direction = iota
	Answers
)

// A Fate is what becomes of what is carried.
type Fate int

// The fates.
const (
	Pass   Fate = iota
	Lose        // it is lost, and its connection is broken off
	Before      // the network is cut before it
	Within      // the network is cut in the middle of it
	Beyond      // the network is cut after it
)

// Proxy opens a way to the server through the machine's network, for the test.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		listener: l, network: "unix", address: s.dir + "/.s.PGSQL.5432", done: make(chan struct{}),
		pairs: make(map[*pair]bool), whole: make(chan struct{}),
	}
	if s.listens != "" {
		p.network, p.address = "tcp", s.listens+":5432"
	}
	close(p.whole)
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carry(&pair{client: client}) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(p.done)
		p.mu.Lock()
		for c := range p.pairs {
			c.close()
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

// URL is where a client finds the server through the proxy.
func (p *Proxy) URL() string { return fmt.Sprintf("postgres://parley@%s/postgres", p.listener.Addr()) }

// Watch shows all that is carried to look, piece by piece, which decides what becomes of it. Nil
// lets all pass.
func (p *Proxy) Watch(look func(d Direction, data []byte) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look = look
}

// Cut cuts the network: nothing arrives any more, and nobody is told.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
		p.whole = make(chan struct{})
	default:
	}
}

// IsCut reports whether the network is cut.
func (p *Proxy) IsCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
		return false
	default:
		return true
	}
}

// Heal makes the network whole: what was on its way arrives.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
	default:
		close(p.whole)
	}
}

// Forget lets nothing of the present connections arrive for ever, as a router does that was
// restarted. New ones are not touched by that. A server that listens at an address (see
// [Server.Listen]) hears nothing of them at all, not even that something arrived; one that is
// reached by its socket believes that the client is there and has nothing to say.
func (p *Proxy) Forget() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for c := range p.pairs {
		c.lost = true
		if tcp, ok := c.server.(*net.TCPConn); ok {
			err = errors.Join(err, silence(tcp))
		}
	}
	return err
}

// End makes the network whole, and tells the clients of lost connections: the driver of one that is
// closed waits a quarter of a minute for each otherwise.
func (p *Proxy) End() {
	p.Heal()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		if c.lost {
			c.client.Close()
		}
	}
}
