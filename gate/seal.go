package gate

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// Sealed data is what a store keeps of what people and tools wrote, where the gate has data keys
// (R37):
//
//	1 ‖ id of the data key 8 ‖ nonce 12 ‖ AES-256-GCM(data)
//
// The key is derived from the data key for each record, with the ledger's id. The additional data
// names the ledger, the record, the kind and name of what it is, and the revision: data of another
// place, or of another revision, does not open here.
const (
	sealFormat   = 1
	sealKeyID    = 8
	sealNonce    = 12
	sealOverhead = 1 + sealKeyID + sealNonce + 16
)

// A vault seals and opens the data of one ledger. nil keeps everything in plain text.
type vault struct {
	ledger [16]byte
	keys   []dataKey // the first one seals, all open
	random io.Reader
	recent *recentCiphers
}

// recentCiphers keeps the ciphers of the records that were sealed or opened last: a record is
// written several times in a row, and deriving its key costs more than using it.
type recentCiphers struct {
	mu sync.Mutex
	of map[cipherOf]cipher.AEAD
}

type cipherOf struct {
	key [sealKeyID]byte
	id  checkpoint.ID
}

func newCiphers() *recentCiphers { return &recentCiphers{of: make(map[cipherOf]cipher.AEAD)} }

// maxCiphers is how many ciphers are kept; then all are forgotten, and made again as needed.
const maxCiphers = 1024

type dataKey struct {
	id     [sealKeyID]byte
	secret []byte // pseudo-random, of which records' keys are derived
}

// newVault returns nil where there are no secrets.
func newVault(secrets [][]byte, random io.Reader) (*vault, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	v := &vault{random: random, recent: newCiphers()}
	for i, secret := range secrets {
		if len(secret) < keySize {
			return nil, fmt.Errorf("data key %d has %d bytes, want %d or more", i+1, len(secret), keySize)
		}
		key := dataKey{id: [sealKeyID]byte(derive(secret, "data key id", sealKeyID)), secret: derive(secret, "data", keySize)}
		for _, other := range v.keys {
			if other.id == key.id {
				return nil, fmt.Errorf("data key %d is in the ring twice", i+1)
			}
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// A sealPlace is where a piece of sealed data belongs.
type sealPlace struct {
	kind     string // what it is
	id       checkpoint.ID
	name     string // of a row
	revision uint64 // of a record
}

// cipher returns the cipher of a record.
func (v *vault) cipher(key dataKey, id checkpoint.ID) (cipher.AEAD, error) {
	of := cipherOf{key.id, id}
	v.recent.mu.Lock()
	gcm := v.recent.of[of]
	v.recent.mu.Unlock()
	if gcm != nil {
		return gcm, nil
	}
	gcm, err := v.derive(key, id)
	if err != nil {
		return nil, err
	}
	v.recent.mu.Lock()
	defer v.recent.mu.Unlock()
	if len(v.recent.of) >= maxCiphers {
		clear(v.recent.of)
	}
	v.recent.of[of] = gcm
	return gcm, nil
}

func (v *vault) derive(key dataKey, id checkpoint.ID) (cipher.AEAD, error) {
	info := "parley v1 record" + string(v.ledger[:]) + string(id[:])
	secret, err := hkdf.Expand(sha256.New, key.secret, info, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (v *vault) additional(p sealPlace) []byte {
	b := append([]byte{sealFormat}, v.ledger[:]...)
	b = append(b, p.id[:]...)
	b = binary.BigEndian.AppendUint64(b, p.revision)
	b = append(b, byte(len(p.kind))) // the names of kinds are short
	b = append(b, p.kind...)
	return append(b, p.name...)
}

// seal returns data as it is stored at that place.
func (v *vault) seal(p sealPlace, data []byte) ([]byte, error) {
	if v == nil {
		return data, nil
	}
	key := v.keys[0]
	gcm, err := v.cipher(key, p.id)
	if err != nil {
		return nil, fmt.Errorf("seal %s %s: %w", p.kind, p.id, err)
	}
	sealed := make([]byte, 0, len(data)+sealOverhead)
	sealed = append(sealed, sealFormat)
	sealed = append(sealed, key.id[:]...)
	sealed = sealed[:len(sealed)+sealNonce]
	nonce := sealed[len(sealed)-sealNonce:]
	if _, err := io.ReadFull(v.random, nonce); err != nil {
		return nil, fmt.Errorf("seal %s %s: read randomness: %w", p.kind, p.id, err)
	}
	return gcm.Seal(sealed, nonce, data, v.additional(p)), nil
}

var (
	errSealed   = errors.New("it is sealed, and there are no data keys")
	errPlain    = errors.New("it is in plain text, and there are data keys")
	errKeyGone  = errors.New("it is sealed under a data key that is not in the ring")
	errTampered = errors.New("it does not open: damaged, or not what was sealed for this place")
)

// open returns what was sealed for that place. Plain text is refused where there are keys, and
// sealed data where there are none.
func (v *vault) open(p sealPlace, stored []byte) ([]byte, error) {
	sealed := len(stored) > 0 && stored[0] == sealFormat
	switch {
	case v == nil && sealed:
		return nil, errSealed
	case v == nil:
		return stored, nil
	case !sealed:
		return nil, errPlain
	case len(stored) < sealOverhead:
		return nil, errTampered
	}
	key, ok := v.find(stored)
	if !ok {
		return nil, errKeyGone
	}
	gcm, err := v.cipher(key, p.id)
	if err != nil {
		return nil, err
	}
	nonce, text := stored[1+sealKeyID:1+sealKeyID+sealNonce], stored[1+sealKeyID+sealNonce:]
	data, err := gcm.Open(nil, nonce, text, v.additional(p))
	if err != nil {
		return nil, errTampered
	}
	return data, nil
}

// find returns the key that sealed.
func (v *vault) find(sealed []byte) (dataKey, bool) {
	for _, key := range v.keys {
		if bytes.Equal(sealed[1:1+sealKeyID], key.id[:]) {
			return key, true
		}
	}
	return dataKey{}, false
}

// current reports whether stored data is as seal would leave it now: under the first key, or in
// plain text where there are none.
func (v *vault) current(stored []byte) bool {
	if v == nil {
		return len(stored) == 0 || stored[0] != sealFormat
	}
	return len(stored) >= sealOverhead && stored[0] == sealFormat && bytes.Equal(stored[1:1+sealKeyID], v.keys[0].id[:])
}
