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
//	'D' ‖ DEFLATE(data); the digest is that of data; only read: the first releases wrote it
//
// The row is sealed as every row is, and no sealed data begins with one of these bytes. Size and
// digest are in the run's record, which is written in the same batch.
const (
	blobName     = "blob"
	blobFormat   = 'B'
	blobDeflated = 'D'
)

var errBlob = errors.New("the run's blob is damaged, or not the one that its record was written with")

// packBlob makes the row, and puts its size and digest into run.
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

// packed compresses data. The room for it, which has to be larger than what comes out, is used
// again.
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

// Blob returns the blob of the last commit, and nil where there was none yet. The caller owns it. A
// blob that does not match its record is ErrUnavailable; it stays in the store as it is.
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
	// The block says its length, which is checked before memory is allocated for it.
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
	// One byte more than it should have shows that it is too long, without reading the rest.
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), want.Size+1))
	if err != nil || int64(len(data)) != want.Size || sha256.Sum256(data) != want.Digest {
		return nil, errBlob
	}
	return data, nil
}
