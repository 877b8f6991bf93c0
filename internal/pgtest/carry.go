package pgtest

import (
	"io"
	"net"
	"sync"
)

// A pair is one connection, and what carries it on.
type pair struct {
	client net.Conn
	server net.Conn // nil: not yet
	lost   bool     // for ever: see Forget
}

// arrives waits until something of the connection arrives; false: it never does.
func (p *Proxy) arrives(c *pair) bool {
	for {
		p.mu.Lock()
		whole, lost := p.whole, c.lost
		p.mu.Unlock()
		if lost {
			<-p.done
			return false
		}
		select {
		case <-whole:
			p.mu.Lock()
			lost = c.lost
			p.mu.Unlock()
			if !lost {
				return true
			}
		case <-p.done:
			return false
		}
	}
}

func (c *pair) close() {
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

func (p *Proxy) carry(c *pair) {
	p.mu.Lock()
	p.pairs[c] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pairs, c)
		c.close()
	}()
	if !p.arrives(c) {
		return
	}
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	p.mu.Lock()
	c.server = server
	p.mu.Unlock()
	select {
	case <-p.done: // nobody else would close it
		return
	default:
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(c, server, c.client, Requests) })
	both.Go(func() { p.copy(c, c.client, server, Answers) })
	both.Wait()
}

// copy carries one direction. An end is carried like all else.
func (p *Proxy) copy(c *pair, to, from net.Conn, d Direction) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		data := buffer[:n]
		fate := Pass
		if n > 0 {
			fate = p.fate(d, data)
		}
		switch fate {
		case Lose:
			data, err = nil, io.EOF
		case Before:
			p.Cut()
		case Within:
			if p.arrives(c) {
				_, err = to.Write(data[:n/2])
			}
			data = data[n/2:]
			p.Cut()
		}
		if !p.arrives(c) {
			return
		}
		if len(data) > 0 && err == nil {
			_, err = to.Write(data)
		}
		if fate == Beyond {
			p.Cut()
		}
		if err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

func (p *Proxy) fate(d Direction, data []byte) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look == nil {
		return Pass
	}
	return p.look(d, data)
}
