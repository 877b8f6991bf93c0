package pgstore_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// A server that does not serve for a while is logged when that begins and when it is over, however
// many signs of life are tried in between, with what the server says.
func TestSignsOfLifeAreLoggedOnce(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	log := &lines{}
	o := &pgstore.Options{
		Schema: schema, Lapse: time.Second, Timeout: 900 * time.Millisecond, Quiet: true,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	s := open(t, url, o)
	m := join(t, s)
	execute(t, url, "CREATE FUNCTION "+schema+".fail() RETURNS trigger LANGUAGE plpgsql AS "+
		"$$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '53100'; END $$",
		"CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON "+schema+".process EXECUTE FUNCTION "+schema+".fail()")
	wait(t, "it lapses", m.(checkpoint.Lapser).Lapsed())
	execute(t, url, "DROP TRIGGER fail ON "+schema+".process")
	eventually(t, "the end is logged", func() bool { return strings.Contains(log.text(), "signs of life are given again") })
	for text, want := range map[string]int{"injected": 1, "signs of life are given again": 1, "not counted alive any more": 1} {
		if n := strings.Count(log.text(), text); n != want {
			t.Errorf("%q is logged %d times, want %d:\n%s", text, n, want, log.text())
		}
	}
}
