package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// minServer is the oldest server, as server_version_num counts.
const minServer = 130000

// Open opens the store that is in a database of PostgreSQL, where [Migrate] has made its tables.
// The URL is a connection string of pgx; the user it names needs to read and write the tables of
// the schema, and nothing else. The error matches [*ServerError]: Unreachable, TooOld, Standby,
// Unsafe (fsync, full_page_writes or synchronous_commit is off), Unmigrated, Newer or Denied.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err) // pgx leaves a password out of it
	}
	o.configure(config)
	listener, err := o.listener(url)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", explain(ctx, err))
	}
	s := newStore(pool, &o)
	s.prepares = config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement // a URL can name another one
	if err := s.check(ctx); err != nil {
		s.cancel()
		pool.Close()
		return nil, fmt.Errorf("open store: %w", explain(ctx, err))
	}
	if listener != nil {
		s.running.Go(func() { s.listenOn(listener) })
	}
	s.running.Go(s.live)
	for range askers {
		s.running.Go(s.answerAll)
	}
	if !o.ReadOnly {
		s.running.Go(s.commitAll)
	}
	return s, nil
}

func newStore(pool *pgxpool.Pool, o *Options) *Store {
	s := &Store{
		opts: o, pool: pool, sql: newStatements(o.Schema), log: o.Logger,
		queue: make(chan *request, maxGroup), closing: make(chan struct{}),
		questions: make(chan *question, maxQuestions), drained: make(chan struct{}),
		readers: make(chan struct{}, o.Connections-minConnections+1), flushing: make(chan struct{}, 1),
		left: make(map[string]bool),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.close = sync.OnceValue(s.shutdown)
	return s
}

// configure puts the options into what pgx opens connections with.
func (o *Options) configure(config *pgxpool.Config) {
	config.MaxConns = int32(o.Connections)
	config.BeforeConnect = leaveCommits
	config.ConnConfig.OnNotice = noteBrokenWait
	onlyPrimary(config.ConnConfig)
	if config.ConnConfig.ConnectTimeout == 0 { // one that hangs takes the place of another
		config.ConnConfig.ConnectTimeout = o.Timeout
	}
	if o.Pooler {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return // a pooler passes on no settings of a session
	}
	// Another default would make statements fail that wait for a row.
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	statement, idle, whole := o.timeouts()
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, longest, whole)
		return err
	}
	o.giveUp(config.ConnConfig.RuntimeParams)
	for name, value := range map[string]string{
		"application_name":  "parley",
		"statement_timeout": statement, "lock_timeout": statement, "idle_in_transaction_session_timeout": idle,
		// One plan for each statement, through the indexes: one that was made for a small table
		// would go on to read all of it long after it has grown.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"jit": "off",
	} {
		if _, set := config.ConnConfig.RuntimeParams[name]; !set {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
}

// timeouts are how many milliseconds a statement may take, and how long a transaction may wait for
// its next request: so much less that a process that stalls in the middle of a commit makes no
// other one's fail, which wait for it. whole bounds a transaction that has begun to send a request
// and never ends it.
func (o *Options) timeouts() (statement, idle, whole string) {
	ms := max(o.Timeout.Milliseconds(), 1) // 0 would be no limit
	return strconv.FormatInt(ms, 10), strconv.FormatInt(max(ms/3, 1), 10), strconv.FormatInt(ms*3/2, 10)
}

// longest sets how long a transaction may take, on servers from 17 on; older ones have no such
// setting.
const longest = `SELECT CASE WHEN current_setting('transaction_timeout', true) = '0'
	THEN set_config('transaction_timeout', $1, false) END`

// giveUp asks the server to give up a connection to a machine that vanished, in half the time in
// which the commits fail that may wait for one of its.
func (o *Options) giveUp(parameters map[string]string) {
	for name, value := range map[string]string{
		"tcp_keepalives_idle":     strconv.Itoa(max(int(o.Timeout.Seconds())/5, 1)),
		"tcp_keepalives_interval": "1",
		"tcp_keepalives_count":    "3",
		"tcp_user_timeout":        strconv.FormatInt(o.Timeout.Milliseconds()/2, 10), // where it waits for a receipt
	} {
		if _, set := parameters[name]; !set {
			parameters[name] = value
		}
	}
}

// onlyPrimary has connections refused that lead to a standby, whatever a URL asks for besides. Each
// of them is looked at: after a failover an address can lead to another server.
func onlyPrimary(config *pgx.ConnConfig) {
	asked := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if err := primary(ctx, c); err != nil || asked == nil {
			return err
		}
		return asked(ctx, c)
	}
}

// primary refuses a standby, which sees what was committed only later.
func primary(ctx context.Context, c *pgconn.PgConn) error {
	result := c.ExecParams(ctx, "SELECT pg_is_in_recovery()::text", nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) == 1 && string(result.Rows[0][0]) == "true" {
		return &ServerError{Standby, errors.New("it is a standby, which sees what was committed only later")}
	}
	return nil
}

// brokenWait is where a connection keeps that the server broke off a wait for its standby.
const brokenWait = "parley.brokenWait"

// noteBrokenWait keeps it for the commit that it is about, which the server calls a success. Other
// warnings say nothing of a commit: that a table wants to be vacuumed, for one.
func noteBrokenWait(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.CustomData()[brokenWait] = n.Message
	}
}

// check refuses a server that would not keep the store's promises.
func (s *Store) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var server int
	var settings, readOnly string
	err := s.pool.QueryRow(ctx, s.sql.checks).Scan(&server, &settings, &readOnly)
	switch {
	case err != nil:
		return err
	case server < minServer:
		return &ServerError{TooOld, fmt.Errorf("server_version_num %d, want %d or more", server, minServer)}
	case readOnly == "on" && !s.opts.ReadOnly:
		return &ServerError{Standby, errors.New("default_transaction_read_only is on")}
	}
	if err := durable(settings, nil); err != nil {
		return err
	}
	var have int
	switch err := s.pool.QueryRow(ctx, s.sql.format).Scan(&have); {
	case err != nil:
		return err
	case have > version:
		return newer(have)
	case have < version:
		return &ServerError{Unmigrated, fmt.Errorf("version %d, want %d", have, version)}
	}
	return s.start(ctx)
}
