package interrupt_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/interrupt"
)

// A note is of version 3. It was called test_memo in version 1, when its text was one string, and
// had no urgency before version 3.
type note struct {
	Lines  []string `json:"lines"`
	Urgent bool     `json:"urgent"`
	Read   bool     `json:"-"`
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(note) }) }

func (n *note) TypeName() string           { return "test_note" }
func (n *note) FormerNames() []string      { return []string{"test_memo", "test_slip"} }
func (n *note) QuestionVersion() int       { return 3 }
func (n *note) Serialize() ([]byte, error) { return json.Marshal(n) }
func (n *note) Error() string              { return "note" }

func (n *note) Return([]byte) error {
	n.Read = true
	return nil
}

func (n *note) UpgradeBody(version int, body []byte) ([]byte, error) {
	switch version {
	case 1:
		var was struct{ Text string }
		if err := json.Unmarshal(body, &was); err != nil {
			return nil, err
		}
		return json.Marshal(note{Lines: []string{was.Text}})
	case 2:
		return body, nil
	}
	return nil, errors.New("no such version was ever written: hunter2")
}

// R14: a stored question of every version that was ever written stays readable, under the name that
// it was written under. The files were written by those versions.
func TestKeptQuestions(t *testing.T) {
	for file, want := range map[string]*note{
		"note-v1.json": {Lines: []string{"Water the plants"}},
		"note-v2.json": {Lines: []string{"Water", "the plants"}},
		"note-v3.json": {Lines: []string{"Water", "the plants"}, Urgent: true},
	} {
		kept, err := os.ReadFile(filepath.Join("testdata", "kept", file))
		if err != nil {
			t.Fatal(err)
		}
		var q interrupt.Question
		if err := json.Unmarshal(kept, &q); err != nil {
			t.Fatal(err)
		}
		read, err := q.Interrupt()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s (-want +have):\n%s", file, diff)
		}
		now, err := q.Current()
		if err != nil || now.Type != "test_note" || now.Version != 3 {
			t.Fatalf("%s as of now: %+v, %v", file, now, err)
		}
		if again, err := now.Interrupt(); err != nil || !cmp.Equal(interrupt.Interrupt(want), again) {
			t.Errorf("%s as of now is %s, %v", file, now.Body, err)
		}
	}
}

// R14: what cannot be read back says why, and what a type's own code says stays private.
func TestQuestionsThatCannotBeRead(t *testing.T) {
	for name, q := range map[string]interrupt.Question{
		"not registered":          {Type: "test_absent", Body: []byte(`{}`)},
		"newer":                   {Type: "test_note", Version: 4, Body: []byte(`{}`)},
		"newer, by a former name": {Type: "test_memo", Version: 4, Body: []byte(`{}`)},
		"negative":                {Type: "test_note", Version: -1, Body: []byte(`{}`)},
		"not upgraded":            {Type: "test_note", Version: 0, Body: []byte(`{}`)},
		"upgraded from garbage":   {Type: "test_note", Version: 1, Body: []byte(`[`)},
		"upgraded into garbage":   {Type: "test_note", Version: 2, Body: []byte(`{"lines":"one"}`)},
		"no upgrader":             {Type: "test_dated", Version: 1, Body: []byte(`{}`)},
		"newer than none":         {Type: "url", Version: 1, Body: []byte(`{}`)},
	} {
		read, err := q.Interrupt()
		var e *interrupt.QuestionError
		if read != nil || !errors.As(err, &e) || !errors.Is(err, interrupt.ErrInvalidQuestion) || e.Type != q.Type {
			t.Errorf("%s: %v, %v", name, read, err)
		}
		if _, err := q.Current(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s as of now: %v", name, err)
		}
	}
}

// An unsteady type panics where it is asked to upgrade what it wrote, and where it reads its body.
type unsteady struct{ stranger }

