package gate

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// Keep records data under a name until the next commit, for a run that is resumed after a crash
// (W8); it replaces what the name had. An agent keeps its model's answers so: what is recorded
// before a tool runs need not be asked of the model again. The data becomes durable with the next
// write that is. Where there is no room, Keep is ErrBusy (R33).
//
// A commit removes what was kept, or asked for with [Run.Kept], since the run was begun or resumed.
// The rest was kept by a process that came further than this one, and stays for the time when the
// run comes there again.
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

// A kept is what was kept under one row's name.
type kept struct {
	data   []byte // nil: it is not known whether it is stored
	passed bool   // the run has come to it since it was begun or resumed: its next commit removes it
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

// The names of rows in which something is kept begin with keptPrefix, and their data with
// keptFormat.
const (
	keptPrefix = "kept."
	keptFormat = 'K'
)

// keptName is the name of a row. It is a hash, so that the store does not learn the host's name.
func (r *Run) keptName(id checkpoint.ID, name string) string {
	hash := r.face.gate.hash("kept", id.String(), name)
	return keptPrefix + hex.EncodeToString(hash[:])
}

// keptRow is the row in which something is kept, in plain and as it is stored.
func (r *Run) keptRow(id checkpoint.ID, name string, data []byte) (row, sealed checkpoint.Row, err error) {
	row = checkpoint.Row{ID: id, Name: r.keptName(id, name), Data: append([]byte{keptFormat}, data...)}
	sealed, err = r.face.gate.vault.sealRow(row)
	return row, sealed, err
}

// readRows reads the blob of the last commit, and what was kept since and no commit removed.
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

// forget makes the writes that remove what was kept, or may be, and was passed; where all is set,
// as it is for a run that ends, everything.
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
