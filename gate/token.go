package gate

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"slices"

	"github.com/parley-go/parley/checkpoint"
)

// A Token lets a caller continue an interaction from one round. It is a secret: whoever holds it,
// and is who it was made for, can answer. string(token) is what goes over a wire; fmt and log/slog
// print a placeholder.
type Token string

// String hides the token.
func (Token) String() string { return "[token]" }

// GoString hides the token.
func (Token) GoString() string { return "[token]" }

// LogValue hides the token.
func (Token) LogValue() slog.Value { return slog.StringValue("[token]") }

// A token is one AES block over what it names, and a tag over that block and the ledger's id:
//
//	AES-256(id 12 ‖ round 2 ‖ mint count 2) ‖ HMAC-SHA-256(block ‖ ledger)[:16]
//
// Nothing in it can be read or told from random without the key; a forged one fails on the tag,
// without any I/O; and since it is a function of the record and the key, an identical replay gets
// the same token although none is stored (R20).
const (
	tokenTagSize = 16
	tokenSize    = 16 + tokenTagSize
)

// TokenLength is the length of every token, in bytes.
const TokenLength = 43

var tokenEncoding = base64.RawURLEncoding.Strict()

// A tokenName is what a token names.
type tokenName struct {
	id    checkpoint.ID
	round int
	mint  uint16
	key   string // the id of the key that verified it
}

// mint derives the token.
func (k ringKey) mint(ledger [16]byte, id checkpoint.ID, round int, count uint16) Token {
	var plain [16]byte
	copy(plain[:12], id[:])
	binary.BigEndian.PutUint16(plain[12:], uint16(round)) // the number of rounds is bounded far below
	binary.BigEndian.PutUint16(plain[14:], count)
	token := make([]byte, 16, tokenSize)
	k.block.Encrypt(token, plain[:])
	token = append(token, k.tag(ledger, token)...)
	return Token(tokenEncoding.EncodeToString(token))
}

func (k ringKey) tag(ledger [16]byte, block []byte) []byte {
	sum := k.macs.sum(slices.Concat(block, ledger[:]))
	return sum[:tokenTagSize]
}

// open verifies a token against every key of the ring and reads what it names.
func (r ring) open(ledger [16]byte, token Token) (tokenName, bool) {
	if len(token) != TokenLength {
		return tokenName{}, false
	}
	raw, err := tokenEncoding.DecodeString(string(token))
	if err != nil || len(raw) != tokenSize {
		return tokenName{}, false
	}
	for _, key := range r {
		if !hmac.Equal(key.tag(ledger, raw[:16]), raw[16:]) {
			continue
		}
		var plain [16]byte
		key.block.Decrypt(plain[:], raw[:16])
		return tokenName{
			id:    checkpoint.ID(plain[:12]),
			round: int(binary.BigEndian.Uint16(plain[12:])),
			mint:  binary.BigEndian.Uint16(plain[14:]),
			key:   key.id,
		}, true
	}
	return tokenName{}, false
}
