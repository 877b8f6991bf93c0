package mcpbridge

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// The key of an input request is the question's ID, the kind of answer that it takes, and a tag of
// the token that it was given out with. So it is unique over the interaction (M2, and what tasks
// would ask), an answer is read without a look at the ledger, and one to another round, or to
// nothing that this server asked, is told apart and ignored (M9). It says nothing about the token
// that could be used.

func keyOf(q gate.Question, token gate.Token) string {
	return q.ID + "." + q.Type + "." + tagOf(token)
}

// readKey returns the question and its type from a key of that token; ok is false for every other
// text.
func readKey(key string, token gate.Token) (id, kind string, ok bool) {
	rest, tag, ok := cutLast(key)
	if !ok || tag != tagOf(token) {
		return "", "", false
	}
	id, kind, ok = cutLast(rest)
	return id, kind, ok && presentable(kind)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func tagOf(token gate.Token) string {
	digest := sha256.Sum256([]byte("parley input request key " + string(token)))
	return base64.RawURLEncoding.EncodeToString(digest[:6])
}

// presentable reports whether questions of that type have a form in MCP.
func presentable(kind string) bool {
	switch kind {
	case interrupt.TypeToolPermission, interrupt.TypeUserSelection, interrupt.TypeForm, interrupt.TypeURL:
		return true
	}
	return false
}
