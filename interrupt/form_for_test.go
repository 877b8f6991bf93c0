package interrupt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/internal/resume"
	"github.com/parley-go/parley/interrupt"
)

type region string

// A trip has a field of every kind that a form can ask for.
type trip struct {
	Service string      `json:"service" title:"Service" description:"Which one, please" minLength:"1" maxLength:"9" default:"api"`
	Mail    string      `json:"mail,omitempty" format:"email"`
	Env     region      `json:"env" enum:"dev, prod" enumNames:"Development, Production" default:"dev"`
	Zone    *region     `json:"zone" enum:"eu,us"`
	Small   int8        `json:"small" minimum:"-5" default:"0"`
	Byte    uint8       `json:"byte,omitzero"`
	Wide    int64       `json:"wide,omitempty" maximum:"9223372036854775807"`
	Count   uint64      `json:"count,omitempty"`
	Short   int16       `json:"short,omitempty"`
	Half    uint32      `json:"half,omitempty"`
	Single  float32     `json:"single,omitempty"`
	Double  *float64    `json:"double"`
	Ratio   float64     `json:"ratio,omitempty" minimum:"0.1" maximum:"1e3"`
	Exact   json.Number `json:"exact,omitempty"`
	Sure    bool        `json:"sure" default:"false"`
	At      time.Time   `json:"at,omitzero" title:"When"`
	Tags    []region    `json:"tags,omitempty" enum:"a,b,c" minItems:"1" default:"a,c"`
	Titled  *[]string   `json:"titled" enum:"x,y" enumNames:"X,Y" maxItems:"1"`
	Plain   string
	Skipped func() `json:"-" yaml:"skipped"`
	_       int
}

// R11: a struct is written as a flat schema, its fields in their order.
func TestFormFor(t *testing.T) {
	form := interrupt.FormFor[trip]("Fill in")
	if err := form.Validate(); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` + strings.Join([]string{
		`"service":{"type":"string","title":"Service","description":"Which one, please","default":"api","minLength":1,"maxLength":9}`,
		`"mail":{"type":"string","format":"email"}`,
		`"env":{"type":"string","default":"dev","oneOf":[{"const":"dev","title":"Development"},{"const":"prod","title":"Production"}]}`,
		`"zone":{"type":"string","enum":["eu","us"]}`,
		`"small":{"type":"integer","default":0,"minimum":-5,"maximum":127}`,
		`"byte":{"type":"integer","minimum":0,"maximum":255}`,
		`"wide":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`,
		`"count":{"type":"integer","minimum":0,"maximum":18446744073709551615}`,
		`"short":{"type":"integer","minimum":-32768,"maximum":32767}`,
		`"half":{"type":"integer","minimum":0,"maximum":4294967295}`,
		`"single":{"type":"number","minimum":-3.4028235e+38,"maximum":3.4028235e+38}`,
		`"double":{"type":"number","minimum":-1.7976931348623157e+308,"maximum":1.7976931348623157e+308}`,
		`"ratio":{"type":"number","minimum":0.1,"maximum":1e3}`,
		`"exact":{"type":"number"}`,
		`"sure":{"type":"boolean","default":false}`,
		`"at":{"type":"string","title":"When","format":"date-time"}`,
		`"tags":{"type":"array","default":["a","c"],"minItems":1,"maxItems":3,"items":{"type":"string","enum":["a","b","c"]}}`,
		`"titled":{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"}]}}`,
		`"Plain":{"type":"string"}`,
	}, ",") + `},"required":["service","env","small","sure","Plain"]}`
	if diff := cmp.Diff(want, string(form.Schema)); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	if form.Message != "Fill in" || form.TypeName() != "form" {
		t.Errorf("%q of type %q", form.Message, form.TypeName())
	}
	if fields, err := form.Fields(); err != nil || len(fields) != 19 {
		t.Errorf("%d fields, %v", len(fields), err)
	}
	if empty := interrupt.FormFor[struct{}]("m"); empty.Validate() != nil || string(empty.Schema) != `{"type":"object","properties":{}}` {
		t.Errorf("no fields: %s, %v", empty.Schema, empty.Validate())
	}
}

type ownText struct{}

func (*ownText) UnmarshalText([]byte) error { return nil }

