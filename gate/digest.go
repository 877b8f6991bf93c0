package gate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"strconv"
	"sync"

	"github.com/parley-go/parley/checkpoint"
)

// What is digested is a list of parts. Each is written with its length, so that no two lists of
// parts read the same.

// frameSize is what a part has beside itself.
const frameSize = 8

func frame[T string | []byte | json.RawMessage](dst []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(part))), part...)
}

// digestAll is the digest of a list of canonical values.
func digestAll(values []json.RawMessage) checkpoint.Hash {
	var text []byte
	for _, value := range values {
		text = frame(text, value)
	}
	return sha256.Sum256(text)
}

// promptDigest is the digest of what a round shows: the arguments and the questions.
func promptDigest(in *checkpoint.Interaction, questions []checkpoint.Question) checkpoint.Hash {
	size := len(in.Tool) + len(in.ToolRevision) + len(in.Arguments)
	for _, q := range questions {
		size += sizeOf(q) + perQuestion
	}
	text := make([]byte, 0, size+perPrompt)
	text = frame(text, in.Tool)
	text = frame(text, in.ToolRevision)
	text = frame(text, in.Arguments)
	for _, q := range questions {
		text = frame(text, q.ID)
		text = frame(text, q.Type)
		text = frame(text, q.Key)
		text = frame(text, q.Body)
		text = frame(text, q.Digest[:])
		text = frameShown(text, q)
		text = frameRemember(text, q.Remember)
	}
	return sha256.Sum256(text)
}

// frameShown writes what a question has of version and presentation to the digest of its prompt. It
// is nothing for a question without: the digests of those that were asked before there was any stay
// what they were. The words cannot be taken for the id of the next question.
func frameShown(text []byte, q checkpoint.Question) []byte {
	if q.Version != 0 {
		text = frame(text, "version")
		text = frame(text, strconv.Itoa(q.Version))
	}
	if q.Shown != nil {
		text = frame(text, "shown")
		text = frame(text, q.Shown.Type)
		text = frame(text, q.Shown.Body)
	}
	return text
}

// macs makes keyed digests. Its states outlive one digest in a pool, since making one from the key
// costs more than the digest of a short text.
type macs struct{ pool *sync.Pool }

func newMACs(key []byte) macs {
	return macs{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (m macs) sum(text []byte) (sum [sha256.Size]byte) {
	mac := m.pool.Get().(hash.Hash)
	defer m.pool.Put(mac)
	mac.Reset()
	mac.Write(text)
	mac.Sum(sum[:0])
	return sum
}

// hash is the keyed digest of a list of words, under which a store finds records.
func (g *Gate) hash(words ...string) checkpoint.Hash {
	size := 0
	for _, word := range words {
		size += frameSize + len(word)
	}
	text := make([]byte, 0, size)
	for _, word := range words {
		text = frame(text, word)
	}
	return g.index.sum(text)
}
