package gate

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/parley-go/parley/internal/durable"
)

// keySize is the size of a secret, in bytes.
const keySize = 32

// A ring holds the keys of tokens: the first mints, all verify (R22).
type ring []ringKey

// A ringKey is what one secret is used for. Each use has a key of its own, derived by purpose.
type ringKey struct {
	id    string // names the secret in records; says nothing about it
	block cipher.Block
	macs  macs
}

func newRing(secrets [][]byte) (ring, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no keys: tokens would not survive a restart; see gate.KeyFile")
	}
	var r ring
	for i, secret := range secrets {
		if len(secret) < keySize {
			return nil, fmt.Errorf("key %d has %d bytes, want %d or more", i+1, len(secret), keySize)
		}
		id := derive(secret, "key id", 8)
		block, err := aes.NewCipher(derive(secret, "token block", 32))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		key := ringKey{id: hex.EncodeToString(id), block: block, macs: newMACs(derive(secret, "token tag", 32))}
		if _, ok := r.find(key.id); ok {
			return nil, fmt.Errorf("key %d is in the ring twice", i+1)
		}
		r = append(r, key)
	}
	return r, nil
}

func (r ring) find(id string) (ringKey, bool) {
	for _, key := range r {
		if key.id == id {
			return key, true
		}
	}
	return ringKey{}, false
}

// derive makes the key of one purpose from a secret.
func derive(secret []byte, purpose string, size int) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "parley v1 "+purpose, size)
	if err != nil {
		panic(err) // only for a size that HKDF cannot reach
	}
	return key
}

// NewKey returns a new random secret for [Options.Keys].
func NewKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) //nolint:errcheck // crypto/rand.Read never fails
	return key
}

// DefaultKeyFile returns the path of the named key file in the user's configuration directory,
// which is not where the data is.
func DefaultKeyFile(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find key file %q: %w", name, err)
	}
	return filepath.Join(dir, "parley", name+".key"), nil
}

// KeyFile returns the secrets of a key file for [Options.Keys]: one a line, in hexadecimal, the
// first one minting; empty lines and lines that begin with # are passed over. Where there is no
// such file it makes one with one new secret, durably and with mode 0600.
//
// Do not keep it beside the data: whoever can read both can make tokens. A file that others can
// read is refused.
func KeyFile(path string) ([][]byte, error) {
	text, err := readKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKeyFile(path); err != nil {
			return nil, fmt.Errorf("create key file %q: %w", path, err)
		}
		text, err = readKeyFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key file %q: %w", path, err)
	}
	var secrets [][]byte
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := hex.DecodeString(line)
		if err != nil || len(secret) != keySize {
			return nil, fmt.Errorf("read key file %q: line %d: want %d hexadecimal digits", path, n, 2*keySize)
		}
		secrets = append(secrets, secret)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read key file %q: %w", path, err)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("read key file %q: it holds no key", path)
	}
	return secrets, nil
}

func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	// On Windows the bits say nothing about who can read the file: access lists decide there.
	shared := runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
	if shared || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("mode is %v, want a regular file of mode 0600", info.Mode())
	}
	return os.ReadFile(path)
}

// createKeyFile never replaces a file: of two processes that create it at once both use the one
// that was first.
func createKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text := fmt.Appendf(nil, "# parley keys, one a line; the first one mints\n%x\n", NewKey())
	return durable.CreateOnce(path, func(temp string) error { return os.WriteFile(temp, text, 0o600) })
}
