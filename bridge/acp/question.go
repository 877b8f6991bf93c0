package acpbridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/canon"
	"github.com/parley-go/parley/interrupt"
)

// An unfit question cannot be put to the client so that it means the same there (R13, R34).
type unfit struct{ reason string }

func (e *unfit) Error() string { return e.reason }

// A wireQuestion is one question as the client is asked it, and how its answer is read.
type wireQuestion struct {
	method   string
	params   json.RawMessage
	fallback bool
	// read turns the client's result into a payload. An error says that it is none; its words are
	// for the person.
	read func(result json.RawMessage) (payload json.RawMessage, err error)
}

// A subject is what the question is about.
type subject struct {
	session acp.SessionId
	call    acp.ToolCallId
	view    View
	prompt  *gate.Prompt
}

// question is how a client is asked that can do that. reason says why a former answer was not
// accepted; empty: there was none. The error is an *unfit.
func (b *Bridge) question(s subject, q gate.Question, can capabilities, reason string) (wireQuestion, error) {
	asked, err := q.Interrupt()
	if err != nil {
		return wireQuestion{}, &unfit{"the question cannot be read back"}
	}
	may := b.opts.Fallback
	switch asked := asked.(type) {
	case *interrupt.ToolPermissionInterrupt:
		return s.permission(q, asked, reason)
	case *interrupt.UserSelectionInterrupt:
		switch {
		case can.form:
			return s.selection(q, asked, reason), nil
		case may.Selection:
			return s.selectionAsPermission(q, asked, reason)
		}
		return wireQuestion{}, &unfit{"the client cannot be asked for a selection"}
	case *interrupt.FormInterrupt:
		switch {
		case can.form:
			return s.form(q, asked, reason)
		case may.Form:
			return s.formAsPermission(q, asked, reason)
		}
		return wireQuestion{}, &unfit{"the client cannot show a form"}
	case *interrupt.URLInterrupt:
		switch {
		case can.url:
			return s.url(q, asked, reason), nil
		case may.URL:
			return s.urlAsPermission(q, asked, reason)
		}
		return wireQuestion{}, &unfit{"the client cannot open a URL"}
	}
	return wireQuestion{}, &unfit{fmt.Sprintf("a question of type %.64q has no form in ACP", q.Type)}
}

// meta is what the client, its logs and whoever reads them may know of a question. The token is
// never part of it (R20).
func (s subject) meta(q gate.Question, reason string) map[string]any {
	about := map[string]any{"interaction": s.prompt.Interaction.String(), "id": q.ID, "round": s.prompt.Round}
	if !s.prompt.Expires.IsZero() {
		about["expiresAt"] = s.prompt.Expires.UTC().Format(time.RFC3339)
	}
	meta := map[string]any{"parley/interrupt": about}
	if reason != "" {
		meta["permission"] = map[string]any{"version": 1, "description": notAccepted(reason)} // as codex-acp has it
	}
	return meta
}

func notAccepted(reason string) string { return "Not accepted: " + reason }

// title is what the call does, in one line.
func (s subject) title() string {
	if s.view.Title != "" {
		return s.view.Title
	}
	return s.toolTitle()
}

func (s subject) toolTitle() string { return cmp.Or(s.prompt.Title, s.prompt.Tool) }

// answerFor is a payload of these members.
func answerFor(name string, value any) json.RawMessage {
	payload, _ := canon.Marshal(map[string]any{name: value}) // words and numbers always have a form
	return payload
}

// Fits reports whether a prompt can be put to the client as it is, before it is committed (R13,
// R34): its kinds, and the size of every message. It is for the face of a host that makes calls of
// the gate itself, such as an agent of package agent.
func (b *Bridge) Fits(p *gate.Prompt) error {
	// Neither id is known here. They have bounds of their own.
	s := subject{
		session: acp.SessionId(strings.Repeat("s", maxName)), call: acp.ToolCallId(strings.Repeat("c", maxName)),
		view: b.view(p.Tool, p.Arguments), prompt: p,
	}
	for _, q := range p.Questions {
		w, err := b.question(s, q, b.capabilities(), "")
		if err != nil {
			return err
		}
		if size := len(w.params) + envelope; size > b.opts.MaxWire {
			return &unfit{fmt.Sprintf("a question has %d bytes on the wire, the limit is %d", size, b.opts.MaxWire)}
		}
	}
	return nil
}

const (
	// maxName bounds the ids of sessions and tool calls, in bytes.
	maxName = 256
	// envelope is what a message has around its params, and what a question that is asked again
	// says of the former answer.
	envelope = 1 << 10
)

func (b *Bridge) view(tool string, shown json.RawMessage) (v View) {
	if err := safely(func() error { v = b.opts.View(tool, shown); return nil }); err != nil {
		b.opts.Logger.Error("a view failed", "tool", tool, "err", err)
		v = View{}
	}
	if v.Kind == "" {
		v.Kind = acp.ToolKindOther
	}
	return v
}
