package mcpbridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	defaultSessionTimeout = time.Hour
	versionHeader         = "Mcp-Protocol-Version"
	sessionHeader         = "Mcp-Session-Id"
)

// clientKey leads to the context of an HTTP request of protocol 2026-07-28, which ends with its
// connection.
type clientKey struct{}

// whileConnected returns a context that ends where the client of a request of protocol 2026-07-28
// disconnects, too: "The server MUST treat a client disconnect as cancellation of that request",
// and the SDK does not.
//
// https://modelcontextprotocol.io/specification/draft/basic/patterns/cancellation
func whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	client, ok := ctx.Value(clientKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(client, cancel)
	return ctx, func() { stop(); cancel() }
}

// HTTPHandler serves the bridge's server over streamable HTTP: protocol 2026-07-28, which has no
// sessions, and the older ones with sessions, on one address. The SDK's own handler serves either
// the one or the other. Answers are kept as clients wrote them, as by [Bridge.Transport]. A session
// that is initialized with 2026-07-28 is negotiated down, also where the header says it, before
// there is anything to say: the SDK alone refuses that.
//
// Options are the SDK's, but for sessions that nobody ends: after an hour without a request they
// are closed, where SessionTimeout says nothing else (negative: never). A call that waits for a
// person is a request. With Stateless older protocols have no sessions either, and their clients
// cannot be asked.
//
// Who calls is for [auth.RequireBearerToken] around this handler to find out, and for
// Options.Authorize to decide, also of what comes in a session while a question waits there: what
// has another scope than the call that asked is forbidden.
func (b *Bridge) HTTPHandler(opts *mcp.StreamableHTTPOptions) http.Handler {
	var o mcp.StreamableHTTPOptions
	if opts != nil {
		o = *opts
	}
	o.SessionTimeout = cmp.Or(o.SessionTimeout, defaultSessionTimeout)
	server := func(*http.Request) *mcp.Server { return b.server }
	limit := o.MaxRequestBodyBytes
	if limit == 0 {
		limit = mcp.DefaultMaxRequestBodyBytes
	}
	o.MaxRequestBodyBytes = -1 // the limit is this handler's, which makes bodies a little longer
	sessions := mcp.NewStreamableHTTPHandler(server, &o)
	alone := o
	alone.Stateless = true
	stateless := mcp.NewStreamableHTTPHandler(server, &alone)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waits, ok := b.admits(r)
		if !ok {
			http.Error(w, "the session is somebody else's", http.StatusForbidden)
			return
		}
		begins, ok := b.keepRequest(w, r, limit, waits)
		switch {
		case !ok:
			return
		case begins && r.Header.Get(versionHeader) >= version2026:
			// Its header is what the client hopes for; what it gets is in the response.
			r = r.Clone(r.Context())
			r.Header.Del(versionHeader)
		case r.Header.Get(versionHeader) >= version2026:
			stateless.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, r.Context())))
			return
		}
		if r.Method == http.MethodDelete {
			defer b.leave(r)()
		}
		sessions.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), handledKey{}, b)))
	})
}

// keepRequest keeps the text of answers in the request's body, and reports whether it begins a
// session. It reports false for ok where it has refused the request.
func (b *Bridge) keepRequest(w http.ResponseWriter, r *http.Request, limit int64, waits []string) (begins, ok bool) {
	if r.Body == nil {
		return false, true
	}
	if limit > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	if r.Method != http.MethodPost {
		return false, true
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, begins, err = b.keepBody(body, waits)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "request body too large", http.StatusRequestEntityTooLarge)
		return false, false
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false, false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return begins, true
}
