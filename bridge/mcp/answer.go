package mcpbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// An elicited answer is what a client sent for one question.
type elicited struct {
	action  string
	content json.RawMessage // nil: there was none
}

// The fields that a permission and a selection are answered in.
const (
	fieldDecision = "decision"
	fieldChoice   = "choice"
)

// answers reads those input responses of the request that are for a round of that token. Others are
// ignored.
func (c *call) answers(token gate.Token) (gate.Answers, error) {
	given, err := c.responses(token)
	if err != nil {
		return nil, err
	}
	answers := gate.Answers{}
	for key, one := range given {
		id, kind, _ := readKey(key, token)
		payload, err := payloadOf(kind, one)
		if err != nil {
			return nil, err
		}
		answers[id] = payload
	}
	return answers, nil
}

// responses returns the input responses whose keys are of that token: from their text, where the
// transport kept it, else as the SDK decoded them.
func (c *call) responses(token gate.Token) (map[string]elicited, error) {
	given := map[string]elicited{}
	if c.note.seen {
		raw, err := readObject(json.RawMessage(c.note.text))
		if err != nil {
			return nil, malformed(err.Error())
		}
		for key, response := range raw {
			if _, _, ok := readKey(key, token); !ok {
				continue
			}
			one, err := readElicited(response)
			if err != nil {
				return nil, malformed(err.Error())
			}
			given[key] = one
		}
		return given, nil
	}
	for key, response := range c.req.Params.InputResponses {
		if _, _, ok := readKey(key, token); !ok {
			continue
		}
		result, ok := response.(*mcp.ElicitResult) // a member "roots" makes it another type
		if !ok || result == nil {
			return nil, malformed("a response is not that of an elicitation")
		}
		one, err := decoded(result)
		if err != nil {
			return nil, malformed(err.Error())
		}
		given[key] = one
	}
	return given, nil
}

// decoded is an answer as the SDK read it.
func decoded(r *mcp.ElicitResult) (elicited, error) {
	one := elicited{action: r.Action}
	if r.Content == nil {
		return one, nil
	}
	content, err := canon.Marshal(r.Content)
	one.content = content
	return one, err
}

// readElicited reads the text of one answer: no name twice, and no name that another reader could
// take for one that counts.
func readElicited(text json.RawMessage) (elicited, error) {
	raw, err := readObject(text)
	if err != nil {
		return elicited{}, err
	}
	var one elicited
	for name, value := range raw {
		switch {
		case name == "action":
			if json.Unmarshal(value, &one.action) != nil {
				return elicited{}, errors.New("the action is not a string")
			}
		case name == "content":
			if string(value) != "null" {
				one.content = value
			}
		case strings.EqualFold(name, "action"), strings.EqualFold(name, "content"), name == "roots", name == "role":
			return elicited{}, fmt.Errorf("a response has a member %.64q, which can be taken for another", name)
		}
	}
	return one, nil
}

// readObject reads one JSON object strictly; nothing at all is an empty one. No text of it is in
// the error but a path.
func readObject(text json.RawMessage) (map[string]json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	canonical, err := canon.JSON(text, &canon.Limits{Bytes: mcp.DefaultMaxRequestBodyBytes})
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &object); err != nil {
		return nil, errors.New("not an object")
	}
	return object, nil
}

// payloadOf is the payload that the gate checks against the stored question (R15). It says what the
// client said and nothing else: what does not fit is carried along, so that it is the gate that
// refuses it, for all faces in the same way.
func payloadOf(kind string, one elicited) (json.RawMessage, error) {
	action := interrupt.Action(one.action)
	if !slices.Contains([]interrupt.Action{interrupt.ActionAccept, interrupt.ActionDecline, interrupt.ActionCancel}, action) {
		return nil, malformed("the action is none of accept, decline, cancel")
	}
	payload := map[string]json.RawMessage{"action": fmt.Appendf(nil, "%q", one.action)}
	empty := one.content == nil || string(one.content) == "{}"
	switch {
	case kind == interrupt.TypeForm && action == interrupt.ActionAccept:
		if one.content != nil {
			payload["content"] = one.content
		}
	case (kind == interrupt.TypeToolPermission || kind == interrupt.TypeUserSelection) && action == interrupt.ActionAccept:
		choose(payload, kind, one.content)
	case !empty: // some clients send an empty object where there is nothing to say
		payload["content"] = one.content
	}
	return canon.Marshal(payload)
}

// choose puts the one field of a permission or a selection into the payload.
func choose(payload map[string]json.RawMessage, kind string, content json.RawMessage) {
	var fields map[string]json.RawMessage
	if content != nil && json.Unmarshal(content, &fields) != nil {
		payload["content"] = content
		return
	}
	for name, value := range fields {
		switch {
		case kind == interrupt.TypeToolPermission && name == fieldDecision:
			payload["optionId"] = value
		case kind == interrupt.TypeUserSelection && name == fieldChoice:
			payload["selectionIdx"] = index(value)
		default: // it was not asked for, whatever its name
			payload["content/"+name] = value
		}
	}
}

// index turns "0", "1" and so on, which are what was offered, into numbers. Everything else becomes
// a string, which is no index.
func index(value json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	} else if n, err := strconv.Atoi(s); err == nil && n >= 0 && strconv.Itoa(n) == s {
		return json.RawMessage(s)
	}
	quoted, _ := canon.Marshal(s) // a string always has a form
	return quoted
}

// maxReason bounds what a question that is asked again says of the former answer, in bytes.
const maxReason = 512

// reasonOf says in the words of the client's form what does not fit.
func reasonOf(e *gate.Error) string {
	reason := "the answer does not fit"
	var p *interrupt.PayloadError
	if errors.As(e, &p) {
		reason = p.Reason
	} else if e.Path == "" && errors.Unwrap(e) == nil {
		reason = "the answer is missing"
	}
	switch field := strings.TrimPrefix(e.Path, "/content/"); {
	case e.Path == "/optionId":
		reason = fieldDecision + ": " + reason
	case e.Path == "/selectionIdx":
		reason = fieldChoice + ": " + reason
	case field != e.Path:
		reason = field + ": " + reason
	}
	return canon.Clip(reason, maxReason)
}
