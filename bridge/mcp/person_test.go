package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A person answers what a client asks: with one of the answers after the other, each
// accept:CONTENT, decline or cancel.
type person struct {
	mu      sync.Mutex
	answers []string
	asked   []*mcp.ElicitParams
}

func answering(answers ...string) *person { return &person{answers: answers} }

func (p *person) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params)
	if len(p.answers) == 0 {
		return nil, errors.New("nobody is there any more")
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	action, content, _ := strings.Cut(answer, ":")
	result := &mcp.ElicitResult{Action: action}
	if content != "" {
		if err := json.Unmarshal([]byte(content), &result.Content); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// want compares how often the person was asked.
func (p *person) want(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) != n {
		t.Errorf("asked %d times, want %d", len(p.asked), n)
	}
}

func (p *person) messages() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asked {
		all = append(all, a.Message)
	}
	return all
}

// elicitByKind answers the two questions of twoAtOnce, in whatever order they come.
func (p *person) elicitByKind(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if req.Params.Message == "Why?" {
		return accept(`{"why":"so so"}`), nil
	}
	return accept(`{"choice":"0"}`), nil
}
