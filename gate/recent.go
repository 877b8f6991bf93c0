package gate

import (
	"bytes"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

const (
	// maxRecent is how many interactions are kept decoded, and maxRecentData how large the data of
	// each may be.
	maxRecent     = 1024
	maxRecentData = 16 << 10
)

// recent are the interactions that this gate wrote or read last, each with the record that it is
// of. A record that is loaded and says the same, in every plain field and every byte, need not be
// opened and decoded once more. The store is asked all the same: this holds no truth.
//
// What is in it is shared. Nothing changes an interaction once it was committed or read: what comes
// next begins with [checkpoint.Interaction.Clone].
type recent struct {
	mu    sync.Mutex
	at    map[checkpoint.ID]int // where in kept
	kept  []keptInteraction     // up to maxRecent, then the oldest gives way
	older int                   // the oldest of a full kept
}

type keptInteraction struct {
	record checkpoint.Record
	in     *checkpoint.Interaction
}

// put keeps an interaction that was written as that record, or read from it. It must be what
// decoding the record makes of it. The record's data is kept as it is.
func (c *recent) put(record checkpoint.Record, in *checkpoint.Interaction) {
	if len(record.Data) > maxRecentData {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.at[record.ID]
	switch {
	case ok:
	case len(c.kept) < maxRecent:
		if c.at == nil {
			c.at = make(map[checkpoint.ID]int)
		}
		i = len(c.kept)
		c.kept = append(c.kept, keptInteraction{})
	default:
		i = c.older
		c.older = (i + 1) % maxRecent
		delete(c.at, c.kept[i].record.ID)
	}
	c.at[record.ID] = i
	c.kept[i] = keptInteraction{record, in}
}

// get returns the interaction of a record that was loaded, or nil.
func (c *recent) get(loaded *checkpoint.Record) *checkpoint.Interaction {
	c.mu.Lock()
	i, ok := c.at[loaded.ID]
	var kept keptInteraction
	if ok {
		kept = c.kept[i]
	}
	c.mu.Unlock()
	if !ok || !sameRecord(&kept.record, loaded) {
		return nil
	}
	return kept.in
}

func sameRecord(a, b *checkpoint.Record) bool {
	return a.ID == b.ID && a.Revision == b.Revision && a.Status == b.Status && a.Scope == b.Scope && a.Start == b.Start &&
		a.Due.Equal(b.Due) && a.Claim == b.Claim && bytes.Equal(a.Data, b.Data)
}
