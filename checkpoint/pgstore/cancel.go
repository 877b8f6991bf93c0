package pgstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// committing is where a connection keeps whether a transaction is on its way to its commit.
const committing = "parley.committing"

// leaveCommits lets no cancel request go out for a connection on which a commit may be under way.
// pgx sends one for whatever it gives up. A server that waits for its synchronous standby takes it
// for the end of the wait: then all processes see what no standby has, act upon it, and a failover
// loses it. As long as the server waits, nobody sees it. What else it does in a commit is bounded
// by its own timeouts.
func leaveCommits(_ context.Context, config *pgx.ConnConfig) error {
	var commits atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if commits.Load() { // a connection that is open dials for nothing else
			return nil, errors.New("a commit is not cancelled")
		}
		return dial(ctx, network, address)
	}
	config.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		c.CustomData()[committing] = &commits
		return nil
	}
	return nil
}

// uncancelled begins what is not cancelled on the connection, and ends it where the connection is
// not given up.
func uncancelled(c *pgconn.PgConn) (end func()) {
	commits := c.CustomData()[committing].(*atomic.Bool)
	commits.Store(true)
	return func() { commits.Store(c.IsClosed()) }
}
