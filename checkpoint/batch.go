package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ErrInvalidBatch: the batch is malformed. Nothing was written, and nothing will be: it is the
// caller's mistake.
var ErrInvalidBatch = errors.New("invalid batch")

// MaxData is the most that the data of a record or a row may measure, in bytes.
const MaxData = 16 << 20

// MaxAudit is the most that one audit entry may measure, in bytes.
const MaxAudit = 256 << 10

// Validate refuses a batch that no store takes, whatever it holds; stores call it first. The error
// matches [ErrInvalidBatch] and names the record: a zero ID, revision 0, an unknown status, a
// record or row that is there twice, data over [MaxData], an owner's or a row's name over 255
// bytes, a row without a name or of a record that the batch deletes, a Due that is not in whole
// milliseconds after 1970, an audit entry that is empty or over [MaxAudit].
func (b *Batch) Validate() error {
	if b == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalidBatch)
	}
	seen := make(map[ID]bool, len(b.Puts)+len(b.Deletes))
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
	if err := b.checkRows(); err != nil {
		return err
	}
	for i, entry := range b.Audit {
		if len(entry) == 0 || len(entry) > MaxAudit {
			return fmt.Errorf("%w: audit entry %d has %d bytes, want 1 to %d", ErrInvalidBatch, i+1, len(entry), MaxAudit)
		}
	}
	return nil
}

func (b *Batch) checkRows() error {
	type key struct {
		id   ID
		name string
	}
	seen := make(map[key]bool, len(b.Rows))
	for i := range b.Rows {
		row := &b.Rows[i].Row
		switch {
		case row.ID.IsZero():
			return fmt.Errorf("%w: a row has the zero id", ErrInvalidBatch)
		case row.Name == "" || len(row.Name) > math.MaxUint8:
			return fmt.Errorf("%w: record %s: a row's name has %d bytes, want 1 to %d", ErrInvalidBatch, row.ID,
				len(row.Name), math.MaxUint8)
		case len(row.Data) > MaxData:
			return fmt.Errorf("%w: record %s: row %.80q has %d bytes of data, more than %d", ErrInvalidBatch, row.ID, row.Name,
				len(row.Data), MaxData)
		case seen[key{row.ID, row.Name}]:
			return fmt.Errorf("%w: record %s: row %.80q is in the batch twice", ErrInvalidBatch, row.ID, row.Name)
		case slices.ContainsFunc(b.Deletes, func(d Delete) bool { return d.ID == row.ID }):
			return fmt.Errorf("%w: record %s: it is deleted and given row %.80q", ErrInvalidBatch, row.ID, row.Name)
		}
		seen[key{row.ID, row.Name}] = true
	}
	return nil
}

func checkKey(id ID, revision uint64, seen map[ID]bool) error {
	switch {
	case id.IsZero():
		return fmt.Errorf("%w: a record has the zero id", ErrInvalidBatch)
	case revision == 0:
		return fmt.Errorf("%w: record %s: revision 0", ErrInvalidBatch, id)
	case seen[id]:
		return fmt.Errorf("%w: record %s: it is in the batch twice", ErrInvalidBatch, id)
	}
	seen[id] = true
	return nil
}

func checkRecord(r *Record) error {
	switch {
	case !r.Status.Valid():
		return fmt.Errorf("%w: record %s: %s is no status", ErrInvalidBatch, r.ID, r.Status)
	case len(r.Data) > MaxData:
		return fmt.Errorf("%w: record %s: %d bytes of data, more than %d", ErrInvalidBatch, r.ID, len(r.Data), MaxData)
	case len(r.Claim.Owner) > math.MaxUint8:
		return fmt.Errorf("%w: record %s: the owner's name has %d bytes, more than %d", ErrInvalidBatch, r.ID,
			len(r.Claim.Owner), math.MaxUint8)
	case r.Due.IsZero():
		return nil
	case r.Due.UnixMilli() <= 0 || !r.Due.Equal(r.Due.Truncate(time.Millisecond)):
		return fmt.Errorf("%w: record %s: due %s is not in whole milliseconds after 1970", ErrInvalidBatch, r.ID, r.Due)
	}
	return nil
}
