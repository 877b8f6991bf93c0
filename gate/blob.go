package gate

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/parley-go/parley/checkpoint"
)

// blobName is the name of the row that holds a run's blob:
//
//	'B' ‖ S2(data), a block; the digest is that of all this
//	'D' ‖ DEFLATE(data); the digest is that of data. Read, and not written any more
//
// (no byte with which sealed data begins) sealed as every row. Size and digest stand in the run's
// record, which is written in the same batch.
const (
	blobName     = "blob"
	blobFormat   = 'B'
	blobDeflated = 'D'
)

var errBlob = errors.New("the run's blob is damaged, or not the one that its record was written with")

// packBlob makes the row, and says in the run what it holds.
func (g *Gate) packBlob(run *checkpoint.Run, data []byte) (checkpoint.Row, error) {
	row := checkpoint.Row{ID: run.ID, Name: blobName}
	if most := g.opts.Limits.Blob; len(data) > most {
		return row, fail(ErrTooLarge, "the run's state has %d bytes, the limit is %d", len(data), most)
	}
	row.Data = packed(data)
	run.Blob = &checkpoint.Blob{Size: int64(len(data)), Digest: sha256.Sum256(row.Data)}
	row, err := g.vault.sealRow(row)
	if err != nil {
		return row, unavailable(err)
	}
	return row, nil
}

// packed compresses into room that is used again, and returns what is not longer than it has to be.
func packed(data []byte) []byte {
	room, ok := packing.Get().(*[]byte)
	if most := s2.MaxEncodedLen(len(data)); !ok || len(*room) < most {
		made := make([]byte, most)
		room = &made
	}
	defer packing.Put(room)
	block := s2.Encode(*room, data)
	return append(append(make([]byte, 0, 1+len(block)), blobFormat), block...)
}

var packing sync.Pool // of *[]byte

// Blob returns what the last commit wrote; nil where there was none yet. What does not match its
// record any more is ErrUnavailable, and stays as it is.
func (r *Run) Blob() ([]byte, error) {
	g, run := r.face.gate, r.recorded()
	if run.Blob == nil {
		return nil, nil
	}
	if r.blob == nil {
		return nil, unavailable(&checkpoint.DecodeError{ID: run.ID, Reason: "the run's blob is missing"})
	}
	row, err := g.vault.openRow(*r.blob)
	if err != nil {
		return nil, unavailable(err)
	}
	data, err := g.unpackBlob(row.Data, run.Blob)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read run %s: %w", run.ID, err))
	}
	return data, nil
}

func (g *Gate) unpackBlob(packed []byte, want *checkpoint.Blob) ([]byte, error) {
	switch {
	case len(packed) == 0, want.Size > int64(g.opts.Limits.Blob):
		return nil, errBlob
	case packed[0] == blobDeflated:
		return inflate(packed[1:], want)
	case packed[0] != blobFormat, sha256.Sum256(packed) != want.Digest:
		return nil, errBlob
	}
	// The block says its length, which is looked at before there is room made for it.
	if size, err := s2.DecodedLen(packed[1:]); err != nil || int64(size) != want.Size {
		return nil, errBlob
	}
	data, err := s2.Decode(nil, packed[1:])
	if err != nil {
		return nil, errBlob
	}
	return data, nil
}

// inflate reads what the first releases wrote.
func inflate(packed []byte, want *checkpoint.Blob) ([]byte, error) {
	// One byte more than there should be: what is longer is not the one, and is not read further.
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), want.Size+1))
	if err != nil || int64(len(data)) != want.Size || sha256.Sum256(data) != want.Digest {
		return nil, errBlob
	}
	return data, nil
}
