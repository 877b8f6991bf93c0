package acpbridge

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/parley-go/parley/interrupt"
)

// Say shows a piece of the result of a tool that is at work, behind the pieces before. What is
// shown of it is its end, up to 16 KiB. ACP has no pieces: every update says all that is shown, so
// of a tool that says much at once some updates are left out, as they are where the client is slow
// to read. The result is shown as a whole when the call has [ShownCall.Ended].
func (s *ShownCall) Say(piece string) error {
	s.pieces += piece
	if cut := len(s.pieces) - maxSaid; cut > 0 {
		for s.pieces = s.pieces[cut:]; s.pieces != "" && !utf8.RuneStart(s.pieces[0]); {
			s.pieces = s.pieces[1:]
		}
	}
	return s.atWork()
}

// Progress shows how far the call is, in place of what it said of that before (R35). Some updates
// are left out, as with [ShownCall.Say].
func (s *ShownCall) Progress(u interrupt.Update) error {
	s.progress = progressText(u)
	return s.atWork()
}

const (
	// maxSaid is how much of what a tool at work said is shown, in bytes.
	maxSaid = 16 << 10
	// ahead is how many bytes are sent of a call that is at work before they are limited, and
	// perSecond how many are then.
	ahead     = 256 << 10
	perSecond = 64 << 10
)

// atWork shows what the call said, beside its view. The status is left: a handler that has not
// asked yet still can, and an editor that took the call for one that is allowed would not show the
// question.
func (s *ShownCall) atWork() error {
	b := s.turn.bridge
	now := b.opts.Now()
	if s.since.IsZero() {
		view, _ := json.Marshal(s.view.Content) // it was sent before
		s.since, s.viewSize = now, len(view)
	}
	size := s.viewSize + len(s.progress) + len(s.pieces)
	budget := ahead + int(now.Sub(s.since)/time.Millisecond)*perSecond/1000
	if s.spent+size > budget || b.out.full(room) || s.turn.ctx.Err() != nil {
		return nil
	}
	s.spent, s.covered = s.spent+size, true
	content := s.view.Content[:len(s.view.Content):len(s.view.Content)]
	for _, text := range []string{s.progress, s.pieces} {
		if text != "" {
			content = append(content, textContent(text)...)
		}
	}
	return s.update(acp.UpdateToolCall(s.call.ID, acp.WithUpdateContent(content)))
}

// progressText is how far a handler is, in words.
func progressText(u interrupt.Update) string {
	far := strconv.FormatFloat(u.Completed, 'f', -1, 64)
	if u.Total != nil {
		far += " of " + strconv.FormatFloat(*u.Total, 'f', -1, 64)
	}
	if u.Message == "" {
		return far
	}
	return u.Message + " (" + far + ")"
}
