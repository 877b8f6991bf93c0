package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/schema"
	"github.com/parley-go/parley/interrupt"
)

// A Handler performs a tool. The arguments are canonical JSON that fits the tool's schema, the same
// in every run of an interaction; the result is one JSON value. It asks a person by returning an
// error that [interrupt.Classify] finds to be a prompt, and runs again from the top with the
// answer; see package interrupt. Handlers of several calls run at once.
//
// A handler that reads the arguments itself takes members by their exact names: encoding/json takes
// "SERVICE" and "ſervice" for a field "service" too, which is not what a person was shown under
// that name.
type Handler func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)

// A Replay is what a tool chooses for an answer that comes again after an attempt was made for it
// (R27).
type Replay int

// The choices.
const (
	// NeverAgain runs nothing: the caller is told that the work is completed, or that its outcome
	// is not known. It is the default.
	NeverAgain Replay = iota
	// Recover runs the tool's Recover function, or its handler with recovery set, with the same
	// verified answer. It finds out or completes what was begun, and may only finish. It runs for
	// every such request, also after a success whose result is not kept, and for a first run that
	// died without an answer; never after a person's no.
	Recover
	// Repeatable says that every effect of the handler is a step of [interrupt.Once] or safe to
	// repeat: where it is not known to have finished, it runs again as an ordinary attempt, and may
	// ask on.
	Repeatable
)

// An Execution is what is about to be done, or shown again, for a request; a tool's Authorize
// decides on it. It is the callee's own copy.
type Execution struct {
	Tool      string
	Arguments json.RawMessage // canonical
	Scope     string
	Session   string
	StartID   string
	Round     int // the round whose answer would be carried out; 0 for a first run
	// Answers are the verified answers of that round, by question id.
	Answers  Answers
	Recovery bool
	// Remembered is set where nobody was asked: remembered decisions gave these answers (R19).
	Remembered bool
}

// ToolOptions are the options of a tool. The zero value is the documented default of each field.
type ToolOptions struct {
	// Title and Description are for people and models.
	Title       string
	Description string
	// Revision changes when the meaning of the tool's questions does; a question asked under
	// another revision is refused with ErrRevisionChanged, but for those of FormerRevisions.
	Revision        string
	FormerRevisions []string
	// Schema is the JSON Schema of the arguments, of type object. Default: inferred from the input
	// type.
	Schema json.RawMessage
	// Mask names arguments, the members of the top level, that are not shown to a person. They are
	// bound all the same.
	Mask []string
	// Authorize is asked on every round, after everything else was checked and before anything is
	// recorded or run. An error refuses the request with ErrUnauthorized; its text stays with the
	// host. Default: allowed.
	Authorize func(ctx context.Context, e Execution) error
	// Replay is the tool's choice for an answer that comes again. Recover is run instead of the
	// handler in recovery, where it is set.
	Replay  Replay
	Recover Handler
	// KeepResult keeps a successful result of up to Limits.Result bytes, to be returned on a
	// replay.
	KeepResult bool
	// KeepOpen leaves a question open that was declined or cancelled: nothing is recorded, the
	// token stays good (R17).
	KeepOpen bool
	// Lifetime shortens the gate's lifetime of an interaction. Zero: the gate's.
	Lifetime time.Duration
	// NeverAsks declares that the tool asks no question: no room is reserved for one, and one that
	// it raises all the same is ErrInvalidQuestion.
	NeverAsks bool
	// Remember lets "always" answers to the tool's permissions be remembered. Default: a permission
	// is shown without such options.
	Remember *RememberOptions
	// Needs are the facilities without which the tool is not run at all.
	Needs []interrupt.Facility
	// Guidance is what somebody is told whose host cannot ask: what to do instead. Link goes with
	// it.
	Guidance string
	Link     string
}

// A Tool is a named operation and the function that performs it. It is immutable once a gate has
// it.
type Tool struct {
	name    string
	handler Handler
	opts    ToolOptions
	schema  *schema.Schema
	// check reports arguments that the schema takes and the input type does not; nil: there are
	// none.
	check  func(arguments json.RawMessage) error
	output reflect.Type
	err    error
}

// fits is check 3: the arguments, in canonical form, are the tool's.
func (t *Tool) fits(arguments json.RawMessage) error {
	if err := t.schema.Validate(arguments); err != nil {
		return fail(ErrInvalidArguments, "tool %q: %v", t.name, err)
	}
	if t.check == nil {
		return nil
	}
	if err := t.check(arguments); err != nil {
		e := fail(ErrInvalidArguments, "tool %q: a value does not fit the type it is read into", t.name).because(err)
		var at *jsonv1.UnmarshalTypeError
		if errors.As(err, &at) {
			e.Message = fmt.Sprintf("tool %q: %s: out of the range of %v", t.name, at.Field, at.Type)
		}
		return e
	}
	return nil
}

