package gate_test

import (
	"errors"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// R29: a face whose clients give up earlier lowers the limit, and cannot raise it. The last answer
// may still finish.
func TestFaceLowersMaxPrompts(t *testing.T) {
	var runs, effects counter
	for _, tc := range []struct {
		own, gates int
		code       gate.Code
	}{
		{own: 1, gates: 5, code: gate.ErrInteractionLimit},
		{own: 2, gates: 5},
		{own: 0, gates: 5},
		{own: 5, gates: 1, code: gate.ErrInteractionLimit},
	} {
		g := open(t, memstore.New(), gate.Options{Tools: []*gate.Tool{twoRounds(&runs, &effects, nil)}, MaxPrompts: tc.gates})
		face, err := g.NewFace("mcp", &gate.FaceOptions{MaxPrompts: tc.own})
		if err != nil {
			t.Fatal(err)
		}
		c := call("tool", `{}`)
		p := mustAsk(t, face, c)
		if tc.code != "" {
			mustFail(t, face, with(c, p, `{"selectionIdx":0}`), tc.code)
			continue
		}
		p = mustAsk(t, face, with(c, p, `{"selectionIdx":0}`))
		mustFinish(t, face, with(c, p, allow), `"done"`)
	}
	if _, err := openMem(t).NewFace("mcp", &gate.FaceOptions{MaxPrompts: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}

// R34, R13: the face looks at the whole prompt before it is committed, without a token. What its
// wire cannot carry is confirmation_required, and nothing is stored.
func TestFaceChecksTheWholePrompt(t *testing.T) {
	var seen []*gate.Prompt
	refuse := errors.New("too wide for this wire")
	for name, fits := range map[string]func(p *gate.Prompt) error{
		"refuses": func(p *gate.Prompt) error { seen = append(seen, p); return refuse },
		"panics":  func(p *gate.Prompt) error { seen = append(seen, p); panic(refuse) },
	} {
		t.Run(name, func(t *testing.T) {
			seen = nil
			var runs counter
			store := memstore.New()
			g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&runs, nil)}})
			face, err := g.NewFace("mcp", &gate.FaceOptions{Fits: fits})
			if err != nil {
				t.Fatal(err)
			}
			e := mustFail(t, face, call("deploy", `{"service":"api"}`), gate.ErrConfirmationRequired)
			if e.Missing != "" {
				t.Errorf("missing: %q, where it is the wire", e.Missing)
			}
			if name == "refuses" && !errors.Is(e, refuse) {
				t.Errorf("the host is not told why: %v", errors.Unwrap(e))
			}
			if len(seen) != 1 || seen[0].Token != "" || len(seen[0].Questions) != 1 || len(seen[0].Arguments) == 0 {
				t.Errorf("the face saw %+v", seen)
			}
			if page, err := store.List(t.Context(), checkpoint.Query{}); err != nil || len(page.Records) > 0 {
				t.Errorf("stored: %d records, %v", len(page.Records), err)
			}
		})
	}
}

// R34, R13: a rejoin by a face that cannot carry the prompt leaves it as it is; with the
// out-of-band facility what a face cannot carry is stored, and the link leads to it.
func TestFaceThatCannotCarryIt(t *testing.T) {
	var runs counter
	g := open(t, memstore.New(), gate.Options{
		Tools:      []*gate.Tool{deploy(&runs, nil)},
		PromptLink: func(id checkpoint.ID) string { return "https://inbox.example/" + id.String() },
	})
	narrow, err := g.NewFace("narrow", &gate.FaceOptions{Fits: func(*gate.Prompt) error { return errors.New("no room") }})
	if err != nil {
		t.Fatal(err)
	}
	c := call("deploy", `{"service":"api"}`)
	c.StartID = "work"
	p := mustAsk(t, g, c)
	mustFail(t, narrow, c, gate.ErrConfirmationRequired)
	mustAsk(t, g, with(c, p)) // the token was not taken over

	c.StartID, c.Facilities = "", append(c.Facilities, interrupt.FacilityOutOfBand)
	outcome, err := narrow.Invoke(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !outcome.OutOfBand || outcome.Prompt == nil || outcome.Link != "https://inbox.example/"+outcome.Interaction.String() {
		t.Errorf("outcome %+v", outcome)
	}
	if outcome, err = g.Invoke(t.Context(), c); err != nil || outcome.OutOfBand || outcome.Link != "" {
		t.Errorf("where it can be shown: %+v, %v", outcome, err)
	}
}

// A link that panics is none: the prompt is stored and shown all the same.
func TestPromptLinkPanics(t *testing.T) {
	var runs counter
	g := open(t, memstore.New(), gate.Options{
		Tools: []*gate.Tool{deploy(&runs, nil)}, PromptLink: func(checkpoint.ID) string { panic("no link") },
	})
	c := call("deploy", `{"service":"api"}`)
	c.Facilities = []interrupt.Facility{interrupt.FacilityOutOfBand}
	outcome, err := g.Invoke(t.Context(), c)
	if err != nil || !outcome.OutOfBand || outcome.Link != "" {
		t.Errorf("outcome %+v, %v", outcome, err)
	}
}
