package pgstore_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// What the server says has a reason, by its state: here it says so in the place of a record.
func TestReasons(t *testing.T) {
	url := pgtest.URL(t)
	schema := migrated(t, url)
	s := open(t, url, &pgstore.Options{Schema: schema, Logger: quiet, Quiet: true})
	for state, want := range map[string]pgstore.Reason{
		"53100": pgstore.Full, "53200": pgstore.Full, "53300": pgstore.Full, "25006": pgstore.Standby, "40001": pgstore.Aborted,
		"40P01": pgstore.Aborted, "26000": pgstore.Aborted, "42501": pgstore.Denied, "57014": pgstore.Slow, "55P03": pgstore.Slow, "57P01": pgstore.Unreachable,
		"XX000": pgstore.Broken,
	} {
		execute(t, url, "CREATE OR REPLACE FUNCTION "+schema+".fail() RETURNS trigger LANGUAGE plpgsql AS "+
			"$$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '"+state+"'; END $$",
			"DROP TRIGGER IF EXISTS fail ON "+schema+".record",
			"CREATE TRIGGER fail BEFORE INSERT ON "+schema+".record EXECUTE FUNCTION "+schema+".fail()")
		err := s.Commit(t.Context(), puts(record(1)))
		wantReason(t, err, want)
		if errors.Is(err, pgx.ErrNoRows) {
			t.Error("it is told as a record that is not there")
		}
	}
	execute(t, url, "DROP TRIGGER fail ON "+schema+".record")
	commit(t, s, puts(record(1))) // nothing was written before, and the store goes on
}
