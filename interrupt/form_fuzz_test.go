package interrupt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/internal/schema"
	"github.com/parley-go/parley/interrupt"
)

// R11: whatever a schema holds, the form is valid or the error is a short QuestionError. A valid
// one is a valid JSON Schema too, and an answer made of its defaults is refused for nothing but a
// field that is required and has none.
func FuzzFormSchema(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte) {
		form := interrupt.Form("m", raw)
		if err := form.Validate(); err != nil {
			if e, ok := errors.AsType[*interrupt.QuestionError](err); !ok || e.Reason == "" || len(e.Error()) > 1500 {
				t.Fatalf("error is %T: %.300v", err, err)
			}
			return
		}
		if _, err := schema.Compile(raw); err != nil {
			t.Fatalf("form %q is no JSON Schema: %v", raw, err)
		}
		fields, err := form.Fields()
		if err != nil {
			t.Fatal(err)
		}
		content, complete := map[string]json.RawMessage{}, true
		for _, field := range fields {
			if field.Default != nil {
				content[field.Name] = field.Default
			} else if field.Required {
				complete = false
			}
		}
		payload, err := json.Marshal(map[string]any{"content": content})
		if err != nil {
			t.Fatal(err)
		}
		if err := form.ValidatePayload(payload); (err == nil) != complete {
			t.Fatalf("defaults %s of %s: %v", payload, raw, err)
		}
	})
}

// R15, R16: whatever a person answers to a form of a struct, it is refused or it has a value.
func FuzzFormOfValue(f *testing.F) {
	f.Fuzz(func(t *testing.T, payload []byte) {
		form := interrupt.FormFor[trip]("m")
		action, err := interrupt.Apply(form, payload)
		if err != nil || action != interrupt.ActionAccept {
			return
		}
		if value, err := form.Value(); err != nil {
			t.Fatalf("%s is accepted, and is %+v, %v", form.Content, value, err)
		}
	})
}

// R15: what a form accepts, the JSON Schema validator accepts too, and the canonical content is
// accepted again and stays itself. What is refused changes nothing.
func FuzzFormAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw, payload []byte) {
		form := interrupt.Form("m", raw)
		if form.Validate() != nil {
			return
		}
		checked := form.ValidatePayload(payload)
		if err := form.Return(payload); err != nil {
			e, ok := errors.AsType[*interrupt.PayloadError](err)
			if !ok || e.Reason == "" || len(e.Error()) > 1500 || checked == nil {
				t.Fatalf("error is %T: %.300v", err, err)
			}
			if diff := cmp.Diff(interrupt.Form("m", raw), form); diff != "" {
				t.Fatalf("a refused answer changed the form:\n%s", diff)
			}
			return
		}
		if checked != nil {
			t.Fatalf("Return accepts what ValidatePayload refuses: %v", checked)
		}
		if form.Action != interrupt.ActionAccept {
			return
		}
		compiled, err := schema.Compile(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(form.Content); err != nil {
			t.Fatalf("content %s does not fit %s: %v", form.Content, raw, err)
		}
		content := bytes.Clone(form.Content)
		if err := form.Return([]byte(`{"content":` + string(content) + `}`)); err != nil ||
			!bytes.Equal(content, form.Content) {
			t.Fatalf("content %s is %s the second time, %v", content, form.Content, err)
		}
	})
}
