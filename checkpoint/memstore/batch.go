package memstore

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// maxData is the most that a record's data may measure, in bytes.
const maxData = 16 << 20

// checkBatch refuses a batch that no store can take, whatever it holds.
func checkBatch(b *checkpoint.Batch) error {
	if b == nil {
		return errors.New("commit batch: it is nil")
	}
	seen := make(map[checkpoint.ID]bool, len(b.Puts)+len(b.Deletes))
	for i := range b.Puts {
		r := &b.Puts[i].Record
		if err := checkKey(r.ID, r.Revision, seen); err != nil {
			return err
		}
		if err := checkRecord(r); err != nil {
			return err
		}
	}
	for _, d := range b.Deletes {
		if err := checkKey(d.ID, d.Revision, seen); err != nil {
			return err
		}
	}
	return nil
}

func checkKey(id checkpoint.ID, revision uint64, seen map[checkpoint.ID]bool) error {
	switch {
	case id.IsZero():
		return errors.New("commit batch: a record has the zero id")
	case revision == 0:
		return fmt.Errorf("commit record %s: revision 0", id)
	case seen[id]:
		return fmt.Errorf("commit record %s: it is in the batch twice", id)
	}
	seen[id] = true
	return nil
}

func checkRecord(r *checkpoint.Record) error {
	switch {
	case !r.Status.Valid():
		return fmt.Errorf("commit record %s: %s is no status", r.ID, r.Status)
	case len(r.Data) > maxData:
		return fmt.Errorf("commit record %s: %d bytes of data, more than %d", r.ID, len(r.Data), maxData)
	case len(r.Claim.Owner) > math.MaxUint8:
		return fmt.Errorf("commit record %s: the owner's name has %d bytes, more than %d", r.ID, len(r.Claim.Owner), math.MaxUint8)
	case r.Due.IsZero():
		return nil
	case r.Due.UnixMilli() <= 0 || !r.Due.Equal(r.Due.Truncate(time.Millisecond)):
		return fmt.Errorf("commit record %s: due %s is not in whole milliseconds after 1970", r.ID, r.Due)
	}
	return nil
}
