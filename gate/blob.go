package gate

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/parley-go/parley/checkpoint"
)

// blobName is the name of the row that holds a run's blob:
//
//	'D' ‖ DEFLATE(data)
//
// (no byte with which sealed data begins) sealed as every row. Size and digest of the data stand in
// the run's record, which is written in the same batch.
const (
	blobName   = "blob"
	blobFormat = 'D'
)

var errBlob = errors.New("the run's blob is damaged, or not the one that its record was written with")

// packBlob makes the row, and says in the run what it holds.
func (g *Gate) packBlob(run *checkpoint.Run, data []byte) (checkpoint.Row, error) {
	row := checkpoint.Row{ID: run.ID, Name: blobName}
	if most := g.opts.Limits.Blob; len(data) > most {
		return row, fail(ErrTooLarge, "the run's state has %d bytes, the limit is %d", len(data), most)
	}
	packed := bytes.NewBuffer(make([]byte, 0, 512+len(data)/4))
	packed.WriteByte(blobFormat)
	w, ok := g.packers.Get().(*flate.Writer)
	if ok {
		w.Reset(packed)
	} else {
		var err error
		if w, err = flate.NewWriter(packed, flate.BestSpeed); err != nil {
			return row, unavailable(err)
		}
	}
	defer g.packers.Put(w)
	_, err := w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return row, unavailable(err)
	}
	row.Data = packed.Bytes()
	if row, err = g.vault.sealRow(row); err != nil {
		return row, unavailable(err)
	}
	run.Blob = &checkpoint.Blob{Size: int64(len(data)), Digest: sha256.Sum256(data)}
	return row, nil
}

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
	if len(packed) == 0 || packed[0] != blobFormat || want.Size > int64(g.opts.Limits.Blob) {
		return nil, errBlob
	}
	source := bytes.NewReader(packed[1:])
	r, ok := g.unpackers.Get().(io.Reader)
	if !ok {
		r = flate.NewReader(source)
	} else if err := r.(flate.Resetter).Reset(source, nil); err != nil {
		return nil, err
	}
	defer g.unpackers.Put(r)
	// One byte more than there should be: what is longer is not the one, and is not read further.
	data := make([]byte, want.Size+1)
	n, err := io.ReadFull(r, data)
	if data = data[:n]; errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil || int64(len(data)) != want.Size || sha256.Sum256(data) != want.Digest {
		return nil, errBlob
	}
	return data, nil
}
