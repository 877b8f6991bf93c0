package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request is what a host decides on. All of it is of the very request that is served, also in a
// session that an earlier one began. Only TokenInfo and Session are authenticated.
type Request struct {
	Tool string // the one called, or the one that asked what the request answers
	// TokenInfo is what the host's own [auth.RequireBearerToken] found; nil where there is none.
	// Its UserID is what the SDK binds a session of the transport to. Without one the session has
	// to be served by [Bridge.HTTPHandler], or else is refused: another user who knows its ID could
	// answer.
	TokenInfo *auth.TokenInfo
	// Session is the transport's own session ID; empty on stdio, and on stateless HTTP.
	Session string
	// Header is that of the HTTP request, empty where the SDK does not bring it (the old SSE
	// transport), and nil on other transports; Client is how the client names
	// itself, and may be nil. Whoever sends the request chooses both.
	Header http.Header
	Client *mcp.Implementation
}

// A Grant is as whom a request is served.
type Grant struct {
	// Scope is the host's key for the authenticated principal: tenant and user. It must not be
	// empty.
	Scope string
	// StartID is a stable key for one piece of work, of the scope; empty for none. It is the host's
	// to find, never a request ID or a header that anybody can set.
	StartID string
	// Session names the dialog that the request is part of. Where the transport has a session of
	// its own, that one is bound as well, and Session may be empty; stdio has one dialog by nature.
	// Stateless HTTP has neither: there an empty Session is unauthorized.
	Session string
}

// localScope is as whom a client is served that is this program's only one.
const localScope = "local"

var errNotLocal = errors.New("the host does not authorize requests over HTTP: set Options.Authorize")

// localOnly is the default of Options.Authorize.
func localOnly(_ context.Context, r Request) (Grant, error) {
	if r.Header != nil {
		return Grant{}, errNotLocal
	}
	return Grant{Scope: localScope}, nil
}

// A handledKey is that of a session's context which tells whose HTTP handler serves it.
type handledKey struct{}

// request is what the host decides on for the call.
func (c *call) request() Request {
	r := Request{Tool: c.req.Params.Name, Session: c.req.Session.ID(), Client: c.req.ClientInfo()}
	if extra := c.req.Extra; extra != nil {
		if r.TokenInfo, r.Header = extra.TokenInfo, extra.Header; r.Header == nil {
			r.Header = http.Header{}
		}
	}
	return r
}

// grant asks the host as whom the request is served, and whether its token is good still. The
// session that it returns binds what the transport and the host name, each on its own (R21).
func (c *call) grant(ctx context.Context) (Grant, error) {
	r := c.request()
	// Of its SSE transport the SDK brings neither a header nor a session, but it begins as HTTP.
	if r.Header == nil && ctx.Value(http.ServerContextKey) != nil {
		r.Header = http.Header{}
	}
	// Answers in a session are requests of their own. The bridge's handler sees them; else it is by
	// UserID alone that the SDK finds out whether they are of the session's user.
	nobody := r.TokenInfo == nil || r.TokenInfo.UserID == ""
	if r.Session != "" && r.Header != nil && nobody && ctx.Value(handledKey{}) != c.Bridge {
		return Grant{}, c.unauthorized(ctx, errors.New("nothing binds the session to a user: it takes Bridge.HTTPHandler, or a UserID"))
	}
	g, err := c.authorize(ctx, r)
	if err == nil {
		g.Session, err = session(r, g)
	}
	if err != nil {
		return Grant{}, c.unauthorized(ctx, err)
	}
	return g, nil
}

func (b *Bridge) authorize(ctx context.Context, r Request) (g Grant, err error) {
	if r.TokenInfo != nil && !r.TokenInfo.Expiration.IsZero() && !b.opts.Now().Before(r.TokenInfo.Expiration) {
		return Grant{}, errors.New("the token has expired")
	}
	err = safely(func() (err error) {
		g, err = b.opts.Authorize(valueless{ctx}, r)
		return err
	})
	return g, err
}

func session(r Request, g Grant) (string, error) {
	var parts []string
	if r.Session != "" {
		parts = append(parts, "native "+strconv.Quote(r.Session))
	}
	if g.Session != "" {
		parts = append(parts, "granted "+strconv.Quote(g.Session))
	}
	if len(parts) == 0 && r.Header == nil {
		parts = append(parts, "single")
	}
	if len(parts) == 0 {
		return "", errors.New("there is neither a session of the transport nor a granted one")
	}
	return strings.Join(parts, ", "), nil
}

// A valueless context ends with its parent and has none of its values.
type valueless struct{ context.Context }

func (valueless) Value(any) any { return nil }

// safely calls application code. A panic of its is an error.
func safely(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	return call()
}
