package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// masked stands for an argument that is not shown.
const masked = `"[hidden]"`

// makeRound snapshots what a handler asked (R8) and checks all that can be checked before it is
// stored. What is wrong with it is ErrInvalidQuestion, or ErrTooLarge; whether the host can show it
// is not looked at here.
func (r *request) makeRound(in *checkpoint.Interaction, asked interrupt.Classification, now time.Time) (checkpoint.Round, *Error) {
	limits := r.gate.opts.Limits
	if n := len(asked.Questions); n > limits.Questions {
		return checkpoint.Round{}, fail(ErrInvalidQuestion, "a prompt has %d questions, the limit is %d", n, limits.Questions)
	}
	if n := len(asked.State); n > limits.State {
		return checkpoint.Round{}, fail(ErrTooLarge, "private state has %d bytes, the limit is %d", n, limits.State)
	}
	state, err := compact(asked.State)
	if err != nil {
		return checkpoint.Round{}, fail(ErrInvalidQuestion, "private state is not JSON")
	}
	round := checkpoint.Round{State: state, Asked: now, Deadline: r.deadline(now)}
	keys := usedKeys(in)
	size := r.publicSize()
	for i, q := range asked.Questions {
		var snapshot interrupt.Question
		err := safely(func() (err error) {
			snapshot, err = interrupt.Snapshot(q)
			return err
		})
		if err != nil {
			return checkpoint.Round{}, invalidQuestion(err)
		}
		question, e := r.makeQuestion(snapshot, keys)
		if e != nil {
			return checkpoint.Round{}, e
		}
		question.ID = in.ID.String() + "." + strconv.Itoa(len(in.Rounds)+1) + "." + strconv.Itoa(i+1)
		round.Questions = append(round.Questions, question)
		size += sizeOf(question) + perQuestion
		if snapshot.Lifetime > 0 {
			round.Deadline = earlier(round.Deadline, now.Add(snapshot.Lifetime))
		}
	}
	if size > limits.Prompt {
		return checkpoint.Round{}, fail(ErrTooLarge, "a prompt with its arguments has %d bytes, the limit is %d", size, limits.Prompt)
	}
	round.Deadline = round.Deadline.Truncate(time.Millisecond) // what a record can hold; never later
	round.Digest = promptDigest(in, round.Questions)
	round.Mint = r.mint(0)
	return round, nil
}

// What the JSON form of a prompt has beside what is named: names of members, times, ids.
const (
	perPrompt   = 256
	perQuestion = 64
)

// publicSize is what the public form of a prompt measures at most, token included, beside its
// questions (R34).
func (r *request) publicSize() int {
	return perPrompt + TokenLength + len(r.args) + len(r.tool.name) + len(r.tool.opts.Title)
}

// invalidQuestion tells what this module found, and nothing that application code said beside it.
func invalidQuestion(err error) *Error {
	e := fail(ErrInvalidQuestion, "the tool asked a question that cannot be shown").because(hideInterrupts(err))
	var question *interrupt.QuestionError
	if errors.As(err, &question) {
		e.Message = question.Error()
	}
	return e
}

// makeQuestion checks and filters what was snapshotted, read back by its type: the value that the
// handler raised may be another type that embeds it, or change meanwhile.
func (r *request) makeQuestion(s interrupt.Question, keys map[string]bool) (checkpoint.Question, *Error) {
	limits := r.gate.opts.Limits
	none := checkpoint.Question{}
	if len(s.Key) > limits.Name || !utf8.ValidString(s.Key) {
		return none, fail(ErrInvalidQuestion, "%s question: the key must be valid UTF-8 of at most %d bytes", s.Type, limits.Name)
	}
	if s.Key != "" && keys[s.Type+"\x00"+s.Key] {
		return none, fail(ErrInvalidQuestion, "%s question: key %.64q was used before in this interaction", s.Type, s.Key)
	}
	if s.Key != "" {
		keys[s.Type+"\x00"+s.Key] = true
	}
	q, err := restore(interrupt.Question{Type: s.Type, Version: s.Version, Body: s.Body})
	if v, ok := q.(interrupt.Validator); ok && err == nil {
		err = safely(v.Validate)
	}
	if err != nil {
		return none, invalidQuestion(err)
	}
	question := checkpoint.Question{Type: s.Type, Version: s.Version, Key: s.Key, Digest: s.Digest}
	return question, r.present(&question, q, s.Body)
}