// NewTool returns a tool with typed input and output. The schema of its arguments is inferred from
// In, unless the options give one: members are those of encoding/json, required unless they have
// omitempty or omitzero, a pointer or slice may be null, and the tag jsonschema:"…" is a
// description. Arguments are read into In as encoding/json does, but for names, which must be
// exactly a field's. What is wrong with a tool is reported by [Open] and by [Tool.Validate].
func NewTool[In, Out any](name string, handle func(ctx context.Context, in In) (Out, error), opts *ToolOptions) *Tool {
	var o ToolOptions
	if opts != nil {
		o = *opts
	}
	var err error
	if o.Schema == nil {
		o.Schema, err = schema.For[In]()
	}
	var handler Handler
	if handle != nil {
		handler = func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			var in In
			if err := exactly(arguments, &in); err != nil {
				return nil, fmt.Errorf("read arguments: %w", err) // they were read once before, see check
			}
			out, err := handle(ctx, in)
			if err != nil {
				return nil, err
			}
			return canon.Marshal(out)
		}
	}
	tool := NewRawTool(name, handler, &o)
	tool.err = errors.Join(tool.err, err)
	tool.check = func(arguments json.RawMessage) error { return exactly(arguments, new(In)) }
	tool.output = reflect.TypeFor[Out]()
	return tool
}

// exactly is json.Unmarshal, but for a name that only looks like a field's: json.Unmarshal would
// take "ſervice" for "service", so that what runs would be another thing than what was shown,
// compared and remembered (R9). Here such a member is one that the type does not have.
func exactly(arguments json.RawMessage, into any) error {
	return jsonv2.Unmarshal(arguments, into, jsonv1.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false))
}

// NewRawTool returns a tool that reads and writes JSON itself. Without a schema in the options its
// arguments are any object.
func NewRawTool(name string, handler Handler, opts *ToolOptions) *Tool {
	t := &Tool{name: name, handler: handler}
	if opts != nil {
		t.opts = opts.clone()
	}
	if t.opts.Schema == nil {
		t.opts.Schema = json.RawMessage(`{"type":"object"}`)
	}
	t.schema, t.err = schema.Compile(t.opts.Schema)
	return t
}

// Name returns the tool's name.
func (t *Tool) Name() string { return t.name }

// Options returns a copy of the tool's options, the schema filled in.
func (t *Tool) Options() ToolOptions { return t.opts.clone() }

// Output is the Go type of the handler's results, for faces that tell their schema; nil for a tool
// of [NewRawTool].
func (t *Tool) Output() reflect.Type { return t.output }

// Validate reports what is wrong with the tool.
func (t *Tool) Validate() error {
	switch {
	case t == nil:
		return errors.New("tool: must not be nil")
	case t.name == "" || !utf8.ValidString(t.name):
		return fmt.Errorf("tool %q: name must be valid UTF-8 and not empty", t.name)
	case !utf8.ValidString(t.opts.Revision):
		return fmt.Errorf("tool %q: revision %q must be valid UTF-8", t.name, t.opts.Revision)
	case t.handler == nil:
		return fmt.Errorf("tool %q: handler must not be nil", t.name)
	case t.err != nil:
		return fmt.Errorf("tool %q: schema of the arguments: %w", t.name, t.err)
	case t.opts.Replay < NeverAgain || t.opts.Replay > Repeatable:
		return fmt.Errorf("tool %q: replay %d is none of the choices", t.name, t.opts.Replay)
	case t.opts.Recover != nil && t.opts.Replay != Recover:
		return fmt.Errorf("tool %q: has a recover function but does not choose to recover", t.name)
	case t.opts.Link != publicLink(t.opts.Link):
		return fmt.Errorf("tool %q: link %.80q must be an absolute http or https URL of at most %d bytes", t.name, t.opts.Link, maxPublic)
	case t.opts.Lifetime < 0:
		return fmt.Errorf("tool %q: lifetime must not be negative", t.name)
	}
	if name, ok := t.opts.unknown(t.opts.Mask); ok {
		return fmt.Errorf("tool %q: mask names %q, which is no argument", t.name, name)
	}
	if err := t.opts.Remember.validate(); err != nil {
		return fmt.Errorf("tool %q: %w", t.name, err)
	}
	if t.opts.Remember == nil {
		return nil
	}
	if name, ok := t.opts.unknown(t.opts.Remember.Arguments); ok {
		return fmt.Errorf("tool %q: remember names %q, which is no argument", t.name, name)
	}
	return nil
}

// accepts reports whether a question asked under that revision is still the tool's.
func (t *Tool) accepts(revision string) bool {
	return revision == t.opts.Revision || slices.Contains(t.opts.FormerRevisions, revision)
}

// clone is a copy that shares nothing that can change.
func (o ToolOptions) clone() ToolOptions {
	o.FormerRevisions, o.Schema = slices.Clone(o.FormerRevisions), slices.Clone(o.Schema)
	o.Mask, o.Needs, o.Remember = slices.Clone(o.Mask), slices.Clone(o.Needs), o.Remember.clone()
	return o
}

// unknown returns the first of the names that is no argument of the schema, where the schema lists
// them.
func (o ToolOptions) unknown(names []string) (name string, ok bool) {
	var known struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(o.Schema, &known); err != nil || known.Properties == nil {
		return "", false
	}
	for _, name := range names {
		if _, ok := known.Properties[name]; !ok {
			return name, true
		}
	}
	return "", false
}
