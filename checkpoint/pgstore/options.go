package pgstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"
)

// Options configure a store. Nil Options and the zero Options are the defaults.
type Options struct {
	// Schema is where the tables are; "" means "parley".
	Schema string
	// Connections is the most that the store opens, the one that listens not counted; 0 means four
	// for each core of this machine, at least 8 and at most 16. More of them are slower, not
	// faster; fewer than 6 are refused. Lists leave five of them to all else.
	Connections int
	// Timeout bounds every request, commits included, and the wait behind other callers' counts;
	// 0 means 10 seconds, or a third of Lapse where that is less. It must be shorter than Lapse.
	Timeout time.Duration
	// Lapse is how long the claims of a process hold after its last sign of life; 0 means 30
	// seconds. It gives a sign five times as often. All processes of one store have the same.
	Lapse time.Duration
	// Pooler says that the URL leads to a pooler in transaction mode, such as pgbouncer: nothing is
	// kept in a session then, prepared statements included.
	Pooler bool
	// ListenURL is where the connection that listens is opened: a pooler in transaction mode cannot
	// listen. "" means the store's URL or, with Pooler, that nothing listens here.
	ListenURL string
	// Quiet leaves out LISTEN and NOTIFY, for servers that have neither. Who waits for an answer
	// finds it by looking again then (gate.Options.PollInterval).
	Quiet bool
	// ReadOnly reads with a role that may do no more. Commit returns checkpoint.ErrReadOnly then,
	// and a membership is nobody's.
	ReadOnly bool
	// Logger is told when the listening connection is lost and found, and when this process is no
	// longer counted alive; nil means slog.Default().
	Logger *slog.Logger
}

// minConnections is one for each of those that carry questions, for commits, for signs of life, for
// what overcomes a doubt, and for lists, which have all that are more.
const minConnections = askers + 4

// maxSchema keeps the name of the channel of notices within what the server takes.
const maxSchema = 48

// withDefaults returns a copy in which every field is set.
func (o *Options) withDefaults() (Options, error) {
	var set Options
	if o != nil {
		set = *o
	}
	if set.Connections < 0 || set.Timeout < 0 || set.Lapse < 0 {
		return Options{}, fmt.Errorf("open store: connections %d, timeout %s or lapse %s is negative", set.Connections, set.Timeout,
			set.Lapse)
	}
	set.Schema = cmp.Or(set.Schema, "parley")
	set.Connections = cmp.Or(set.Connections, min(max(4*runtime.NumCPU(), 8), 16))
	set.Lapse = cmp.Or(set.Lapse, 30*time.Second)
	set.Timeout = cmp.Or(set.Timeout, min(10*time.Second, set.Lapse/3))
	set.Logger = cmp.Or(set.Logger, slog.Default())
	switch {
	case len(set.Schema) > maxSchema:
		return Options{}, fmt.Errorf("open store: schema %.80q has more than %d bytes", set.Schema, maxSchema)
	case set.Connections < minConnections:
		return Options{}, fmt.Errorf("open store: %d connections, want %d or more", set.Connections, minConnections)
	case set.Lapse <= set.Timeout:
		return Options{}, fmt.Errorf("open store: lapse %s is not longer than timeout %s", set.Lapse, set.Timeout)
	case set.Quiet && set.ListenURL != "":
		return Options{}, errors.New("open store: quiet, and yet a URL to listen at")
	}
	return set, nil
}
