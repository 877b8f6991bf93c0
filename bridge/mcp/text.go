package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/internal/canon"
)

// The SDK decodes what a client answers into Go values: numbers become float64, of two members with
// one name the last one counts, and some names match in any case. What a gateway before the server
// took for a decline could so be an accept, and an identifier of 17 digits another one. The
// bridge's transport therefore takes the text of answers out of a message before the SDK sees it,
// and hands it on as a string in _meta, under a name that no client knows.

// last is the value of a name, as the SDK reads it: of several the last one.
func last(list []canon.Member, name string) (value json.RawMessage) {
	for _, m := range list {
		if m.Name == name {
			value = m.Value
		}
	}
	return value
}

func without(list []canon.Member, names ...string) []canon.Member {
	var kept []canon.Member
	for _, m := range list {
		if !slices.Contains(names, m.Name) {
			kept = append(kept, m)
		}
	}
	return kept
}

// ambiguous stands in _meta for a message that can be read in two ways.
var ambiguous = json.RawMessage("false")

// noteFor is a string in JSON, which takes every text of Unicode and no other: in its first line
// the waits that the message may answer, and then the text.
func noteFor(text json.RawMessage, waits ...string) json.RawMessage {
	if !utf8.Valid(text) {
		return ambiguous
	}
	note, _ := json.Marshal(strings.Join(waits, " ") + "\n" + string(text))
	return note
}

// keepCall returns the params of a tools/call with the text of its input responses in _meta,
// instead of in its place: what the SDK does not decode it does not refuse either where one that
// nobody asked for is of an unknown form. Nor is it left a requestState of a wrong type, since the
// SDK's error for what it cannot decode has all of the params in it. Calls of other tools stay as
// they are.
func (b *Bridge) keepCall(params json.RawMessage) json.RawMessage {
	list, twice, err := canon.Members(params)
	if err != nil || !b.isCall(list) {
		return params // where it is no object the SDK refuses it
	}
	note := ambiguous
	if !twice && !b.noteIn(list) && !canon.InAnotherCase(list, "name", "arguments", "inputResponses", "requestState", "_meta") {
		note = noteFor(last(list, "inputResponses"))
	}
	list = without(list, "inputResponses")
	for i, m := range list {
		if m.Name == "requestState" && m.Value[0] != '"' && string(m.Value) != "null" {
			list[i].Value = noToken
		}
	}
	return b.noted(list, note)
}

// isCall reports whether the params call a tool of the bridge's.
func (b *Bridge) isCall(params []canon.Member) bool {
	var name string
	return json.Unmarshal(last(params, "name"), &name) == nil && b.has(name)
}

// noteIn reports whether the message was found to be ambiguous before.
func (b *Bridge) noteIn(params []canon.Member) bool {
	meta, _, err := canon.Members(last(params, "_meta"))
	return err == nil && bytes.Equal(last(meta, b.text), ambiguous)
}

// noToken is refused as every other string is that is no token.
var noToken = json.RawMessage(`"-"`)

// keepResult returns the result of an elicitation with its own text in _meta, and nothing else
// where the SDK would not decode it. Other results stay as they are. waits are the questions in
// its session that it may answer.
func (b *Bridge) keepResult(result json.RawMessage, waits []string) json.RawMessage {
	list, _, err := canon.Members(result)
	if err != nil || !slices.ContainsFunc(list, func(m canon.Member) bool { return strings.EqualFold(m.Name, "action") }) {
		return result
	}
	if json.Unmarshal(canon.Object(without(list, "_meta")), new(mcp.ElicitResult)) != nil {
		list = nil
	}
	return b.noted(list, noteFor(result, waits...))
}

// noted is the object with the note in its _meta. Where that is no object it is made one, and the
// message is ambiguous.
func (b *Bridge) noted(list []canon.Member, note json.RawMessage) json.RawMessage {
	var meta []canon.Member
	if raw := last(list, "_meta"); raw != nil && string(raw) != "null" {
		var err error
		if meta, _, err = canon.Members(raw); err != nil {
			meta, note = nil, ambiguous
		}
	}
	meta = append(without(meta, b.text), canon.Member{Name: b.text, Value: note})
	return canon.Object(append(without(list, "_meta"), canon.Member{Name: "_meta", Value: canon.Object(meta)}))
}

// Why a body is not read. The SDK's error for what is no JSON would repeat it.
var (
	errNotJSON = errors.New("the body is not JSON")
	errTwoWays = errors.New("the message can be read in two ways: a member is there twice, or in another case")
)

// keepBody is what the bridge's HTTP handler does with the body of a request: one message, or the
// batch of an old protocol. What is JSON and no message is left to the SDK to refuse. It reports
// whether that message begins a session.
func (b *Bridge) keepBody(body []byte, waits []string) (kept []byte, begins bool, err error) {
	if !json.Valid(body) {
		return nil, false, errNotJSON
	}
	var batch []json.RawMessage
	if json.Unmarshal(body, &batch) != nil {
		return b.keepMessage(body, waits)
	}
	for i := range batch {
		if batch[i], _, err = b.keepMessage(batch[i], waits); err != nil {
			return nil, false, err
		}
	}
	kept, err = json.Marshal(batch)
	return kept, false, err
}

func (b *Bridge) keepMessage(body json.RawMessage, waits []string) (kept json.RawMessage, begins bool, err error) {
	list, twice, err := canon.Members(body)
	if err != nil {
		return body, false, nil
	}
	if twice || twoWays(list) {
		return nil, false, errTwoWays
	}
	var method string
	if err := json.Unmarshal(last(list, "method"), &method); err != nil {
		method = "" // a response has none
	}
	for i, m := range list {
		switch {
		case m.Name == "params" && method == "tools/call":
			list[i].Value = b.keepCall(m.Value)
		case m.Name == "params" && method == "initialize":
			begins = !namesVersion(m.Value)
		case m.Name == "result":
			list[i].Value = b.keepResult(m.Value, waits)
		}
	}
	return canon.Object(list), begins, nil
}

// namesVersion reports whether a request with those params is of protocol 2026-07-28, in which each
// one names its version.
func namesVersion(params json.RawMessage) bool {
	list, _, err := canon.Members(params)
	if err != nil {
		return false
	}
	meta, _, err := canon.Members(last(list, "_meta"))
	return err == nil && last(meta, mcp.MetaKeyProtocolVersion) != nil
}
