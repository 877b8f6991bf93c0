package pgstore_test

import (
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint/pgstore"
	"github.com/parley-go/parley/internal/pgtest"
)

// R25: where the server stopped waiting for its disk, or writes it so that a crash loses something, a
// commit is an error, and what may be lost is not read back as if it were durable; lazy batches are
// as they were. The store goes on when the setting is right again.
func TestNotDurableAnyMore(t *testing.T) {
	server := pgtest.Private(t)
	o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet}
	s := open(t, server.URL(), o)
	r := record(1)
	commit(t, s, puts(r))
	for _, setting := range []string{"synchronous_commit", "fsync", "full_page_writes"} {
		execute(t, server.URL(), "ALTER SYSTEM SET "+setting+" = off", "SELECT pg_reload_conf()")
		var err error
		eventually(t, "the server reads its settings", func() bool {
			r = next(r)
			err = s.Commit(t.Context(), puts(r))
			return err != nil
		})
		wantReason(t, err, pgstore.Unsafe)
		_, err = s.Load(t.Context(), r.ID)
		wantReason(t, err, pgstore.Unsafe)
		_, err = pgstore.Open(t.Context(), server.URL(), o)
		wantReason(t, err, pgstore.Unsafe)
		execute(t, server.URL(), "ALTER SYSTEM RESET "+setting, "SELECT pg_reload_conf()")
		eventually(t, "the store goes on", func() bool {
			got, err := s.Load(t.Context(), r.ID)
			return err == nil && got.Revision == r.Revision
		})
		r = next(r)
		commit(t, s, puts(r))
	}
}

// R25: a commit that does not reach the synchronous standby is an error, though the server applied
// it, and is not read back before it did: not by this process, and not by another one, which knows
// nothing of it.
func TestStandbyIsAway(t *testing.T) {
	server := pgtest.Private(t)
	o := &pgstore.Options{Schema: migrated(t, server.URL()), Logger: quiet, Timeout: time.Second, Lapse: time.Hour}
	s, other := open(t, server.URL(), o), open(t, server.URL(), o)
	commit(t, s, puts(record(1)))
	execute(t, server.URL(), "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	r := record(1)
	var err error
	eventually(t, "the server reads its settings", func() bool {
		r = next(r)
		err = s.Commit(t.Context(), puts(r))
		return err != nil
	})
	if _, err := s.Load(t.Context(), r.ID); err == nil {
		t.Error("what no standby has was read back")
	}
	if got, err := other.Load(t.Context(), r.ID); err != nil || got.Revision >= r.Revision {
		t.Errorf("what no standby has was read by another process: revision %d of %d, %v", got.Revision, r.Revision, err)
	}
	execute(t, server.URL(), "SET synchronous_commit = local", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	eventually(t, "the store goes on", func() bool {
		got, err := s.Load(t.Context(), r.ID)
		return err == nil && got.Revision == r.Revision
	})
}

// A warning of the server that is about something else than a commit is no reason to doubt it.
func TestWarning(t *testing.T) {
	url := pgtest.URL(t)
	o := &pgstore.Options{Schema: migrated(t, url), Logger: quiet}
	s := open(t, url, o)
	execute(t, url, "CREATE FUNCTION "+o.Schema+".warn() RETURNS trigger LANGUAGE plpgsql AS "+
		"$$ BEGIN RAISE WARNING 'this database must be vacuumed'; RETURN NEW; END $$",
		"CREATE TRIGGER warn BEFORE UPDATE ON "+o.Schema+".head EXECUTE FUNCTION "+o.Schema+".warn()")
	commit(t, s, puts(record(1)))
}
