package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Binaries names the variable that says where a server's programs are, for tests with another
// version than the newest that is installed.
const Binaries = "PARLEY_POSTGRES_BIN"

// ErrNone: no PostgreSQL is installed here.
var ErrNone = errors.New("no PostgreSQL server is installed: neither /usr/lib/postgresql/*/bin nor PATH has one")

// A Server is a private server: in a temporary directory, reached through a socket there, and gone
// when the process that started it is, however that ends.
type Server struct {
	dir  string
	bin  string
	user *owner // whose processes they are; nil: ours

	listens string // an address of this machine; "": it listens at its socket alone

	mu    sync.Mutex // guards what follows
	super *exec.Cmd  // the shell that ends the server; nil: it does not run
	leash io.Closer  // what the shell reads: it ends the server when this is closed
}

// Start makes a database cluster and starts its server. The caller stops it, or ends.
func Start() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(socketRoom(), "parley-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin}
	if s.user, err = unprivileged(); err == nil && s.user != nil {
		err = s.user.own(dir)
	}
	if err == nil {
		err = s.init()
	}
	if err == nil {
		err = s.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// binaries returns the directory of the server that was asked for, or of the newest that is
// installed.
func binaries() (string, error) {
	if bin := os.Getenv(Binaries); bin != "" {
		return filepath.Abs(bin)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian keeps it, outside PATH
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", ErrNone
		}
		found = append(found, path)
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// socketRoom is where the directory is made: a socket's path has at most a hundred bytes.
func socketRoom() string {
	if len(os.TempDir()) > 60 {
		return "/tmp"
	}
	return ""
}

// Standby makes a standby of the server and starts it. The server is stopped for that moment: not
// every package of its programs has the one that copies a server that runs.
func (s *Server) Standby() (*Server, error) {
	dir, err := os.MkdirTemp(socketRoom(), "parley-pg-")
	if err != nil {
		return nil, err
	}
	standby := &Server{dir: dir, bin: s.bin, user: s.user}
	if s.user != nil {
		err = s.user.own(dir)
	}
	if err == nil {
		err = s.Stop()
	}
	if err == nil {
		const follow = `cp -a "$1" "$2" && : > "$2/standby.signal" &&
			echo "primary_conninfo = 'host=$3 user=parley'" >> "$2/postgresql.auto.conf"`
		err = standby.run("/bin/sh", "-c", follow, "parley-pg", s.data(), standby.data(), s.dir)
	}
	if err == nil {
		err = s.Restart()
	}
	if err == nil {
		err = standby.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return standby, nil
}

// Promote makes a primary of a standby.
func (s *Server) Promote() error {
	return s.run(s.program("pg_ctl"), "promote", "--pgdata", s.data(), "--wait")
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) init() error {
	return s.run(s.program("initdb"), "--pgdata", s.data(), "--username=parley", "--auth=trust", "--no-sync", "--encoding=UTF8",
		"--locale=C")
}

func (s *Server) program(name string) string { return filepath.Join(s.bin, name) }

// run runs a program as the server's user.
func (s *Server) run(program string, arguments ...string) error {
	cmd := exec.Command(program, arguments...)
	s.user.become(cmd)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// supervise runs the server until its input ends, and then ends the server. The test's end, however
// it comes, closes that input. A directory that is no longer asked for is removed.
const supervise = `
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses="$3" -c max_connections=200 -c logging_collector=off \
	-c unix_socket_permissions=0700 < /dev/null &
server=$!
how=$(cat)
case "$how" in
kill) kill -QUIT $server ;;
*) kill -INT $server ;;
esac
wait $server
case "$how" in
kill|stop) ;;
*) cd / && rm -rf "$2" ;;
esac
`

// Restart starts the server of a cluster that was stopped or killed, and waits until it serves.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.super != nil {
		return errors.New("restart PostgreSQL: it runs")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", "-c", supervise, "parley-pg", s.bin, s.dir, s.listens)
	s.user.become(cmd)
	apart(cmd)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	leash, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.super, s.leash = cmd, leash
	return s.serves()
}

// serves waits until the server takes connections.
func (s *Server) serves() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("start PostgreSQL: %w\n%s", err, bytes.TrimSpace(log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Listen has the server listen at an address of this machine too, so that a [Proxy] reaches it as
// another machine would. The server is restarted.
func (s *Server) Listen() error {
	s.listens = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)) // most likely nobody's
	return errors.Join(s.Stop(), s.Restart())
}

// Dir is where the server's socket is.
func (s *Server) Dir() string { return s.dir }

// URL is where a client finds the server.
func (s *Server) URL() string { return "postgres:///postgres?user=parley&host=" + s.dir }

// SQL executes statements, one after the other.
func (s *Server) SQL(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Kill ends the server as a crash does: what its memory held is lost, what it gave to the system is
// kept.
func (s *Server) Kill() error { return s.end("kill") }

// Stop ends the server in good order, so that it can be started again.
func (s *Server) Stop() error { return s.end("stop") }

// Close ends the server and removes all of it.
func (s *Server) Close() error {
	err := s.end("")
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) end(how string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.super == nil {
		return nil
	}
	_, err := io.Copy(s.leash.(io.Writer), strings.NewReader(how))
	err = errors.Join(err, s.leash.Close())
	var exit *exec.ExitError
	if waited := s.super.Wait(); waited != nil && !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	s.super, s.leash = nil, nil
	return err
}
