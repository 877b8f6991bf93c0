package acpbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/coder/acp-go-sdk"
)

// Options are the options of a bridge. Nil works, and the zero field is the documented default.
type Options struct {
	// Name is that of the bridge to the gate: a token is good for the name that it was given out
	// under, so it stays the same over restarts. Default: acp.
	Name string
	// Authorize decides as whom a session is served. It is asked anew for every round (R24). An
	// error refuses the call; its text stays with the host. Default: what comes over the process's
	// own standard input and output is served as the scope "local", and nothing else is.
	Authorize func(ctx context.Context, r Request) (Grant, error)
	// View says how a call looks in the editor. It is given the arguments as the person may see
	// them, and can be asked several times for one call. Default: the tool's title, of the kind
	// other.
	View func(tool string, arguments json.RawMessage) View
	// Fallback allows questions to be asked in the form of a permission where the client has no
	// better one.
	Fallback Fallbacks
	// OutOfBand says that questions that this client cannot be asked are answered elsewhere: in an
	// inbox, by an operator. They are stored, and the same call in a later turn goes on once they
	// are answered. Default: they end with confirmation_required.
	OutOfBand bool
	// MaxOpen is how many questions of one session the client is asked at a time; the others wait
	// in line. Many editors have room for one. Two of one call are never asked at a time. Default:
	// 1.
	MaxOpen int
	// MaxWire is how many bytes a message that asks may have (R34). Default: 1 MiB.
	MaxWire int
	// PollInterval is how often it is looked whether a question that is in the editor was answered
	// by another road. Default: one second.
	PollInterval time.Duration
	// Logger gets what the host should know and no caller may. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// A View is how a call looks in the editor.
type View struct {
	Title     string       // the concrete action, such as "Edit src/a.go"; default: the tool's title
	Kind      acp.ToolKind // default: other
	Content   []acp.ToolCallContent
	Locations []acp.ToolCallLocation // absolute paths
}

// Fallbacks are questions that may be asked as a permission where the client lacks the way that is
// made for them. Each loses something: a client that is set to approve everything answers for its
// person, and some show their own words instead of the options' names. A handler finds out with
// [AskedAsFallback], and does well to refuse what is consequential. A permission is never asked
// otherwise.
type Fallbacks struct {
	// Selection asks for a choice with one option for each, and one to decline.
	Selection bool
	// Form asks for a form that is one required boolean or one required choice of a list.
	Form bool
	// URL asks for the consent to open a URL, which is shown in full.
	URL bool
}

// A Request is what a host decides on.
type Request struct {
	Session acp.SessionId
	Tool    string // empty where it is of no call
	// Client is how the client names itself, and may be nil. It chooses that itself.
	Client *acp.Implementation
}

// A Grant is as whom a session is served. Scope is the host's key for the authenticated principal,
// and must not be empty.
type Grant struct{ Scope string }

// localScope is as whom a client is served that is this program's only one.
const localScope = "local"

func (o *Options) complete() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	c := *o
	for _, n := range []struct {
		name  string
		value int
	}{{"max open", c.MaxOpen}, {"max wire", c.MaxWire}, {"poll interval", int(c.PollInterval)}} {
		if n.value < 0 {
			return c, fmt.Errorf("%s is negative", n.name)
		}
	}
	c.Name = cmp.Or(c.Name, "acp")
	c.MaxOpen = cmp.Or(c.MaxOpen, 1)
	c.MaxWire = cmp.Or(c.MaxWire, 1<<20)
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	if c.View == nil {
		c.View = func(string, json.RawMessage) View { return View{} }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
