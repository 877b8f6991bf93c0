package gate

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/parley-go/parley/checkpoint"
)

// ledgerMeta is the gate's own part of a ledger: the key of index hashes, sealed where there are
// data keys, since whoever has it can try out which scope or start ID a hash is of.
type ledgerMeta struct {
	V        int    `json:"v"`
	IndexKey []byte `json:"indexKey,omitempty"`
	Sealed   []byte `json:"sealed,omitempty"`
}

const kindLedger = "ledger"

// newLedger proposes a ledger to a store that has none.
func (v *vault) newLedger(random io.Reader) (checkpoint.Ledger, error) {
	ledger := checkpoint.Ledger{}
	key := make([]byte, keySize)
	if _, err := io.ReadFull(random, ledger.ID[:]); err != nil {
		return ledger, fmt.Errorf("read randomness for a ledger: %w", err)
	}
	if _, err := io.ReadFull(random, key); err != nil {
		return ledger, fmt.Errorf("read randomness for a ledger: %w", err)
	}
	var err error
	ledger.Meta, err = v.sealMeta(ledger.ID, key)
	return ledger, err
}

// sealMeta is the meta data of a ledger with that index key.
func (v *vault) sealMeta(ledger [16]byte, indexKey []byte) ([]byte, error) {
	if v == nil {
		return json.Marshal(ledgerMeta{V: 1, IndexKey: indexKey})
	}
	sealed, err := v.of(ledger).seal(sealPlace{kind: kindLedger}, indexKey)
	if err != nil {
		return nil, err
	}
	return json.Marshal(ledgerMeta{V: 1, Sealed: sealed})
}

// openMeta returns the index key of a ledger. Where the vault has keys the meta data must be
// sealed, and else must not.
func (v *vault) openMeta(ledger checkpoint.Ledger) ([]byte, error) {
	var meta ledgerMeta
	if err := json.Unmarshal(ledger.Meta, &meta); err != nil || meta.V != 1 {
		return nil, errNoIndexKey
	}
	stored := meta.IndexKey
	switch {
	case v == nil && meta.Sealed != nil:
		return nil, errSealed
	case v != nil && meta.Sealed == nil:
		return nil, errPlain
	case v != nil:
		var err error
		if stored, err = v.of(ledger.ID).open(sealPlace{kind: kindLedger}, meta.Sealed); err != nil {
			return nil, err
		}
	}
	if len(stored) != keySize {
		return nil, errNoIndexKey
	}
	return stored, nil
}

// of returns the vault of that ledger.
func (v *vault) of(ledger [16]byte) *vault {
	if v == nil {
		return nil
	}
	own := *v
	own.ledger, own.recent = ledger, newCiphers() // keys of records are derived with the ledger's id
	return &own
}
