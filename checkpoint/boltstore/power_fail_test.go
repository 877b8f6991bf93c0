package boltstore_test

import (
	"syscall"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/powercut"
)

// R25: after a write that the disk refuses the outcome is unknown, and the store serves nothing
// until it is opened again. Nothing that was acknowledged is lost, the refused batch is there whole
// or not at all, and once the disk is well the store goes on.
func TestFailingDisk(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(p *power)
		mend func(p *power) // nil: the disk does not come back while the machine is on
		want syscall.Errno
	}{
		{"full", func(p *power) { p.machine.Fill() }, func(p *power) { p.machine.Free() }, syscall.ENOSPC},
		{"a write is cut short", func(p *power) { p.must(order{Limit: true}) }, func(p *power) { p.must(order{Unlimit: true}) }, syscall.EFBIG},
		{"gone", func(p *power) { p.machine.Stop() }, nil, syscall.EIO},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPower(t, powercut.NewDisk(t, powercut.Ext4, 64<<20), false)
			p.writeEach(6)
			tc.fail(p)
			p.wantRefusal(tc.want)
			p.closeFailed()
			if tc.mend != nil {
				// Before it is mended all can be read, and the next write is refused as well.
				if err := p.open(); err != nil {
					t.Fatal(err)
				}
				p.wantRefusal(tc.want)
				p.closeFailed()
				tc.mend(p)
				if err := p.open(); err != nil {
					t.Fatal(err)
				}
			} else if err := p.boot(); err != nil {
				t.Fatal(err)
			}
			p.writeEach(3)
			p.machine.Cut()
			if err := p.boot(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// writeEach has every writer write n batches.
func (p *power) writeEach(n int) {
	p.t.Helper()
	for range n {
		for _, w := range p.writers {
			if !p.write(w) {
				p.t.FailNow()
			}
		}
	}
}

// closeFailed closes a store that serves nothing: it does not hang, and what it returns is the
// cause where a lazy write was lost.
func (p *power) closeFailed() {
	p.t.Helper()
	if r, err := p.do(order{Close: true}); err != nil && !r.Unavailable {
		p.t.Errorf("close: %v", err)
	}
}

// wantRefusal commits until the disk refuses, and wants the store to serve nothing from then on.
func (p *power) wantRefusal(want syscall.Errno) {
	p.t.Helper()
	w := p.writers[0]
	for range 1000 {
		r := w.fresh()
		r.Data = w.bytes(100_000)
		refused, err := p.do(order{Commit: w.send(put(r))})
		if err == nil {
			w.acknowledged()
			continue
		}
		if !refused.Unavailable || refused.Errno != want {
			p.t.Errorf("commit: got %v, want ErrUnavailable with %v", err, want)
		}
		for _, o := range []order{{Commit: put(record(1, 1))}, {Commit: lazily(put(record(1, 1)))}, {List: &checkpoint.Query{}}, {Check: true}} {
			if served, err := p.do(o); !served.Unavailable || served.Errno != want {
				p.t.Errorf("%+v after it: got %v, want ErrUnavailable with %v", o, err, want)
			}
		}
		return
	}
	p.t.Fatal("the disk refused nothing")
}