func (*unsteady) TypeName() string                        { return "test_unsteady" }
func (*unsteady) QuestionVersion() int                    { return 2 }
func (*unsteady) UpgradeBody(int, []byte) ([]byte, error) { panic(errors.New("hunter2")) }
func (*unsteady) UnmarshalJSON([]byte) error              { panic("hunter2") }

func init() { interrupt.Register(func() interrupt.Interrupt { return new(unsteady) }) }

// R1, R14: a type that panics while a question is read back is an error like any other, and what it
// said stays private.
func TestQuestionsWhoseTypePanics(t *testing.T) {
	for name, q := range map[string]interrupt.Question{
		"upgrading": {Type: "test_unsteady", Version: 1, Body: []byte(`{}`)},
		"reading":   {Type: "test_unsteady", Version: 2, Body: []byte(`{}`)},
	} {
		read, err := q.Interrupt()
		var e *interrupt.QuestionError
		if read != nil || !errors.As(err, &e) || e.Type != q.Type || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", name, read, err)
		}
	}
}

// A dated type is versioned, and cannot be upgraded.
type dated struct{ stranger }

func (*dated) TypeName() string     { return "test_dated" }
func (*dated) QuestionVersion() int { return 2 }

func init() { interrupt.Register(func() interrupt.Interrupt { return new(dated) }) }

// R14: the version of the type is recorded with a question; a new question has the name of now.
func TestSnapshotHasTheVersion(t *testing.T) {
	s, err := interrupt.Snapshot(&note{Lines: []string{"a"}})
	if err != nil || s.Version != 3 || s.Type != "test_note" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := interrupt.Snapshot(interrupt.URL("m", "https://example.com")); err != nil || s.Version != 0 {
		t.Errorf("a type without versions: %+v, %v", s, err)
	}
	if _, err := interrupt.Snapshot(formerly{&note{}}); !errors.Is(err, interrupt.ErrInvalidQuestion) {
		t.Errorf("raised under a former name: %v", err)
	}
}

// A note that still calls itself by its former name.
type formerly struct{ *note }

func (formerly) TypeName() string { return "test_memo" }

// R14: former names are known, and taken.
func TestFormerNames(t *testing.T) {
	for _, name := range []string{"test_note", "test_memo", "test_slip"} {
		if q, ok := interrupt.New(name); !ok || q.TypeName() != "test_note" {
			t.Errorf("%s: %v, %v", name, q, ok)
		}
		if now, ok := interrupt.CurrentName(name); !ok || now != "test_note" {
			t.Errorf("%s is %q now", name, now)
		}
	}
	if now, ok := interrupt.CurrentName("test_absent"); ok || now != "test_absent" {
		t.Errorf("a name that nobody has is %q, %v", now, ok)
	}
	for name, q := range map[string]*renamed{
		"a former name that is another's":        {name: "test_new_1", former: []string{"test_review"}},
		"a former name that is another's former": {name: "test_new_2", former: []string{"test_memo"}},
		"a name that is another's former":        {name: "test_memo"},
		"its own name":                           {name: "test_new_3", former: []string{"test_new_3"}},
		"a former name twice":                    {name: "test_new_4", former: []string{"test_old", "test_old"}},
		"no name":                                {name: "test_new_5", former: []string{""}},
		"a negative version":                     {name: "test_new_6", version: -1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			interrupt.Register(func() interrupt.Interrupt { return q })
		}()
		if _, ok := interrupt.New(q.name); ok && q.name != "test_memo" {
			t.Errorf("%s: half of it is registered", name)
		}
	}
	if _, ok := interrupt.New("test_old"); ok {
		t.Error("a former name is registered of a type that is not")
	}
}

type renamed struct {
	stranger
	name    string
	former  []string
	version int
}

func (r *renamed) TypeName() string      { return r.name }
func (r *renamed) FormerNames() []string { return r.former }
func (r *renamed) QuestionVersion() int  { return r.version }
