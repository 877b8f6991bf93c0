package mcpbridge

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/internal/elicit"
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
		payload, err := one.Payload(kind)
		if err != nil {
			return nil, malformed(err.Error())
		}
		answers[id] = payload
	}
	return answers, nil
}

// responses returns the input responses whose keys are of that token: from their text, where the
// transport kept it, else as the SDK decoded them.
func (c *call) responses(token gate.Token) (map[string]elicit.Answer, error) {
	given := map[string]elicit.Answer{}
	if c.note.seen {
		raw, err := elicit.ReadObject(json.RawMessage(c.note.text), mcp.DefaultMaxRequestBodyBytes)
		if err != nil {
			return nil, malformed(err.Error())
		}
		for key, response := range raw {
			if _, _, ok := readKey(key, token); !ok {
				continue
			}
			one, err := readAnswer(response)
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
func decoded(r *mcp.ElicitResult) (elicit.Answer, error) {
	one := elicit.Answer{Action: r.Action}
	if r.Content == nil {
		return one, nil
	}
	content, err := canon.Marshal(r.Content)
	one.Content = content
	return one, err
}

// reserved are members by which the SDK tells a response to something else from an answer.
var reserved = []string{"roots", "role"}

func readAnswer(text json.RawMessage) (elicit.Answer, error) {
	return elicit.ReadAnswer(text, mcp.DefaultMaxRequestBodyBytes, reserved...)
}
