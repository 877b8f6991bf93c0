package gate

import (
	"errors"

	"github.com/parley-go/parley/checkpoint"
)

// encode makes the record of an interaction, as this gate's store keeps it.
func (g *Gate) encode(in *checkpoint.Interaction) (checkpoint.Record, error) {
	return g.vault.encode(in)
}

// decode reads a record of this gate's store. Its error is a [*checkpoint.DecodeError].
func (g *Gate) decode(record checkpoint.Record) (*checkpoint.Interaction, error) {
	if in := g.recent.get(&record); in != nil {
		return in, nil
	}
	return g.vault.decode(record)
}

// read is decode for a request, whose error is public.
func (g *Gate) read(record checkpoint.Record) (*checkpoint.Interaction, error) {
	in, err := g.decode(record)
	if err != nil {
		return nil, unavailable(err)
	}
	g.recent.put(record, in)
	return in, nil
}

const kindInteraction = "interaction"

func (v *vault) encode(in *checkpoint.Interaction) (checkpoint.Record, error) {
	record, err := checkpoint.Encode(in)
	if err != nil {
		return record, err
	}
	record.Data, err = v.seal(sealPlace{kind: kindInteraction, id: in.ID, revision: in.Revision}, record.Data)
	return record, err
}

func (v *vault) decode(record checkpoint.Record) (*checkpoint.Interaction, error) {
	data, err := v.open(sealPlace{kind: kindInteraction, id: record.ID, revision: record.Revision}, record.Data)
	if err != nil {
		return nil, &checkpoint.DecodeError{ID: record.ID, Reason: "sealed data", Err: err}
	}
	record.Data = data
	return checkpoint.Decode(record)
}

// encodeDecision makes the record of a remembered decision, as this gate's store keeps it.
func (g *Gate) encodeDecision(d *checkpoint.Decision) (checkpoint.Record, error) {
	return g.vault.encodeDecision(d)
}

// decodeDecision reads such a record. Its error is a [*checkpoint.DecodeError].
func (g *Gate) decodeDecision(record checkpoint.Record) (*checkpoint.Decision, error) {
	return g.vault.decodeDecision(record)
}

const kindDecision = "decision"

func (v *vault) encodeDecision(d *checkpoint.Decision) (checkpoint.Record, error) {
	record, err := checkpoint.EncodeDecision(d)
	if err != nil {
		return record, err
	}
	record.Data, err = v.seal(sealPlace{kind: kindDecision, id: d.ID, revision: d.Revision}, record.Data)
	return record, err
}

func (v *vault) decodeDecision(record checkpoint.Record) (*checkpoint.Decision, error) {
	data, err := v.open(sealPlace{kind: kindDecision, id: record.ID, revision: record.Revision}, record.Data)
	if err != nil {
		return nil, &checkpoint.DecodeError{ID: record.ID, Reason: "sealed data", Err: err}
	}
	record.Data = data
	return checkpoint.DecodeDecision(record)
}

const kindRun = "run"

func (v *vault) encodeRun(run *checkpoint.Run) (checkpoint.Record, error) {
	record, err := checkpoint.EncodeRun(run)
	if err != nil {
		return record, err
	}
	record.Data, err = v.seal(sealPlace{kind: kindRun, id: run.ID, revision: run.Revision}, record.Data)
	return record, err
}

func (v *vault) decodeRun(record checkpoint.Record) (*checkpoint.Run, error) {
	data, err := v.open(sealPlace{kind: kindRun, id: record.ID, revision: record.Revision}, record.Data)
	if err != nil {
		return nil, &checkpoint.DecodeError{ID: record.ID, Reason: "sealed data", Err: err}
	}
	record.Data = data
	return checkpoint.DecodeRun(record)
}

// errNoIndexKey: a ledger's meta data does not hold what it should.
var errNoIndexKey = errors.New("its meta data is not of version 1")

const kindRow = "row"

// sealRow and openRow are for the rows under an interaction.
func (v *vault) sealRow(row checkpoint.Row) (checkpoint.Row, error) {
	var err error
	row.Data, err = v.seal(sealPlace{kind: kindRow, id: row.ID, name: row.Name}, row.Data)
	return row, err
}

func (v *vault) openRow(row checkpoint.Row) (checkpoint.Row, error) {
	data, err := v.open(sealPlace{kind: kindRow, id: row.ID, name: row.Name}, row.Data)
	if err != nil {
		return row, &checkpoint.DecodeError{ID: row.ID, Reason: "sealed row", Err: err}
	}
	row.Data = data
	return row, nil
}

// encodeStep makes the row of a step, as this gate's store keeps it.
func (g *Gate) encodeStep(id checkpoint.ID, step *checkpoint.Step) (checkpoint.Row, error) {
	row, err := checkpoint.EncodeStep(id, g.stepName(id, step.Key), step)
	if err != nil {
		return row, err
	}
	return g.vault.sealRow(row)
}

// decodeStep reads a row of this gate's store. Its error is a [*checkpoint.DecodeError].
func (g *Gate) decodeStep(row checkpoint.Row) (*checkpoint.Step, error) {
	row, err := g.vault.openRow(row)
	if err != nil {
		return nil, err
	}
	return checkpoint.DecodeStep(row)
}
