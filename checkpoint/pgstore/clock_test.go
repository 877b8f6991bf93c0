package pgstore

import (
	"testing"
	"testing/synctest"
	"time"
)

// R30: an answer that comes late does not set the time back; a clock of the server's that was set
// back does. This test is inside the package, since nobody else can make an answer late by just so
// much.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		server := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // not this machine's date
		want := func(what string, now time.Time) {
			t.Helper()
			if !s.now().Equal(now) {
				t.Errorf("%s: it is %v, want %v", what, s.now(), now)
			}
		}
		s.tell(server.UnixMicro(), time.Now())
		time.Sleep(5 * time.Second)
		want("five seconds later", server.Add(5*time.Second))
		asked := time.Now()
		time.Sleep(3 * time.Second)
		s.tell(server.Add(5*time.Second).UnixMicro(), asked)
		want("after a late answer", server.Add(8*time.Second))
		s.tell(server.Add(9*time.Second).UnixMicro(), time.Now())
		want("the server is ahead", server.Add(9*time.Second))
		asked = time.Now()
		time.Sleep(3 * time.Second)
		s.tell(server.Add(2*time.Second).UnixMicro(), asked)
		want("it was set back", server.Add(2*time.Second))
		s.raiseFloor(server.Add(4 * time.Second).UnixNano())
		want("and somebody committed before", server.Add(4*time.Second))
	})
}
