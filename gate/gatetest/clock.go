package gatetest

import (
	"sync"
	"time"
)

// A Clock is a clock for a tool under test. It stands still but where the script moves it: by what
// [Answer.After] says, and by more than a day between two runs that are compared, so that a time in
// the text of a question shows. The zero Clock is ready, at the beginning of 2026. It is safe for
// concurrent use.
type Clock struct {
	mu     sync.Mutex
	passed time.Duration
}

// Now returns the clock's time, in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.passed)
}

func (c *Clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}
