package gate

import (
	"github.com/parley-go/parley/checkpoint"
)

// encode makes the record of an interaction, as this gate's store keeps it.
func (g *Gate) encode(in *checkpoint.Interaction) (checkpoint.Record, error) {
	return checkpoint.Encode(in)
}

// decode reads a record of this gate's store. Its error is a [*checkpoint.DecodeError].
func (g *Gate) decode(record checkpoint.Record) (*checkpoint.Interaction, error) {
	return checkpoint.Decode(record)
}

// read is decode for a request, whose error is public.
func (g *Gate) read(record checkpoint.Record) (*checkpoint.Interaction, error) {
	in, err := g.decode(record)
	if err != nil {
		return nil, unavailable(err)
	}
	return in, nil
}
