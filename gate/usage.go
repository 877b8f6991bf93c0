package gate

import (
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A usageRead is what the store held of a scope, or in all, when it was read, and all that this
// process reserved at that time or since: together they are never less than what this process knows
// to be stored or reserved.
type usageRead struct {
	at    time.Time
	ended bool
	most  checkpoint.Usage
}

func (r *usageRead) grow(need checkpoint.Usage) {
	if r != nil {
		r.most = plus(r.most, need)
	}
}

// What others store is not in a read: it is good for so long. So many scopes are remembered.
const (
	usageReadFor  = time.Second
	maxUsageReads = 1024
)

// ample reports whether a read shows that half of the limits is still free, so that nobody has to
// look.
func (c *capacity) ample(scope checkpoint.Hash, open int, bytes int64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.read[scope]
	if r == nil || !r.ended || now.Before(r.at) || now.Sub(r.at) > usageReadFor {
		return false
	}
	return (open == Unlimited || r.most.Active <= open/2) && (bytes == Unlimited || r.most.Bytes <= bytes/2)
}

// beginRead is called before the store is asked: what is reserved by then may be stored before the
// answer, or after it.
func (c *capacity) beginRead(scope checkpoint.Hash, now time.Time) *usageRead {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &usageRead{at: now, most: c.all}
	if !scope.IsZero() {
		r.most = c.scopes[scope]
	}
	if c.read == nil || len(c.read) >= maxUsageReads {
		c.read = map[checkpoint.Hash]*usageRead{}
	}
	c.read[scope] = r
	return r
}

func (c *capacity) endRead(r *usageRead, stored checkpoint.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.most, r.ended = plus(r.most, stored), true
}
