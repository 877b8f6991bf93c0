package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
)

// users are the names by the digest of their bearer token: a look-up takes as long for a token that
// is nearly right as for any other.
type users map[[sha256.Size]byte]string

// readUsers reads a file of lines that are a token, white space and a name.
func readUsers(file string) (users, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the users of -http (-tokens): %w", err)
	}
	u := users{}
	for n, line := range strings.Split(string(text), "\n") {
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case len(fields) != 2 || len(fields[0]) < 16:
			return nil, fmt.Errorf("%s:%d: want a token of 16 characters or more and a name", file, n+1)
		default:
			u[sha256.Sum256([]byte(fields[0]))] = fields[1]
		}
	}
	if len(u) == 0 {
		return nil, fmt.Errorf("%s: there are no users: want lines of a token and a name", file)
	}
	return u, nil
}

// verify is for the SDK, which keeps out whoever has no good token.
func (u users) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	digest := sha256.Sum256([]byte(token))
	name, ok := u[digest]
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		UserID: name, Expiration: time.Now().Add(time.Hour), Extra: map[string]any{"dialog": hex.EncodeToString(digest[:8])},
	}, nil
}

// authorize is for the bridge, for every round: the scope is the user, and each token is a dialog
// of its own.
func authorize(_ context.Context, r mcpbridge.Request) (mcpbridge.Grant, error) {
	if r.TokenInfo == nil {
		return mcpbridge.Grant{}, errors.New("there is no bearer token")
	}
	dialog, _ := r.TokenInfo.Extra["dialog"].(string)
	return mcpbridge.Grant{Scope: "user " + r.TokenInfo.UserID, Session: dialog}, nil
}
