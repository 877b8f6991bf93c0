package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// config is of a pooler in transaction mode, as it is installed: with nothing set that a client
// could ask for.
const config = `[databases]
postgres = host=%[1]s dbname=postgres user=parley
[pgbouncer]
unix_socket_dir = %[2]s
listen_port = 6432
listen_addr =
auth_type = any
pool_mode = transaction
default_pool_size = 12
logfile = %[2]s/log
`

// Pooler starts a pgbouncer in transaction mode before the server, for the test, and returns where
// it is found. It skips the test where none is installed.
func (s *Server) Pooler(t testing.TB) (url string) {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin, err = exec.LookPath("/usr/sbin/pgbouncer") // where Debian keeps it, outside many a PATH
	}
	if err != nil {
		t.Skip("no pgbouncer is installed")
	}
	dir := filepath.Join(s.dir, "pooler")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/config", fmt.Appendf(nil, config, s.dir, dir), 0o600)); err != nil {
		t.Fatal(err)
	}
	if s.user != nil {
		if err := errors.Join(s.user.own(dir), s.user.own(dir+"/config")); err != nil {
			t.Fatal(err)
		}
	}
	// The shell ends the pooler when the test does, however that comes.
	const supervise = `"$1" -q config & pooler=$!; cat > /dev/null; kill -INT $pooler; wait $pooler`
	cmd := exec.Command("/bin/sh", "-c", supervise, "parley-pooler", bin)
	s.user.become(cmd)
	apart(cmd)
	cmd.Dir = dir
	leash, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leash.Close()
		_ = cmd.Wait() // its status is that of an interrupt
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", dir+"/.s.PGSQL.6432")
		if err == nil {
			conn.Close()
			return "postgres:///postgres?user=parley&port=6432&host=" + dir
		}
		if ctx.Err() != nil {
			log, _ := os.ReadFile(dir + "/log")
			t.Fatalf("start pgbouncer: %v\n%s", err, log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
