package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A script is statements that go to the server in one round trip. pgx.Batch would do; but a group
// of commits sends ten KB to some MB, of which it makes several copies while its buffers grow, and
// that was a tenth of the processor time of an interaction.
type script struct {
	statements []statement
}

// A statement is one of a script.
type statement struct {
	sql        string
	parameters [][]byte                     // in the server's binary form
	read       func(row [][]byte)           // of the row that it returns, in binary form; nil: nobody looks
	prepared   *pgconn.StatementDescription // nil: it is not, as behind a pooler
}

func (s *script) add(sql string, parameters ...[]byte) *statement {
	s.statements = append(s.statements, statement{sql: sql, parameters: parameters})
	return &s.statements[len(s.statements)-1]
}

// room is a message of no bytes, which makes room for those that follow it.
type room int

func (r room) Encode(dst []byte) ([]byte, error) { return slices.Grow(dst, int(r)), nil }
func (r room) Decode([]byte) error               { return nil }
func (r room) Frontend()                         {}

// run sends the script, and returns how the last statement was answered.
func (s *script) run(ctx context.Context, conn *pgx.Conn, prepare bool) (last string, err error) {
	size := 0
	for i := range s.statements {
		st := &s.statements[i]
		if prepare { // which asks the server once for each connection
			if st.prepared, err = conn.Prepare(ctx, st.sql, st.sql); err != nil {
				return "", err
			}
		}
		size += st.size()
	}
	conn.PgConn().Frontend().Send(room(size))
	p := conn.PgConn().StartPipeline(ctx)
	for _, st := range s.statements {
		if prepare {
			p.SendQueryStatement(st.prepared, st.parameters, inBinary, inBinary)
		} else {
			p.SendQueryParams(st.sql, st.parameters, nil, inBinary, inBinary)
		}
	}
	err = p.Sync()
	for i := 0; err == nil && i < len(s.statements); i++ {
		last, err = s.statements[i].answer(p)
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	return last, err
}

var inBinary = []int16{pgx.BinaryFormatCode}

// size is how many bytes the statement's messages have, or somewhat more.
func (s *statement) size() int {
	size := 512
	if s.prepared == nil {
		size += len(s.sql)
	}
	for _, p := range s.parameters {
		size += len(p)
	}
	return size
}

// answer reads the answer to the statement.
func (s *statement) answer(p *pgconn.Pipeline) (tag string, err error) {
	results, err := p.GetResults()
	if err != nil {
		return "", err
	}
	rows, ok := results.(*pgconn.ResultReader)
	if !ok {
		return "", fmt.Errorf("a statement was answered with %T", results)
	}
	for rows.NextRow() {
		if s.read != nil {
			s.read(rows.Values())
		}
	}
	done, err := rows.Close()
	return done.String(), err
}
