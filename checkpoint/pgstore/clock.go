package pgstore

import "time"

// A clock is the server's time as it was last told, which goes on with this machine's monotonic
// clock: however wrong that machine's date is, it does not come in.
type clock struct {
	server time.Time
	at     time.Time // when it was told, with its monotonic part
}

func (c clock) now() time.Time { return c.server.Add(time.Since(c.at)) }

// drift is by how much two clocks that nobody sets come apart until the server is asked again, and
// more.
const drift = 100 * time.Millisecond

// tell takes note of the server's time, in microseconds since 1970, that was asked for at that time
// of this machine. It is behind what is expected by no more than the answer took, or the clock was
// set back or is another server's: then it goes back too, and a late answer makes it no later.
func (s *Store) tell(microseconds int64, asked time.Time) {
	told := clock{time.UnixMicro(microseconds).UTC(), time.Now()}
	late := told.at.Sub(asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	if behind := s.clock.now().Sub(told.server); s.clock.at.IsZero() || behind < 0 || behind > late+drift {
		s.clock = told
	}
}

// now is the server's time, and never before the latest that was seen to be committed.
func (s *Store) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.now()
	if s.floor.After(now) {
		return s.floor
	}
	return now
}
