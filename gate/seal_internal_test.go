package gate

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

// R37: the ledger, the record's id, the kind, the name of a row and the revision are additional
// data: sealed data opens where all of them are the same, and nowhere else. This is told inside the
// package, since what is sealed holds copies of most of them, which would refuse it as well.
func TestSealedDataIsBoundToItsPlace(t *testing.T) {
	v, err := newVault([][]byte{bytes.Repeat([]byte("k"), keySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	v = v.of([16]byte{1})
	at := sealPlace{kind: kindRow, id: checkpoint.ID{1}, name: "name", revision: 1}
	sealed, err := v.seal(at, []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := v.open(at, sealed); err != nil || string(data) != "data" {
		t.Fatalf("%q, %v", data, err)
	}
	for what, change := range map[string]func(p *sealPlace, v *vault){
		"kind":     func(p *sealPlace, _ *vault) { p.kind = kindInteraction },
		"id":       func(p *sealPlace, _ *vault) { p.id[0]++ },
		"name":     func(p *sealPlace, _ *vault) { p.name = "Name" },
		"revision": func(p *sealPlace, _ *vault) { p.revision++ },
		"ledger":   func(_ *sealPlace, v *vault) { v.ledger[0]++ },
	} {
		p, other := at, *v
		change(&p, &other)
		if data, err := other.open(p, sealed); err == nil {
			t.Errorf("another %s: opened as %q", what, data)
		}
		// The key is another one for another record or ledger; what holds the place to the data
		// even then is the additional data.
		if bytes.Equal(v.additional(at), other.additional(p)) {
			t.Errorf("another %s is the same additional data", what)
		}
	}
	if bytes.Equal(v.additional(sealPlace{kind: "a", name: "bc"}), v.additional(sealPlace{kind: "ab", name: "c"})) {
		t.Error("kind and name run into each other")
	}
}
