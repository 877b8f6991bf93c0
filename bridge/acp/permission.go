package acpbridge

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// kinds are in the order in which they are offered: a client that takes the first of its liking
// takes the one that lasts the least.
var kinds = []string{
	interrupt.PermissionAllowOnce, interrupt.PermissionAllowAlways, interrupt.PermissionRejectOnce, interrupt.PermissionRejectAlways,
}

// permission is a permission as itself. Clients know the options by their kinds, and take one for
// the other; so there is one of each kind, under the kind's name.
func (s subject) permission(q gate.Question, asked *interrupt.ToolPermissionInterrupt, reason string) (wireQuestion, error) {
	ids := map[string]string{} // by kind, those of the question
	var options []acp.PermissionOption
	for _, kind := range kinds {
		for _, o := range asked.Options {
			if o.Kind != kind {
				continue
			}
			if ids[kind] != "" {
				return wireQuestion{}, &unfit{"the permission has two options of kind " + kind + ", which clients do not tell apart"}
			}
			ids[kind] = o.OptionID
			name := o.Name
			if q.Remember != nil && (kind == interrupt.PermissionAllowAlways || kind == interrupt.PermissionRejectAlways) {
				name += " (" + elicit.Remembered(q.Remember) + ")"
			}
			options = append(options, option(kind, acp.PermissionOptionKind(kind), name))
		}
	}
	title := asked.Title
	if title == "" {
		title = s.title()
	}
	call := acp.ToolCallUpdate{Title: &title, Kind: &s.view.Kind, Content: s.view.Content, Locations: s.view.Locations}
	return s.request(q, call, options, reason, func(kind string) json.RawMessage { return answerFor("optionId", ids[kind]) })
}

func option(id string, kind acp.PermissionOptionKind, name string) acp.PermissionOption {
	return acp.PermissionOption{OptionId: acp.PermissionOptionId(id), Kind: kind, Name: name}
}

// request is session/request_permission with all that it is about, since a client may not have seen
// the call before, or show only what is in here. answer is the payload for one of the options.
func (s subject) request(
	q gate.Question, call acp.ToolCallUpdate, options []acp.PermissionOption, reason string, answer func(option string) json.RawMessage,
) (wireQuestion, error) {
	pending := acp.ToolCallStatusPending
	call.ToolCallId, call.Status, call.RawInput = s.call, &pending, s.prompt.Arguments
	r := acp.RequestPermissionRequest{SessionId: s.session, ToolCall: call, Options: options, Meta: s.meta(q, reason)}
	params, err := json.Marshal(r)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return wireQuestion{}, &unfit{"the question has no form on the wire: " + canon.Clip(err.Error(), 200)}
	}
	read := func(result json.RawMessage) (json.RawMessage, error) {
		chosen, err := readOutcome(result)
		switch {
		case err != nil:
			return nil, err
		case chosen == "":
			return interrupt.Cancel(q.ID), nil
		}
		i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return string(o.OptionId) == chosen })
		if i < 0 {
			return nil, errNotOffered
		}
		return answer(chosen), nil
	}
	return wireQuestion{method: acp.ClientMethodSessionRequestPermission, params: params, read: read}, nil
}

// What a client sends that is no outcome.
var (
	errNotOffered = errors.New("it is none of the options")
	errNoOutcome  = errors.New("it is no outcome")
)

// readOutcome reads the result of session/request_permission from its text: the option that was
// selected, or nothing where it was cancelled. All else is no answer. The SDK takes an outcome that
// nobody knows for cancelled.
func readOutcome(result json.RawMessage) (option string, err error) {
	whole, err := elicit.ReadObject(result, maxAnswer)
	if err != nil {
		return "", errNoOutcome
	}
	outcome, err := elicit.ReadObject(exactMember(whole, "outcome"), maxAnswer)
	if err != nil {
		return "", errNoOutcome
	}
	switch string(exactMember(outcome, "outcome")) {
	case `"cancelled"`:
		return "", nil
	case `"selected"`:
	default:
		return "", errNoOutcome
	}
	if json.Unmarshal(exactMember(outcome, "optionId"), &option) != nil || option == "" {
		return "", errNotOffered
	}
	return option, nil
}

// maxAnswer is how much of a result is read, in bytes.
const maxAnswer = 1 << 20

// exactMember is a member of an object, and nil where there is another one that a reader could take
// for it.
func exactMember(object map[string]json.RawMessage, name string) json.RawMessage {
	for other := range object {
		if other != name && strings.EqualFold(other, name) {
			return nil
		}
	}
	return object[name]
}
