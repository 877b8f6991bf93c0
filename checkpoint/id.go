package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// An ID names one interaction: six bytes of time (Unix milliseconds) and six random ones, so that
// IDs sort by the time they were made. It is not secret: it may be shown and logged. The zero ID
// names nothing.
type ID [12]byte

// NewID makes an ID for the time now with six bytes from random.
func NewID(now time.Time, random io.Reader) (ID, error) {
	var id ID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(id[:6], ms[2:])
	if _, err := io.ReadFull(random, id[6:]); err != nil {
		return ID{}, fmt.Errorf("read randomness for an interaction id: %w", err)
	}
	return id, nil
}

// ParseID reads the form that [ID.String] writes.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, fmt.Errorf("parse interaction id %.40q: want %d hexadecimal digits", s, 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("parse interaction id %.40q: want %d hexadecimal digits", s, 2*len(id))
	}
	return id, nil
}

// String returns the ID as 24 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the ID names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders IDs by the time they were made, then by their random part.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText writes the form of [ID.String].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of [ID.String].
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// A Hash is a keyed digest under which a store can find a record without learning what was hashed.
// The zero Hash means that there is nothing to find.
type Hash [32]byte

// IsZero reports whether there is nothing to find.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the form of [Hash.String].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("parse hash: want %d hexadecimal digits, have %d bytes", 2*len(h), len(text))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return fmt.Errorf("parse hash: %w", err)
	}
	return nil
}