type ownJSON struct {
	A string `json:"a"`
}

func (*ownJSON) UnmarshalJSON([]byte) error { return nil }

type embedded struct {
	A string `json:"a"`
}

// refusedForm is the form of T, and where it is refused.
func refusedForm[T any](path string) func() (interrupt.Interrupt, string, error) {
	return func() (interrupt.Interrupt, string, error) {
		form := interrupt.FormFor[T]("m")
		if _, err := form.Fields(); err == nil {
			return form, path, nil
		}
		return form, path, form.Validate()
	}
}

// R11: what no form can express is refused with the place of the field, and never dropped: by
// Validate, and when the question is raised.
func TestFormForRefuses(t *testing.T) {
	for name, form := range map[string]func() (interrupt.Interrupt, string, error){
		"no struct":              refusedForm[string]("/schema"),
		"a pointer":              refusedForm[*embedded]("/schema"),
		"a map":                  refusedForm[map[string]string]("/schema"),
		"an interface":           refusedForm[any]("/schema"),
		"reads its own JSON":     refusedForm[ownJSON]("/schema"),
		"a time":                 refusedForm[time.Time]("/schema"),
		"a struct inside":        refusedForm[struct{ A embedded }]("/schema/properties/A"),
		"a map inside":           refusedForm[struct{ A map[string]int }]("/schema/properties/A"),
		"any":                    refusedForm[struct{ A any }]("/schema/properties/A"),
		"a function":             refusedForm[struct{ A func() }]("/schema/properties/A"),
		"complex":                refusedForm[struct{ A complex64 }]("/schema/properties/A"),
		"a pointer to a pointer": refusedForm[struct{ A **int }]("/schema/properties/A"),
		"bytes":                  refusedForm[struct{ A []byte }]("/schema/properties/A"),
		"numbers":                refusedForm[struct{ A []int }]("/schema/properties/A"),
		"an array":               refusedForm[struct{ A [2]string }]("/schema/properties/A"),
		"free strings":           refusedForm[struct{ A []string }]("/schema/properties/A/enum"),
		"a list of numbers": refusedForm[struct {
			A []json.Number `enum:"1"`
		}]("/schema/properties/A"),
		"reads its own text": refusedForm[struct{ A ownText }]("/schema/properties/A"),
		"a list of those": refusedForm[struct {
			A []ownText `enum:"a"`
		}]("/schema/properties/A"),
		"embedded": refusedForm[struct{ embedded }]("/schema/properties/embedded"),
		"not exported": refusedForm[struct {
			a string `title:"A"`
		}]("/schema/properties/a"),
		"a name twice": refusedForm[struct {
			A string `json:"B"`
			B string
		}]("/schema/properties/B"),
		"a name that is passed over": refusedForm[struct {
			A string `json:"a€"`
		}]("/schema/properties/a€"),
		"converted": refusedForm[struct {
			A int `json:"a,string"`
		}]("/schema/properties/a"),

		"another keyword": refusedForm[struct {
			A string `json:"a" pattern:"^x$"`
		}]("/schema/properties/a/pattern"),
		"jsonschema": refusedForm[struct {
			A string `json:"a" jsonschema:"the service"`
		}]("/schema/properties/a/jsonschema"),
		"misspelt": refusedForm[struct {
			A string `json:"a" yaml:"a\"b" maxlength:"3"`
		}]("/schema/properties/a/maxlength"),
		"a length of a number": refusedForm[struct {
			A int `json:"a" maxLength:"3"`
		}]("/schema/properties/a/maxLength"),
		"a bound of a string": refusedForm[struct {
			A string `json:"a" minimum:"3"`
		}]("/schema/properties/a/minimum"),
		"an enum of numbers": refusedForm[struct {
			A int `json:"a" enum:"1,2"`
		}]("/schema/properties/a/enum"),
		"an empty enum": refusedForm[struct {
			A string `json:"a" enum:""`
		}]("/schema/properties/a/enum"),
		"an empty choice": refusedForm[struct {
			A string `json:"a" enum:"x,"`
		}]("/schema/properties/a/enum/1"),
		"a choice twice": refusedForm[struct {
			A string `json:"a" enum:"x,x"`
		}]("/schema/properties/a/enum/1"),
		"titles without choices": refusedForm[struct {
			A string `json:"a" enumNames:"x"`
		}]("/schema/properties/a/enumNames"),
		"too few titles": refusedForm[struct {
			A string `json:"a" enum:"x,y" enumNames:"X"`
		}]("/schema/properties/a/enumNames"),
		"a length in words": refusedForm[struct {
			A string `json:"a" maxLength:"three"`
		}]("/schema/properties/a/maxLength"),
		"a broken length": refusedForm[struct {
			A string `json:"a" maxLength:"1.5"`
		}]("/schema/properties/a/maxLength"),
		"two values in a bound": refusedForm[struct {
			A int `json:"a" minimum:"1,\"maximum\":2"`
		}]("/schema/properties/a/minimum"),
		"crossed bounds": refusedForm[struct {
			A int `json:"a" minimum:"3" maximum:"2"`
		}]("/schema/properties/a/minimum"),
		"a bound beyond the type": refusedForm[struct {
			A int8 `json:"a" maximum:"1000"`
		}]("/schema/properties/a/maximum"),
		"a bound below the type": refusedForm[struct {
			A uint `json:"a" minimum:"-1"`
		}]("/schema/properties/a/minimum"),
		"a bound beyond 64 bits": refusedForm[struct {
			A *int64 `json:"a" maximum:"9223372036854775808"`
		}]("/schema/properties/a/maximum"),
		"a bound beyond a float": refusedForm[struct {
			A float32 `json:"a" maximum:"1e39"`
		}]("/schema/properties/a/maximum"),
		"a default out of bounds": refusedForm[struct {
			A int8 `json:"a" default:"128"`
		}]("/schema/properties/a/default"),
		"a default that is no number": refusedForm[struct {
			A int `json:"a" default:"two"`
		}]("/schema/properties/a/default"),
		"a default that is maybe": refusedForm[struct {
			A bool `json:"a" default:"maybe"`
		}]("/schema/properties/a/default"),
		"a default that is no choice": refusedForm[struct {
			A string `json:"a" enum:"x,y" default:"z"`
		}]("/schema/properties/a/default"),
		"an unknown format": refusedForm[struct {
			A string `json:"a" format:"ipv4"`
		}]("/schema/properties/a/format"),
		"a time of another format": refusedForm[struct {
			A time.Time `json:"a" format:"date"`
		}]("/schema/properties/a/format"),
	} {
		t.Run(name, func(t *testing.T) {
			q, path, err := form()
			var e *interrupt.QuestionError
			if !errors.As(err, &e) || e.Path != path || e.Type != "form" {
				t.Fatalf("want %s, have %v", path, err)
			}
			if _, err := interrupt.Snapshot(q); !errors.As(err, &e) || e.Path != path {
				t.Errorf("raised: %v", err)
			}
			payload := []byte(`{"content":{}}`)
			_, applied := interrupt.Apply(q, payload)
			_, _, checked := interrupt.Check(q, payload)
			validated := q.(interrupt.PayloadValidator).ValidatePayload(payload)
			for _, err := range []error{applied, checked, validated, q.Return(payload)} {
				if !errors.As(err, &e) || e.Path != path {
					t.Errorf("answered: %v", err)
				}
			}
		})
	}
}

