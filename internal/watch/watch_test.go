package watch_test

import (
	"sync"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/watch"
)

var one, two = checkpoint.ID{1}, checkpoint.ID{2}

func woken(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

// Everybody who waits for the record is woken, once, and nobody else.
func TestChanged(t *testing.T) {
	var hub watch.Hub
	hub.Changed(one) // nobody waits
	first, stopFirst := hub.Watch(one)
	second, stopSecond := hub.Watch(one)
	other, stopOther := hub.Watch(two)
	if woken(first) || woken(second) || woken(other) {
		t.Fatal("woken before there was a change")
	}
	hub.Changed(one)
	if !woken(first) || !woken(second) || woken(other) {
		t.Fatalf("woken: %v, %v, %v, want the first two", woken(first), woken(second), woken(other))
	}
	again, stopAgain := hub.Watch(one)
	if woken(again) {
		t.Fatal("woken by a change before it waited")
	}
	hub.Changed(one)
	hub.Changed(one)
	if !woken(again) {
		t.Fatal("not woken by the second change")
	}
	for _, stop := range []func(){stopFirst, stopSecond, stopOther, stopAgain, stopAgain} {
		stop()
	}
}

// Who stops waiting takes nobody else along: not one who waits for the same change, nor one for the
// next.
func TestStop(t *testing.T) {
	var hub watch.Hub
	gone, stop := hub.Watch(one)
	stays, stopStays := hub.Watch(one)
	defer stopStays()
	stop()
	stop() // twice counts once
	hub.Changed(one)
	if !woken(stays) {
		t.Error("the one who stays was not woken")
	}
	if !woken(gone) {
		t.Error("two who wait for one change have one channel")
	}

	_, late := hub.Watch(one)
	hub.Changed(one)
	next, stopNext := hub.Watch(one)
	defer stopNext()
	late()
	hub.Changed(one)
	if !woken(next) {
		t.Error("one who stopped late took the next one along")
	}
}

func TestTogether(t *testing.T) {
	var hub watch.Hub
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				changed, stop := hub.Watch(one)
				hub.Changed(one)
				<-changed // whoever's change it was
				stop()
			}
		})
	}
	group.Wait()
}

func TestChangedAll(t *testing.T) {
	var hub watch.Hub
	hub.ChangedAll() // nobody waits
	first, stopFirst := hub.Watch(one)
	second, stopSecond := hub.Watch(two)
	hub.ChangedAll()
	if !woken(first) || !woken(second) {
		t.Errorf("woken: %v, %v, want both", woken(first), woken(second))
	}
	again, stopAgain := hub.Watch(one)
	stopFirst()
	stopSecond()
	hub.Changed(one)
	if !woken(again) {
		t.Error("not woken by the next change")
	}
	stopAgain()
}
