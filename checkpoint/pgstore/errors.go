package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-go/parley/checkpoint"
)

// A Reason says what is wrong with a server, or with the database that it serves.
type Reason string

// The reasons of a [ServerError].
const (
	Unreachable Reason = "not reached"         // or the connection was lost; it is opened anew for the next request
	TooOld      Reason = "too old"             // older than PostgreSQL 13
	Standby     Reason = "a read-only server"  // a standby, or a primary no more after a failover
	Unsafe      Reason = "not durable"         // its settings lose what it acknowledged
	Unmigrated  Reason = "schema not migrated" // see Migrate
	Newer       Reason = "schema of a newer version"
	Full        Reason = "no room"       // on its disk, in its memory, or for one more connection
	Denied      Reason = "not permitted" // to this role
	Slow        Reason = "timed out"
	Aborted     Reason = "transaction aborted" // for another one's sake, or for a lost statement, again and again; nothing was executed
	Broken      Reason = "unexpected error"    // of the server
)

// A ServerError says why a request to the server failed. For Unreachable, Full and Slow the same
// request can work later, and so for Standby, once the URL leads to the primary. A commit that
// fails with one has an unknown outcome.
type ServerError struct {
	Reason Reason
	Err    error
}

func (e *ServerError) Error() string {
	text := fmt.Sprintf("PostgreSQL: %s: %v", e.Reason, e.Err)
	if help := e.help(); help != "" {
		text += "; " + help
	}
	return text
}

// help is what whoever runs the server can do, where its own words do not say so.
func (e *ServerError) help() string {
	switch code := state(e.Err); {
	case code == protocolViolation && strings.Contains(e.Err.Error(), "startup parameter"), code == noStatement, code == twoStatements:
		return "for a pooler in transaction mode set Options.Pooler"
	case code == denied:
		return "grant it to the role that the URL names (docs/scaling.md)"
	case code == tooManyConnections:
		return "raise max_connections, or lower Options.Connections of the processes"
	case e.Reason == Unmigrated && code != noDatabase:
		return "Migrate makes the tables, as their owner"
	case e.Reason == Standby:
		return "name the primary in the URL, or all servers"
	}
	return ""
}

// Unwrap returns what was found.
func (e *ServerError) Unwrap() error { return e.Err }

// The states that the store tells apart:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	divisionByZero  = "22012" // how a statement of this package says that what it expects is not so
	uniqueViolation = "23505"
	readOnlyServer  = "25006"
	serialization   = "40001"
	deadlock        = "40P01"
	denied          = "42501"
	undefinedTable  = "42P01"
	noSchema        = "3F000"
	cancelled       = "57014"
	lockTimeout     = "55P03"
	idleInTx        = "25P03"
	longTx          = "25P04"
	noDatabase      = "3D000"
	noStatement     = "26000" // of the name under which it was prepared
	twoStatements   = "42P05"

	tooManyConnections = "53300"

	// What pgbouncer says to settings of a session, and PostgreSQL never.
	protocolViolation = "08P01"
)

// stale reports whether a prepared statement is not what the driver believes: somebody made the
// session discard it, or changed the columns of a table. The statement was not executed, and aborts
// the transaction.
func stale(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == noStatement || pg.Routine == "RevalidateCachedQuery")
}

func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// explain makes an error of a request one that callers can branch on. A context's own error, and
// those of package checkpoint, stay what they are.
func explain(ctx context.Context, err error) error {
	var known *ServerError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, checkpoint.ErrNotFound), errors.Is(err, checkpoint.ErrUnavailable):
		return err
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case errors.Is(err, pgx.ErrNoRows):
		return checkpoint.ErrNotFound
	}
	return &ServerError{reasonOf(err), err}
}

func reasonOf(err error) Reason {
	code := state(err)
	var network net.Error
	var connect *pgconn.ConnectError
	var known *ServerError
	switch {
	case errors.As(err, &known):
		return known.Reason
	case code == readOnlyServer:
		return Standby
	case code == undefinedTable, code == noSchema, code == noDatabase:
		return Unmigrated
	case code == denied, len(code) == 5 && code[:2] == "28":
		return Denied
	case code == serialization, code == deadlock, stale(err):
		return Aborted
	case code == cancelled, code == lockTimeout, code == idleInTx, code == longTx, errors.Is(err, context.DeadlineExceeded):
		return Slow
	case len(code) == 5 && code[:2] == "53":
		return Full
	case len(code) == 5 && (code[:2] == "08" || code[:2] == "57"):
		return Unreachable
	case code != "":
		return Broken
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), pgconn.SafeToRetry(err):
		return Unreachable
	}
	return Broken
}

var errClosed = fmt.Errorf("%w: it is closed", checkpoint.ErrUnavailable)