// R8: the zero value is invalid, and so is a form without a message.
func TestFormOfZeroValue(t *testing.T) {
	for name, q := range map[string]*interrupt.FormOf[embedded]{"zero": {}, "nil": nil, "no message": interrupt.FormFor[embedded]("")} {
		if _, err := interrupt.Snapshot(q); !errors.Is(err, interrupt.ErrInvalidQuestion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R15, R16: what the struct cannot hold is no answer, so that the person can correct it; what was
// answered is its value. Nothing wraps around or is converted.
func TestFormOfValue(t *testing.T) {
	type input struct {
		Small  int8        `json:"small,omitempty"`
		Wide   int64       `json:"wide,omitempty"`
		Bare   uint64      `json:"bare,omitempty"`
		Single float32     `json:"single,omitempty"`
		Double float64     `json:"double,omitempty"`
		Exact  json.Number `json:"exact,omitempty"`
		At     time.Time   `json:"at,omitzero"`
		Tags   []string    `json:"tags,omitempty" enum:"a,b"`
		Name   *string     `json:"name" default:"never inserted"`
	}
	name := "x"
	for _, test := range []struct {
		content string
		want    input
		path    string // of what does not fit
	}{
		{`{}`, input{}, ""},
		{`{"name":"x","tags":["b","a"],"small":127}`, input{Name: &name, Tags: []string{"b", "a"}, Small: 127}, ""},
		{`{"wide":9223372036854775807,"bare":18446744073709551615}`, input{Wide: math.MaxInt64, Bare: math.MaxUint64}, ""},
		{`{"wide":1.0e3,"exact":0.10000000000000000000000000001}`, input{Wide: 1000, Exact: "0.10000000000000000000000000001"}, ""},
		{`{"at":"2026-11-30T12:00:00Z"}`, input{At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, ""},
		{`{"small":-128,"wide":-9223372036854775808,"single":-3.4028235e38}`,
			input{Small: -128, Wide: math.MinInt64, Single: -math.MaxFloat32}, ""},
		{`{"double":1.7976931348623157e308}`, input{Double: math.MaxFloat64}, ""},
		{`{"small":128}`, input{}, "/content/small"},
		{`{"wide":9223372036854775808}`, input{}, "/content/wide"},
		{`{"wide":-9223372036854775809}`, input{}, "/content/wide"},
		{`{"wide":1e30}`, input{}, "/content/wide"},
		{`{"bare":18446744073709551616}`, input{}, "/content/bare"},
		{`{"bare":-1}`, input{}, "/content/bare"},
		{`{"single":1e39}`, input{}, "/content/single"},
		{`{"single":-3.4028236e38}`, input{}, "/content/single"},
		{`{"double":1e309}`, input{}, "/content/double"},
	} {
		form := interrupt.FormFor[input]("m")
		if _, err := form.Value(); err == nil || errors.Is(err, interrupt.ErrDeclined) || errors.Is(err, interrupt.ErrCancelled) {
			t.Errorf("before an answer: %v", err)
		}
		_, err := interrupt.Apply(form, []byte(`{"content":`+test.content+`}`))
		if test.path != "" {
			var e *interrupt.PayloadError
			if !errors.As(err, &e) || e.Path != test.path || form.Action != "" {
				t.Errorf("%s: want %q, have %v", test.content, test.path, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", test.content, err)
		}
		value, err := form.Value()
		if diff := cmp.Diff(test.want, value); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +have):\n%s", test.content, err, diff)
		}
	}
	for payload, want := range map[string]error{`{"action":"decline"}`: interrupt.ErrDeclined, `{"action":"cancel"}`: interrupt.ErrCancelled} {
		form := interrupt.FormFor[input]("m")
		if _, err := interrupt.Apply(form, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		if _, err := form.Value(); !errors.Is(err, want) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

// R2, R15: a question with a key is answered in the form in which it was recorded. Where T is
// another struct by now, the answer is held to T: it is a value that T's own form would take, or
// the error has the place.
func TestFormOfValueOfAnOlderStruct(t *testing.T) {
	type then struct {
		Count int    `json:"count"`
		Env   string `json:"env,omitempty"`
		Gone  string `json:"gone,omitempty"`
		Text  string `json:"text,omitempty"`
	}
	type now struct {
		Count int    `json:"count" maximum:"10"`
		Env   string `json:"env,omitempty" enum:"dev,prod"`
		Text  string `json:"text,omitempty" minLength:"2"`
		New   *bool  `json:"new"`
	}
	type strict struct {
		Count int  `json:"count"`
		Sure  bool `json:"sure"`
	}
	for _, test := range []struct {
		content string
		want    now
		path    string
	}{
		{`{"count":10,"env":"dev","text":"ab"}`, now{Count: 10, Env: "dev", Text: "ab"}, ""},
		{`{"count":11}`, now{}, "/content/count"},
		{`{"count":1,"env":"test"}`, now{}, "/content/env"},
		{`{"count":1,"text":"a"}`, now{}, "/content/text"},
		{`{"count":1,"gone":"a"}`, now{}, "/content/gone"},
	} {
		answered, err := askRecorded[now](t, interrupt.FormFor[then]("old"), test.content)
		if err != nil {
			t.Fatalf("%s: %v", test.content, err)
		}
		value, err := answered.Value()
		var e *interrupt.PayloadError
		if test.path == "" && err != nil || test.path != "" && (!errors.As(err, &e) || e.Path != test.path) {
			t.Errorf("%s: want %q, have %v", test.content, test.path, err)
		}
		if diff := cmp.Diff(test.want, value); diff != "" {
			t.Errorf("%s (-want +have):\n%s", test.content, diff)
		}
	}
	answered, err := askRecorded[strict](t, interrupt.FormFor[then]("old"), `{"count":1}`)
	if err != nil {
		t.Fatal(err)
	}
	var e *interrupt.PayloadError
	if value, err := answered.Value(); !errors.As(err, &e) || e.Path != "/content/sure" {
		t.Errorf("a field that was not asked for is %+v, %v", value, err)
	}
}

// askRecorded asks for a T where the recorded question is another one with the same key.
func askRecorded[T any](t *testing.T, recorded interrupt.Interrupt, content string) (*interrupt.FormOf[T], error) {
	t.Helper()
	body, err := recorded.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	ctx := resume.With(t.Context(), &resume.Run{Attempt: 1, Questions: []resume.Question{
		{ID: "q", Type: recorded.TypeName(), Key: "k", Body: body, Payload: []byte(`{"action":"accept","content":` + content + `}`)},
	}})
	form := interrupt.FormFor[T]("new")
	form.Key = "k"
	return interrupt.Ask(ctx, form)
}

// R16: where an answer does not fit its Go field after all, the error has the field's path.
func TestFormOfValueHasThePath(t *testing.T) {
	for content, path := range map[string]string{
		`{"at":"2016-12-31T23:59:60Z"}`: "/content/at",
		`{"a.b":1}`:                     "/content/a.b",
		`{"at":`:                        "/content/at",
		`[]`:                            "/content",
	} {
		form := interrupt.FormFor[struct {
			At  time.Time `json:"at,omitzero"`
			Dot bool      `json:"a.b,omitempty"`
		}]("m")
		form.Action, form.Content = interrupt.ActionAccept, json.RawMessage(content)
		_, err := form.Value()
		var e *interrupt.PayloadError
		if !errors.As(err, &e) || e.Path != path {
			t.Errorf("%s: want %s, have %v", content, path, err)
		}
	}
}

// A FormOf is a question like any other: it is found as what it is and as a form, and copied with
// its answer. A type of somebody else's that embeds one is not taken for it.
func TestFormOfIsAForm(t *testing.T) {
	form := interrupt.FormFor[embedded]("m")
	form.Key = "k"
	_, err := interrupt.Ask(t.Context(), form)
	var typed *interrupt.FormOf[embedded]
	var plain *interrupt.FormInterrupt
	var question interrupt.Interrupt
	err = fmt.Errorf("wrapped: %w", err)
	if !errors.As(err, &typed) || !errors.As(err, &plain) || !errors.As(err, &question) || typed == form || plain.Key != "k" {
		t.Errorf("found %v, %v, %v", typed, plain, question)
	}
	if c := interrupt.Classify(err); c.Kind != interrupt.KindPrompt || len(c.Questions) != 1 {
		t.Errorf("classified as %+v", c)
	}
	if _, err := interrupt.Apply(form, []byte(`{"content":{"a":"b"}}`)); err != nil {
		t.Fatal(err)
	}
	dup, ok := interrupt.Clone(form).(*interrupt.FormOf[embedded])
	if !ok {
		t.Fatalf("a copy is a %T", interrupt.Clone(form))
	}
	form.Schema[0], form.Content[0] = 'x', 'x'
	if value, err := dup.Value(); err != nil || value.A != "b" || dup.Validate() != nil {
		t.Errorf("the copy: %+v, %v, %v", value, err, dup.Validate())
	}
	sly := slyForm{interrupt.FormFor[embedded]("m")}
	if _, err := interrupt.Apply(sly, []byte(`{"action":"decline"}`)); err != nil || sly.Action != "" {
		t.Errorf("a type that embeds a form was told of a decline: %q, %v", sly.Action, err)
	}
}

type slyForm struct{ *interrupt.FormOf[embedded] }
