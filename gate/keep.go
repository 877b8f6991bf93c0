package gate

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// Keep records something for the time until the next commit, which removes it (W8): what a run that
// is resumed after a crash would otherwise do again. It is durable with whatever is durable next.
// An answer that is on record before a tool runs does not need to be asked of a model again. Where
// there is no room for it, it is ErrBusy (R33).
//
// A commit removes what its attempt kept or asked for with [Run.Kept]. The rest was kept by an
// attempt that came further and to no commit: it stays for the one that comes to it.
func (r *Run) Keep(ctx context.Context, name string, data []byte) error {
	g := r.face.gate
	if e := g.boundBlob(data); e != nil {
		return e
	}
	run := r.recorded()
	row, sealed, err := r.keptRow(run.ID, name, data)
	if err != nil {
		return unavailable(err)
	}
	batch := &checkpoint.Batch{
		Time: g.now(), Owner: run.Claim.Owner, Rows: []checkpoint.RowPut{{Row: sealed, Epoch: run.Claim.Epoch}}, Lazy: true,
	}
	room, e := g.reserve(ctx, r.scope, checkpoint.Usage{Bytes: retained(batch)})
	if e != nil {
		return e
	}
	defer room.release()
	if e := r.willKeep(row.Name); e != nil {
		return e
	}
	switch v, err := g.tryWrite(context.WithoutCancel(ctx), batch, unknown); {
	case v == applied:
	case (v == conflict || v == lapsed) && r.stopped():
		return runStopped()
	case v == conflict, v == lapsed:
		return r.lost(err)
	default:
		return unavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[row.Name] = kept{row.Data[1:], true}
	return nil
}

// A kept thing is what stands under a row's name.
type kept struct {
	data   []byte // nil: nobody knows whether it is stored
	passed bool   // this attempt has come to it, so that its commit is of a state behind it
}

// willKeep notes the name before the row is written, so that the next commit removes it whatever
// becomes of the write.
func (r *Run) willKeep(name string) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return runStopped()
	}
	r.kept[name] = kept{r.kept[name].data, true}
	return nil
}

// keepFirst makes the rows of what a run keeps from its beginning.
func (r *Run) keepFirst(run *checkpoint.Run, keep map[string][]byte) (rows []checkpoint.RowPut, err error) {
	for name, data := range keep {
		row, sealed, err := r.keptRow(run.ID, name, data)
		if err != nil {
			return nil, err
		}
		r.kept[row.Name] = kept{row.Data[1:], true}
		rows = append(rows, checkpoint.RowPut{Row: sealed, Epoch: run.Claim.Epoch})
	}
	return rows, nil
}

// Kept returns what was kept under that name and removed by no commit since.
func (r *Run) Kept(name string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name = r.keptName(r.run.ID, name)
	k := r.kept[name]
	if k.data == nil {
		return nil, false
	}
	r.kept[name] = kept{k.data, true}
	return bytes.Clone(k.data), true
}

// keptPrefix is that of the names of rows that are removed with a commit, keptFormat the first byte
// of their data.
const (
	keptPrefix = "kept."
	keptFormat = 'K'
)

// keptName does not tell the name to a store.
func (r *Run) keptName(id checkpoint.ID, name string) string {
	hash := r.face.gate.hash("kept", id.String(), name)
	return keptPrefix + hex.EncodeToString(hash[:])
}

// keptRow is the row in which something is kept, as it is and as it is stored.
func (r *Run) keptRow(id checkpoint.ID, name string, data []byte) (row, sealed checkpoint.Row, err error) {
	row = checkpoint.Row{ID: id, Name: r.keptName(id, name), Data: append([]byte{keptFormat}, data...)}
	sealed, err = r.face.gate.vault.sealRow(row)
	return row, sealed, err
}

// readRows reads the blob of the last commit, and what an attempt kept that came to none since.
func (r *Run) readRows(ctx context.Context) error {
	g, id := r.face.gate, r.run.ID
	for from := ""; ; {
		rows, err := g.store.Rows(ctx, id, from, 100)
		if err != nil {
			return unavailable(err)
		}
		if len(rows) == 0 {
			return nil
		}
		for _, row := range rows {
			from = row.Name + "\x00" // the next name there can be
			switch {
			case row.Name == blobName:
				r.blob = &row
			case strings.HasPrefix(row.Name, keptPrefix):
				opened, err := g.vault.openRow(row)
				if err != nil {
					return unavailable(err)
				}
				if len(opened.Data) == 0 || opened.Data[0] != keptFormat {
					return unavailable(&checkpoint.DecodeError{ID: id, Reason: "what the run kept is damaged"})
				}
				r.kept[row.Name] = kept{data: opened.Data[1:]}
			}
		}
	}
}

// forget removes what was kept, or may be, and was passed; all of it where nothing comes any more.
func (r *Run) forget(epoch uint64, all bool) (rows []checkpoint.RowPut) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, k := range r.kept {
		if !k.passed && !all {
			continue
		}
		rows = append(rows, checkpoint.RowPut{Row: checkpoint.Row{ID: r.run.ID, Name: name}, Epoch: epoch})
	}
	return rows
}
