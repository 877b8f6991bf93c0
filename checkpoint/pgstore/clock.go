package pgstore

import "time"

// A clock is the server's time as it was last told, which goes on with this machine's monotonic
// clock: however wrong that machine's date is, it does not come in.
type clock struct {
	server time.Time
	at     time.Time // when it was told, with its monotonic part
}

func (c clock) now() time.Time { return c.server.Add(time.Since(c.at)) }

// steppedBack is by how much the server's clock must be behind what is expected of it to be one
// that was set back, or another server's, and no late answer.
const steppedBack = time.Second

// tell takes note of the server's time, in microseconds since 1970. It does not go back over the
// time that an answer took.
func (s *Store) tell(microseconds int64) {
	told := clock{time.UnixMicro(microseconds).UTC(), time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ahead := s.clock.now().Sub(told.server); s.clock.at.IsZero() || ahead < 0 || ahead > steppedBack {
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