// shownBody checks and filters what a person is to be shown for the question.
func (r *request) shownBody(question *checkpoint.Question, q interrupt.Interrupt, body []byte) (_ json.RawMessage, err error) {
	if n, most := options(q), r.gate.opts.Limits.Options; n > most {
		reason := fmt.Sprintf("has %d options, the limit is %d", n, most)
		return nil, &interrupt.QuestionError{Type: q.TypeName(), Path: "/options", Reason: reason}
	}
	permission, ok := q.(*interrupt.ToolPermissionInterrupt)
	switch {
	case !ok:
	case question.Shown != nil: // a decision answers no other type than a permission (R19)
		body, err = onceOnly(permission)
	default:
		body, question.Remember, err = r.tool.permission(permission)
	}
	if err != nil {
		return nil, err
	}
	return compact(body)
}

// compact returns a copy of a JSON value as it is recorded: without white space between its tokens.
// nil stays nil.
func compact(value json.RawMessage) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	return canon.AppendCompact(make([]byte, 0, len(value)), value)
}

// onceOnly leaves out the options that would have to be remembered: decisions on this tool are not,
// and an "always" that is asked again tomorrow is a lie (R9).
func onceOnly(p *interrupt.ToolPermissionInterrupt) ([]byte, error) {
	once := interrupt.ToolPermissionInterrupt{ToolName: p.ToolName, Title: p.Title}
	once.Options = slices.DeleteFunc(slices.Clone(p.Options), func(o interrupt.PermissionOption) bool {
		return always(o.Kind)
	})
	if len(once.Options) == 0 {
		return nil, &interrupt.QuestionError{
			Type: p.TypeName(), Path: "/options", Reason: "has only options of an always kind, and decisions are not remembered",
		}
	}
	return once.Serialize()
}

func options(q interrupt.Interrupt) int {
	switch q := q.(type) {
	case *interrupt.ToolPermissionInterrupt:
		return len(q.Options)
	case *interrupt.UserSelectionInterrupt:
		return len(q.Options)
	case *interrupt.FormInterrupt:
		fields, err := q.Fields()
		if err != nil {
			return 0 // it was validated, so this does not happen
		}
		n := len(fields)
		for _, field := range fields {
			n += len(field.Options)
		}
		return n
	}
	return 0
}

// usedKeys returns the keys of all questions so far, with their types.
func usedKeys(in *checkpoint.Interaction) map[string]bool {
	keys := map[string]bool{}
	for _, round := range in.Rounds {
		for _, q := range round.Questions {
			if name, _ := interrupt.CurrentName(q.Type); q.Key != "" {
				keys[name+"\x00"+q.Key] = true
			}
		}
	}
	return keys
}

// lifetime is what the gate and the tool allow; zero: no limit.
func (r *request) lifetime() time.Duration {
	lifetime := max(r.gate.opts.Lifetime, 0)
	if own := r.tool.opts.Lifetime; own > 0 && (lifetime == 0 || own < lifetime) {
		lifetime = own
	}
	return lifetime
}

func (r *request) deadline(now time.Time) time.Time {
	if lifetime := r.lifetime(); lifetime > 0 {
		return now.Add(lifetime)
	}
	return time.Time{}
}

// mint is a mint for this request's face and session, under the ring's first key.
func (r *request) mint(count uint16) checkpoint.Mint {
	return checkpoint.Mint{Key: (*r.gate.ring.Load())[0].id, Count: count, Face: r.name, Session: r.sess}
}

