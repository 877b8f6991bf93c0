package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-go/parley/gate"
)

// A client works one call off, in turns at all replicas, as a client does that loses answers: what
// it does not know it asks again.
type client struct {
	replicas *replicas
	user     string
	tool, on string // the tool, and what its effect is on
	random   *rand.Rand

	interaction string      // once it asked
	taken       map[int]int // the choice that was acknowledged, by round
	last        request     // what the end was told to
	end         end
}

// An end is a result, or the code of another end; ended is how it ended before, without one for a
// result.
type end struct {
	result      string
	code, ended gate.Code
}

// A prompt is the questions of a round, by their keys, which tell their types.
type prompt struct {
	state     string
	round     int
	questions []string
}

// A request is an answer to a prompt: the first or the second of those that there are to it.
type request struct {
	prompt prompt
	choice int
}

// A reply is what a request led to: a prompt or an end, or neither where nobody knows.
type reply struct {
	prompt prompt
	end    end
}

// weight orders what replies to the same round tell: a result more than a prompt, that more than
// another end.
func (r reply) weight(round int) int {
	switch {
	case r.end.result != "":
		return 3
	case r.prompt.round > round:
		return 2
	case r.end.code != "":
		return 1
	}
	return 0
}

// run goes through the rounds until the call ends.
func (c *client) run(until time.Time) error {
	sent := []request{{}} // asks
	for round := 0; time.Now().Before(until); {
		best, err := c.together(round, sent)
		switch {
		case err != nil:
			return fmt.Errorf("round %d: %w", round, err)
		case best.weight(round) == 0: // busy, or the replicas died
			time.Sleep(20 * time.Millisecond)
		case best.prompt.state != "":
			round, sent = best.prompt.round, c.answers(best.prompt)
			c.interaction, _, _ = strings.Cut(best.prompt.questions[0], ".")
		default:
			c.end = best.end
			return nil
		}
	}
	return errors.New("it did not end in time")
}

// answers are those to a prompt, in any order: one twice, mostly another one too. The other one of
// the first and the last round breaks the call off, and is rarer.
func (c *client) answers(p prompt) []request {
	choice, other := 0, c.random.IntN(8) == 0
	if p.round == 2 || p.round == 3 {
		choice, other = c.random.IntN(2), c.random.IntN(4) > 0
	}
	sent := []request{{p, choice}, {p, choice}}
	if other {
		sent = append(sent, request{p, 1 - choice})
	}
	c.random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	return sent
}

// together sends the requests of a round to different replicas in the same moment, and returns the
// reply that tells most.
func (c *client) together(round int, sent []request) (best reply, err error) {
	replies, errs := make([]reply, len(sent)), make([]error, len(sent))
	var all sync.WaitGroup
	for i := range sent {
		all.Go(func() { replies[i], errs[i] = c.call(sent[i]) })
	}
	all.Wait()
	for i, r := range replies {
		if w := r.weight(round); w > best.weight(round) {
			best, c.last = r, sent[i]
		}
		if before, ok := c.taken[round]; ok && r.took(round) && before != sent[i].choice {
			errs = append(errs, errors.New("two different answers were taken"))
		} else if r.took(round) && round > 0 {
			c.taken[round] = sent[i].choice
		}
	}
	return best, errors.Join(errs...)
}

// took reports whether the reply acknowledges the answer to the round.
func (r reply) took(round int) bool {
	return r.weight(round) > 1 || r.end.code == gate.ErrRejected || r.end.code == gate.ErrDeclined
}

// payload is the first or the second answer to a question, as a client of MCP gives it.
func payload(round int, key string, choice int) string {
	accept := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	switch kind := strings.Split(key, ".")[3]; {
	case kind == "tool_permission":
		return accept([]string{`{"decision":"allow_once"}`, `{"decision":"reject_once"}`}[choice])
	case kind == "user_selection":
		return accept(fmt.Sprintf(`{"choice":"%d"}`, choice))
	case kind == "url":
		return []string{`{"action":"accept"}`, `{"action":"decline"}`}[choice]
	case round == 2:
		return accept(fmt.Sprintf(`{"desk":%d}`, 11+choice))
	default:
		return accept([]string{`{"tools":["laptop"]}`, `{"tools":["badge","phone"]}`}[choice])
	}
}

const callMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}`

// call sends a round to the next replica. An error is an answer that no rule allows.
func (c *client) call(r request) (reply, error) {
	field := "name"
	if c.tool == "deploy" {
		field = "service"
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{%q:%q`, c.tool, field, c.on)
	if c.tool == "deploy" {
		body += `,"version":"1"`
	}
	body += `},` + callMeta
	if r.prompt.state != "" {
		var answers []string
		for _, key := range r.prompt.questions {
			answers = append(answers, strconv.Quote(key)+":"+payload(r.prompt.round, key, r.choice))
		}
		body += fmt.Sprintf(`,"requestState":%q,"inputResponses":{%s}`, r.prompt.state, strings.Join(answers, ","))
	}
	text, err := c.post(body + `}}`)
	if err != nil {
		return reply{}, nil // the replica died: what came of it is not known
	}
	return c.read(text)
}

func (c *client) post(body string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+c.replicas.next(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer the-token-of-" + c.user, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": c.tool,
	} {
		req.Header.Set(name, value)
	}
	response, err := c.replicas.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if _, event, ok := bytes.Cut(text, []byte("data: ")); ok && err == nil {
		text, _, ok = bytes.Cut(event, []byte("\n\n"))
		if !ok {
			err = io.ErrUnexpectedEOF
		}
	}
	return text, err
}

func (c *client) read(text []byte) (reply, error) {
	var m struct {
		Result struct {
			RequestState      string
			InputRequests     map[string]json.RawMessage
			IsError           bool
			StructuredContent json.RawMessage
			Content           []struct{ Text string }
		}
		Error *struct {
			Message string
			Data    struct{ Code gate.Code }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return reply{}, fmt.Errorf("read %q: %w", text, err)
	}
	switch {
	case m.Error != nil && (m.Error.Data.Code.Retryable() || m.Error.Data.Code == gate.ErrAnswerConflict):
		return reply{}, nil
	case m.Error != nil:
		return reply{}, fmt.Errorf("refused: %s", text)
	case m.Result.RequestState != "":
		return reply{prompt: readPrompt(m.Result.RequestState, m.Result.InputRequests)}, nil
	case m.Result.IsError:
		var ending struct{ Code, Ended gate.Code }
		if err := json.Unmarshal(m.Result.StructuredContent, &ending); err != nil {
			return reply{}, fmt.Errorf("read %q: %w", text, err)
		}
		return reply{end: end{code: ending.Code, ended: ending.Ended}}, nil
	case len(m.Result.Content) == 1 && m.Result.Content[0].Text != "":
		return reply{end: end{result: m.Result.Content[0].Text}}, nil
	}
	return reply{}, fmt.Errorf("neither a question nor an end: %s", text)
}

func readPrompt(state string, questions map[string]json.RawMessage) prompt {
	p := prompt{state: state}
	for key := range questions {
		p.questions = append(p.questions, key)
		p.round, _ = strconv.Atoi(strings.Split(key, ".")[1])
	}
	return p
}
