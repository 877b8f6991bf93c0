package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// version is that of the schema that this package works with: the number of its last migration.
const version = 1

// Migrate makes the tables of a store, or takes those of an older version over, and does nothing
// where they are of this version. Where there is something to do it wants a role that may create
// schemas and tables, or tables in a schema that is there, and owns those that are; [Open] never
// calls it, and needs no such role. All processes may call it at once: one of them does the work,
// in one transaction, also through a pooler. Of the options it looks at Schema alone.
func Migrate(ctx context.Context, url string, opts *Options) error {
	o, err := opts.withDefaults()
	if err != nil {
		return err
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", o.Schema, err) // pgx leaves a password out of it
	}
	onlyPrimary(config)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler in transaction mode would keep statements that were prepared
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", o.Schema, explain(ctx, err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range 4 * maxTries {
		if err = migrate(ctx, conn, o.Schema); !beaten(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", o.Schema, explain(ctx, err))
	}
	return nil
}

// beaten reports whether somebody else was making the same things at that moment: IF NOT EXISTS
// does not help against that.
func beaten(err error) bool {
	switch state(err) {
	case uniqueViolation, serialization, deadlock, "42P06", "42P07", "42710": // duplicate schema, table, object
		return true
	}
	return false
}

func migrate(ctx context.Context, conn *pgx.Conn, schema string) error {
	q := inSchema(schema)
	var have int // a role that may not read it may not make tables either
	if err := conn.QueryRow(ctx, q.Replace("SELECT version FROM parley.format")).Scan(&have); err == nil && have == version {
		return nil
	}
	var there bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = $1)", schema).Scan(&there)
	if err != nil {
		return err
	}
	if !there {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		"CREATE TABLE IF NOT EXISTS parley.format (one boolean PRIMARY KEY DEFAULT true CHECK (one), version int NOT NULL)",
		"INSERT INTO parley.format (version) VALUES (0) ON CONFLICT DO NOTHING",
	} {
		if _, err := conn.Exec(ctx, q.Replace(sql)); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return step(ctx, tx, q) })
}

// step applies what is missing, while the row that holds the version is locked.
func step(ctx context.Context, tx pgx.Tx, q *strings.Replacer) error {
	var have int
	if err := tx.QueryRow(ctx, q.Replace("SELECT version FROM parley.format FOR UPDATE")).Scan(&have); err != nil {
		return err
	}
	if have > version {
		return newer(have)
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) != version {
		return errors.Join(fmt.Errorf("there are %d migrations, want %d", len(files), version), err)
	}
	slices.Sort(files)
	for _, file := range files[have:] {
		sql, err := fs.ReadFile(migrations, file)
		if err != nil {
			return err
		}
		// The simple protocol takes several statements at once.
		if _, err := tx.Conn().PgConn().Exec(ctx, q.Replace(string(sql))).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	_, err = tx.Exec(ctx, q.Replace("UPDATE parley.format SET version = $1"), version)
	return err
}

func newer(have int) error {
	return &ServerError{Newer, fmt.Errorf("version %d, want %d: it was migrated by a newer parley", have, version)}
}

// inSchema puts the schema's name into a statement.
func inSchema(schema string) *strings.Replacer {
	return strings.NewReplacer("parley.", pgx.Identifier{schema}.Sanitize()+".")
}
