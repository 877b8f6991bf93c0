package acpbridge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// An elicitation is the params of elicitation/create with their scope, which those of the SDK lack:
// https://agentclientprotocol.com/protocol/v1/elicitation
type elicitation struct {
	Meta      map[string]any  `json:"_meta,omitempty"`
	SessionID acp.SessionId   `json:"sessionId"`
	CallID    acp.ToolCallId  `json:"toolCallId"`
	Mode      string          `json:"mode"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	ID        string          `json:"elicitationId,omitempty"`
	URL       string          `json:"url,omitempty"`
}

const (
	modeForm = "form"
	modeURL  = "url"
)

// create is elicitation/create for a question of that type.
func (s subject) create(q gate.Question, e elicitation, reason string) wireQuestion {
	e.Meta, e.SessionID, e.CallID = s.meta(q, ""), s.session, s.call
	if reason != "" {
		e.Message = notAccepted(reason) + "\n\n" + e.Message
	}
	params, err := json.Marshal(e) // as the SDK writes it, for its size
	if err != nil {
		panic(err) // it holds words, numbers and a schema that was written here
	}
	read := func(result json.RawMessage) (json.RawMessage, error) {
		answer, err := elicit.ReadAnswer(result, maxAnswer)
		if err != nil {
			return nil, err
		}
		return answer.Payload(q.Type)
	}
	return wireQuestion{method: acp.ClientMethodElicitationCreate, params: params, read: read}
}

// selection is one required choice, without a default: some clients send what is filled in.
func (s subject) selection(q gate.Question, asked *interrupt.UserSelectionInterrupt, reason string) wireQuestion {
	field := interrupt.Field{Name: elicit.FieldChoice, Title: "Choice", Kind: interrupt.FieldEnum, Required: true}
	for i, o := range asked.Options {
		field.Options = append(field.Options, interrupt.FieldOption{Value: strconv.Itoa(i), Title: choiceName(o)})
	}
	e := elicitation{Mode: modeForm, Message: s.choices(asked), Schema: elicit.Schema([]interrupt.Field{field}, false)}
	return s.create(q, e, reason)
}

func choiceName(o interrupt.UserChoice) string {
	if o.IsRecommended {
		return o.Title + " (recommended)"
	}
	return o.Title
}

// choices says what there is to choose from.
func (s subject) choices(asked *interrupt.UserSelectionInterrupt) string {
	var b strings.Builder
	b.WriteString(s.toolTitle() + " asks you to choose:")
	for i, o := range asked.Options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, choiceName(o))
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
	}
	return b.String()
}

// form is a form as ACP takes it: integers have the bounds of int64 there, and secrets are for
// URLs.
func (s subject) form(q gate.Question, asked *interrupt.FormInterrupt, reason string) (wireQuestion, error) {
	fields, err := asked.Fields()
	if err != nil {
		return wireQuestion{}, &unfit{"the form cannot be read back"}
	}
	for _, f := range fields {
		switch {
		case elicit.AsksForSecret(f):
			return wireQuestion{}, secretField(f)
		case f.Kind == interrupt.FieldInteger && !(isInt64(f.Minimum) && isInt64(f.Maximum)):
			return wireQuestion{}, &unfit{fmt.Sprintf("field %.64q has a bound that is no 64-bit integer", f.Name)}
		}
	}
	return s.create(q, elicitation{Mode: modeForm, Message: asked.Message, Schema: elicit.Schema(fields, false)}, reason), nil
}

func secretField(f interrupt.Field) *unfit {
	return &unfit{fmt.Sprintf("field %.64q asks for a secret, which ACP forbids in a form: use a URL", f.Name)}
}

func isInt64(bound json.Number) bool {
	_, err := strconv.ParseInt(string(bound), 10, 64)
	return err == nil || bound == ""
}

// url asks for the consent to open a URL.
func (s subject) url(q gate.Question, asked *interrupt.URLInterrupt, reason string) wireQuestion {
	return s.create(q, elicitation{Mode: modeURL, Message: asked.Message, URL: asked.URL, ID: q.ID}, reason)
}
