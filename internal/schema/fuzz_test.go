package schema_test

import (
	"errors"
	"testing"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/schema"
)

// Whatever the schema and the document are, the answer is nil or an Error, the same each time, and
// no panic.
func FuzzValidate(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw, doc []byte) {
		s, err := schema.Compile(raw)
		if err != nil {
			if e, ok := errors.AsType[*schema.Error](err); !ok || e.Reason == "" || len(e.Error()) > 1000 {
				t.Fatalf("error is %T: %.300v", err, err)
			}
			return
		}
		if doc, err = canon.JSON(doc, nil); err != nil {
			return // it is not for Validate
		}
		first := s.Validate(doc)
		if first == nil {
			return
		}
		if e, ok := errors.AsType[*schema.Error](first); !ok || e.Reason == "" || len(e.Error()) > 1000 {
			t.Fatalf("error is %T: %.300v", first, first)
		}
		if again := s.Validate(doc); again == nil || again.Error() != first.Error() {
			t.Fatalf("error is %v, and then %v", first, again)
		}
	})
}