// show makes the prompt of the last round, with the caller's token.
func (r *request) show(in *checkpoint.Interaction) (*Prompt, error) {
	last := in.Last()
	key, ok := r.gate.ring.Load().find(last.Mint.Key)
	if !ok {
		return nil, fail(ErrInvalidContinuation, "the token is not good for this request")
	}
	prompt := r.gate.prompt(in, r.tool)
	prompt.Token = key.mint(r.gate.ledger, in.ID, len(in.Rounds), last.Mint.Count)
	return prompt, nil
}

// prompts is the outcome that is a prompt.
func (r *request) prompts(prompt *Prompt, outOfBand bool) Outcome {
	if prompt == nil {
		return Outcome{}
	}
	o := Outcome{Interaction: prompt.Interaction, Prompt: prompt, OutOfBand: outOfBand}
	if outOfBand && r.gate.opts.PromptLink != nil {
		err := safely(func() error { o.Link = r.gate.opts.PromptLink(prompt.Interaction); return nil })
		if err != nil {
			r.gate.log.Error("link of a prompt", "interaction", prompt.Interaction, "error", err)
		}
	}
	return o
}

// prompt makes the prompt of the last round without a token. tool may be nil where this gate does
// not have it.
func (g *Gate) prompt(in *checkpoint.Interaction, tool *Tool) *Prompt {
	last := in.Last()
	p := &Prompt{Interaction: in.ID, Round: len(in.Rounds), Tool: in.Tool, Arguments: masking(in.Arguments, tool), Expires: last.Deadline}
	if tool != nil {
		p.Title = tool.opts.Title
	}
	for _, q := range last.Questions {
		p.Questions = append(p.Questions, showQuestion(q))
	}
	return p
}

// Shown returns how a prompt of the tool shows a call with these arguments: the tool's title, and
// the arguments in canonical form, the masked ones replaced. It is for a face that shows calls
// before they ask. Nothing runs. The error is ErrUnknownTool or ErrInvalidArguments.
func (g *Gate) Shown(tool string, arguments json.RawMessage) (title string, shown json.RawMessage, err error) {
	t := g.tools[tool]
	if t == nil {
		return "", nil, fail(ErrUnknownTool, "there is no tool %.64q", tool)
	}
	canonical, err := canon.JSON(arguments, &canon.Limits{Bytes: g.opts.Limits.Arguments, Depth: g.opts.Limits.Depth})
	if err != nil {
		return "", nil, fail(ErrInvalidArguments, "tool %q: %v", tool, err)
	}
	return t.opts.Title, mask(canonical, t.opts.Mask), nil
}

// Masked returns arguments of a tool as a person may see them (R9): those that [ToolOptions.Mask]
// names are replaced. All of it is where the gate does not have the tool, or where the tool masks
// arguments and these are no JSON object.
func (f *Face) Masked(tool string, arguments json.RawMessage) json.RawMessage {
	return masking(arguments, f.gate.tools[tool])
}

// masking are the arguments as a person may see them. Where the tool is not known, nor is which of
// them are to be hidden: all are.
func masking(arguments json.RawMessage, tool *Tool) json.RawMessage {
	if tool == nil {
		return json.RawMessage(masked)
	}
	return mask(arguments, tool.opts.Mask)
}

// mask replaces the named members of the arguments. Their digest, and what the tool runs with,
// cover them all the same (R9).
func mask(arguments json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 {
		return bytes.Clone(arguments)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return json.RawMessage(masked)
	}
	for _, name := range names {
		if _, ok := members[name]; ok {
			members[name] = json.RawMessage(masked)
		}
	}
	shown, err := canon.Marshal(members)
	if err != nil {
		return json.RawMessage(masked)
	}
	return shown
}

// limitRounds is R29.
func (r *request) limitRounds(in *checkpoint.Interaction) *Error {
	most := r.gate.opts.MaxPrompts
	if own := r.opts.MaxPrompts; own > 0 {
		most = min(most, own)
	}
	if len(in.Rounds) >= most {
		return fail(ErrInteractionLimit, "the tool asked %d times, which is all it may", most)
	}
	return nil
}
