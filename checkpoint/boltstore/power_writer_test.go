package boltstore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A writer commits batches of records of its own, one after the other, and knows what the disk may
// hold of them: what it held when the machine booted, with the batches up to one of those sent
// since. A store that applied half a batch, or a later one without an earlier one, has none of
// these.
type writer struct {
	rng     *rand.Rand
	number  int
	made    int                                 // how many records it ever made
	booted  map[checkpoint.ID]checkpoint.Record // at boot
	records map[checkpoint.ID]checkpoint.Record // with all that was sent
	sent    []*checkpoint.Batch                 // since boot
	durable int                                 // how many of these the disk must have
	clock   *atomic.Int64                       // milliseconds; all writers have the same
	floor   time.Time                           // the time of the last batch that the disk must have
}

func newWriter(seed uint64, number int, clock *atomic.Int64) *writer {
	return &writer{
		rng: rand.New(rand.NewPCG(seed, uint64(number))), number: number, clock: clock,
		booted:  map[checkpoint.ID]checkpoint.Record{},
		records: map[checkpoint.ID]checkpoint.Record{},
	}
}

// next makes a batch, and counts it as sent.
func (w *writer) next() *checkpoint.Batch {
	b := &checkpoint.Batch{}
	switch dice := w.rng.IntN(100); {
	case len(w.records) > 300: // so that a long run does not fill the disk
		for _, id := range w.some(30) {
			b.Deletes = append(b.Deletes, checkpoint.Delete{ID: id, Revision: w.records[id].Revision})
		}
	case dice < 45 || len(w.records) < 5:
		for range 1 + w.rng.IntN(3) {
			b.Puts = append(b.Puts, checkpoint.Put{Record: w.fresh()})
		}
	case dice < 65:
		for _, id := range w.some(2) {
			b.Puts = append(b.Puts, checkpoint.Put{Record: w.changed(id)})
		}
	case dice < 85:
		b.Lazy = true
		for _, id := range w.some(1 + w.rng.IntN(2)) {
			b.Puts = append(b.Puts, checkpoint.Put{Record: w.changed(id)})
		}
	default:
		for _, id := range w.some(2) {
			b.Deletes = append(b.Deletes, checkpoint.Delete{ID: id, Revision: w.records[id].Revision})
		}
		b.Puts = append(b.Puts, checkpoint.Put{Record: w.fresh()})
	}
	return w.send(b)
}

func (w *writer) send(b *checkpoint.Batch) *checkpoint.Batch {
	b.Time = time.UnixMilli(w.clock.Add(1)).UTC()
	apply(w.records, b)
	w.sent = append(w.sent, b)
	return b
}

// acknowledged notes that the last batch was, before the cut.
func (w *writer) acknowledged() {
	if last := w.sent[len(w.sent)-1]; !last.Lazy {
		w.durable, w.floor = len(w.sent), last.Time
	}
}

func (w *writer) fresh() checkpoint.Record {
	w.made++
	r := checkpoint.Record{Revision: 1, Status: checkpoint.Open, Scope: checkpoint.Hash{1}, Data: w.data()}
	binary.BigEndian.PutUint32(r.ID[:], uint32(w.made))
	r.ID[11] = byte(w.number)
	r.Start = checkpoint.Hash(bytes.Repeat(r.ID[:], 3)[:32])
	r.Due = time.UnixMilli(1 + w.rng.Int64N(1000)).UTC()
	return r
}

// changed is the record in its next revision.
func (w *writer) changed(id checkpoint.ID) checkpoint.Record {
	r := w.records[id]
	r.Revision++
	r.Data = w.data()
	r.Due = time.UnixMilli(1 + w.rng.Int64N(1000)).UTC()
	if w.rng.IntN(3) == 0 {
		r.Status, r.Start = checkpoint.Finished, checkpoint.Hash{}
	}
	return r
}

// data is small, and now and then too large for a row.
func (w *writer) data() []byte {
	if w.rng.IntN(50) == 0 {
		return w.bytes(64<<10 + 1 + w.rng.IntN(40_000))
	}
	return w.bytes(1 + w.rng.IntN(2000))
}

func (w *writer) bytes(n int) []byte {
	data := make([]byte, 0, n+8)
	for len(data) < n {
		data = binary.BigEndian.AppendUint64(data, w.rng.Uint64())
	}
	return data[:n]
}

// some picks n records.
func (w *writer) some(n int) []checkpoint.ID {
	ids := slices.SortedFunc(maps.Keys(w.records), checkpoint.ID.Compare)
	w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:n]
}

func apply(records map[checkpoint.ID]checkpoint.Record, b *checkpoint.Batch) {
	for _, d := range b.Deletes {
		delete(records, d.ID)
	}
	for _, p := range b.Puts {
		records[p.Record.ID] = p.Record
	}
}

// rebooted compares what the disk has with what it may have, byte for byte, and goes on from there.
func (w *writer) rebooted(found map[checkpoint.ID]checkpoint.Record) error {
	may := maps.Clone(w.booted)
	for _, b := range w.sent[:w.durable] {
		apply(may, b)
	}
	first := diff(may, found)
	for _, b := range w.sent[w.durable:] {
		if reflect.DeepEqual(may, found) {
			break
		}
		apply(may, b)
	}
	if !reflect.DeepEqual(may, found) {
		return fmt.Errorf("writer %d: of %d batches, %d acknowledged for good, the disk has no beginning that long: %s",
			w.number, len(w.sent), w.durable, first)
	}
	w.booted, w.records, w.sent, w.durable = found, maps.Clone(found), nil, 0
	return nil
}

// diff counts how the records differ, and names one of them.
func diff(want, have map[checkpoint.ID]checkpoint.Record) string {
	var lost, other, extra int
	var example string
	for id, r := range want {
		found, ok := have[id]
		switch {
		case !ok:
			lost++
			example = fmt.Sprintf("%s at revision %d is lost", id, r.Revision)
		case !reflect.DeepEqual(r, found):
			other++
			example = fmt.Sprintf("%s is at revision %d instead of %d, or differs", id, found.Revision, r.Revision)
		}
	}
	for id := range have {
		if _, ok := want[id]; !ok {
			extra++
			example = fmt.Sprintf("%s is there", id)
		}
	}
	return fmt.Sprintf("%d lost, %d others, %d too many; %s", lost, other, extra, example)
}
