package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// A row is how one record is stored, big endian:
//
//	version 1 · flags 1 · status 1 · id 12 · revision 8 · scope 32 · start 32
//	due 8 (Unix milliseconds, 0: never) · claim epoch 8 · claim attempt 4 · owner length 1 · owner
//	data length 4 · CRC-32C of the data 4 · CRC-32C of all before 4
//
// and then the data, or nothing where the data is large: that is in a bucket of its own, so that no
// listing and no change of a neighbouring record touches it.
const (
	rowVersion = 1
	flagLarge  = 1
	rowFixed   = 1 + 1 + 1 + 12 + 8 + 32 + 32 + 8 + 8 + 4 + 1
	rowTail    = 4 + 4 + 4
	// largeData is the most that data may measure inside its row.
	largeData = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRow returns the row of a record, and its data where it is large. It keeps none of r's
// memory.
func encodeRow(r *checkpoint.Record) (row, large []byte) {
	var flags byte
	inside := r.Data
	if len(r.Data) > largeData {
		flags, inside, large = flagLarge, nil, bytes.Clone(r.Data)
	}
	row = make([]byte, 0, rowFixed+len(r.Claim.Owner)+rowTail+len(inside))
	row = append(row, rowVersion, flags, byte(r.Status))
	row = append(row, r.ID[:]...)
	row = binary.BigEndian.AppendUint64(row, r.Revision)
	row = append(row, r.Scope[:]...)
	row = append(row, r.Start[:]...)
	row = binary.BigEndian.AppendUint64(row, dueMillis(r.Due))
	row = binary.BigEndian.AppendUint64(row, r.Claim.Epoch)
	row = binary.BigEndian.AppendUint32(row, r.Claim.Attempt)
	row = append(row, byte(len(r.Claim.Owner)))
	row = append(row, r.Claim.Owner...)
	row = binary.BigEndian.AppendUint32(row, uint32(len(r.Data)))
	row = binary.BigEndian.AppendUint32(row, crc32.Checksum(r.Data, castagnoli))
	row = binary.BigEndian.AppendUint32(row, crc32.Checksum(row, castagnoli))
	return append(row, inside...), large
}

func dueMillis(due time.Time) uint64 {
	if due.IsZero() {
		return 0
	}
	return uint64(due.UnixMilli())
}

// A head is a row without its data.
type head struct {
	record   checkpoint.Record
	inside   []byte // the data that is in the row; it is the row's memory
	large    bool
	dataSize uint32
	dataSum  uint32
}

// decodeHead reads a row that stands under the id. Its errors are [*CorruptError].
func decodeHead(id checkpoint.ID, row []byte) (*head, error) {
	h, err := parseHead(row)
	if err == nil && h.record.ID != id {
		err = fmt.Errorf("it is the row of %s", h.record.ID)
	}
	if err != nil {
		return nil, &CorruptError{ID: id, Err: err}
	}
	return h, nil
}

func parseHead(row []byte) (*head, error) {
	if len(row) < rowFixed+rowTail {
		return nil, errors.New("the row is too short")
	}
	if row[0] != rowVersion {
		return nil, fmt.Errorf("row version %d", row[0])
	}
	size := rowFixed + int(row[rowFixed-1]) + rowTail
	if len(row) < size {
		return nil, errors.New("the row is too short")
	}
	if binary.BigEndian.Uint32(row[size-4:]) != crc32.Checksum(row[:size-4], castagnoli) {
		return nil, errors.New("the checksum of the row is wrong")
	}
	h := &head{large: row[1]&flagLarge != 0, inside: row[size:]}
	r := &h.record
	r.Status = checkpoint.Status(row[2])
	rest := row[3:]
	rest = rest[copy(r.ID[:], rest):]
	r.Revision, rest = binary.BigEndian.Uint64(rest), rest[8:]
	rest = rest[copy(r.Scope[:], rest):]
	rest = rest[copy(r.Start[:], rest):]
	due := binary.BigEndian.Uint64(rest)
	if due != 0 {
		r.Due = time.UnixMilli(int64(due)).UTC()
	}
	r.Claim.Epoch = binary.BigEndian.Uint64(rest[8:])
	r.Claim.Attempt = binary.BigEndian.Uint32(rest[16:])
	r.Claim.Owner = string(rest[21 : 21+int(rest[20])])
	h.dataSize = binary.BigEndian.Uint32(row[size-rowTail:])
	h.dataSum = binary.BigEndian.Uint32(row[size-rowTail+4:])
	if !r.Status.Valid() || r.Revision == 0 || r.ID.IsZero() || row[1]&^flagLarge != 0 || due > math.MaxInt64 ||
		h.large != (h.dataSize > largeData) {
		return nil, errors.New("a field of the row is impossible")
	}
	return h, nil
}

// complete returns the record with a copy of its data, which is in large where the row says so.
func (h *head) complete(large []byte) (checkpoint.Record, error) {
	data := h.inside
	if h.large {
		if len(h.inside) > 0 {
			err := errors.New("there is data behind the row of large data")
			return checkpoint.Record{}, &CorruptError{ID: h.record.ID, Err: err}
		}
		data = large
	}
	if uint64(len(data)) != uint64(h.dataSize) || crc32.Checksum(data, castagnoli) != h.dataSum {
		return checkpoint.Record{}, &CorruptError{ID: h.record.ID, Err: errors.New("the checksum of the data is wrong")}
	}
	r := h.record
	r.Data = bytes.Clone(data)
	return r, nil
}
