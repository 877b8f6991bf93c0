package pgstore

import (
	"strconv"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// statements are all that a store says to the server, but for migrations. Those that write end in
// an expression that divides by zero where not all that they expect is so, which aborts the
// transaction: nothing of a group is written then.
type statements struct {
	load, find, list, due, byID, rows, audit, usage            string
	ledger, join, joinProcess, joinMember, leave, beat, bury   string
	known, holders, owners, joined                             string
	order, head, flush, live, remove, release, put, row        string
	trim, meta, notify, lazy, checks, format, time, end, bound string
}

// clockNow is the server's time in microseconds since 1970.
const clockNow = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// settings are those without which a commit is not durable. They can change while a server runs,
// and with the server after a failover, so that every commit brings them along.
const settings = `'fsync ' || coalesce(current_setting('fsync', true), 'on')
	|| ', full_page_writes ' || coalesce(current_setting('full_page_writes', true), 'on')
	|| ', synchronous_commit ' || coalesce(current_setting('synchronous_commit', true), 'on')`

// zero is the key of what is used in all.
const zero = `decode(repeat('00', 32), 'hex')`

const columns = `r.id, r.revision, r.status, r.scope, r.start, r.due, r.owner, r.epoch, r.attempt, r.data`

// tally adds up the changes of put per scope and in all, and then holds their number against what
// is expected. It follows "put AS (…)", whose columns are scope, active and bytes.
const tally = `,
sums AS (
	SELECT scope, sum(active) AS active, sum(bytes) AS bytes FROM put GROUP BY scope
),
used AS (
	INSERT INTO parley.usage AS u (scope, active, bytes)
	SELECT scope, active, bytes FROM sums WHERE scope <> ` + zero + `
	UNION ALL
	SELECT ` + zero + `, sum(active), sum(bytes) FROM put HAVING count(*) > 0
	ON CONFLICT (scope) DO UPDATE SET active = u.active + excluded.active, bytes = u.bytes + excluded.bytes
)
`

// active is 1 for a live interaction, as checkpoint.Status.Active says.
func active(status string) string {
	return `(CASE WHEN ` + status + ` BETWEEN 1 AND 4 THEN 1 ELSE 0 END)`
}

// size is what a record or a row is charged: checkpoint.Charge and its data.
func size(data string) string { return `(512 + octet_length(` + data + `))` }

// all fails the transaction where from has not so many rows.
func all(from, want string) string {
	return `SELECT 1 / (CASE WHEN count(*) = ` + want + ` THEN 1 ELSE 0 END) FROM ` + from
}

func newStatements(schema string) statements {
	s := statements{
		checks: `SELECT current_setting('server_version_num')::int, ` + settings + `, current_setting('default_transaction_read_only')`,
		format: `SELECT version FROM parley.format`,

		// The floor comes with what is read, so that a deadline is never compared with an earlier
		// time.
		load: `SELECT r.id, ` + columns + `, (SELECT floor FROM parley.head WHERE one) FROM parley.record r WHERE r.id = ANY($1::bytea[])`,
		find: `SELECT r.start, ` + columns + `, (SELECT floor FROM parley.head WHERE one) FROM parley.record r
			WHERE r.start = ANY($1::bytea[])`,
		byID: `SELECT ` + columns + ` FROM parley.record r WHERE r.id = ANY($1::bytea[])`,
		// One look into the index for each status; only the records of the page are fetched, one by
		// one: a plan that does not know the limit would go through all of them otherwise.
		list: `SELECT ` + columns + ` FROM (
				SELECT k.id FROM unnest($1::smallint[]) AS s(status), LATERAL (
					SELECT i.scope, i.id FROM parley.record i
					WHERE i.status = s.status AND (i.scope, i.id) > ($2::bytea, $3::bytea) AND i.scope <= $4::bytea
					ORDER BY i.scope, i.id LIMIT $5
				) k ORDER BY k.scope, k.id LIMIT $5
			) page, LATERAL (SELECT * FROM parley.record WHERE id = page.id LIMIT 1) r`,
		due: `SELECT id, status, scope, due FROM parley.record
			WHERE due > 0 AND due <= $1 AND (due, id) > ($2::bigint, $3::bytea) ORDER BY due, id LIMIT $4`,
		rows: `SELECT name, data FROM (
				SELECT name, data, sum(octet_length(data)) OVER (ORDER BY name) - octet_length(data) AS before
				FROM (SELECT name, data FROM parley.record_row WHERE id = $1 AND name >= $2 ORDER BY name LIMIT $3) page
			) sized WHERE before < $4 ORDER BY name`,
		audit: `SELECT seq, data FROM parley.audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
		usage: `SELECT scope, active, bytes FROM parley.usage WHERE scope = ANY($1::bytea[])`,

		ledger: `SELECT l.id, l.meta, (SELECT floor FROM parley.head WHERE one) FROM parley.ledger l`,
		join:   `INSERT INTO parley.ledger (id, meta) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
		joinProcess: `INSERT INTO parley.process (id, until) VALUES ($1, clock_timestamp() + $2 * interval '1 microsecond')
			RETURNING ` + clockNow,
		joinMember: `WITH put AS (
				INSERT INTO parley.member (owner, process)
				SELECT $1, id FROM parley.process WHERE id = $2 AND until > clock_timestamp() RETURNING 1
			) ` + all("put", "1"),
		leave: `DELETE FROM parley.member WHERE owner = ANY($1::bytea[])`,
		// A sign of life that comes too late is none: nobody who was counted dead comes back.
		beat: `UPDATE parley.process SET until = clock_timestamp() + $2 * interval '1 microsecond'
			WHERE id = $1 AND until > clock_timestamp() RETURNING ` + clockNow,
		time: `SELECT ` + clockNow,
		end:  `DELETE FROM parley.process WHERE id = $1`,
		bury: `DELETE FROM parley.process WHERE until < clock_timestamp() - interval '1 day'`,

		order:   `SELECT 1 FROM parley.head WHERE one FOR UPDATE`,
		known:   `SELECT id, revision, scope, epoch, start FROM parley.record WHERE id = ANY($1::bytea[])`,
		holders: `SELECT id, start FROM parley.record WHERE start = ANY($1::bytea[])`,
		owners: `SELECT m.owner FROM parley.member m JOIN parley.process p ON p.id = m.process
			WHERE m.owner = ANY($1::bytea[]) AND p.until > clock_timestamp()`,
		joined: `SELECT count(*) FROM parley.ledger`,

		lazy: `SELECT set_config('synchronous_commit', 'off', true)`,
		// A format, of what Options.timeouts returns.
		bound: `SELECT set_config('statement_timeout', '%[1]s', true), set_config('lock_timeout', '%[1]s', true),
			set_config('idle_in_transaction_session_timeout', '%[2]s', true),
			CASE WHEN current_setting('transaction_timeout', true) = '0' THEN set_config('transaction_timeout', '%[3]s', true) END`,
		head: `WITH h AS (
				UPDATE parley.head SET seq = seq + cardinality($1::bytea[]), floor = greatest(floor, $2) WHERE one RETURNING seq, floor
			), appended AS (
				INSERT INTO parley.audit (seq, data)
				SELECT h.seq - cardinality($1::bytea[]) + a.n, a.data FROM h, unnest($1::bytea[]) WITH ORDINALITY AS a(data, n)
			) SELECT floor, ` + settings + ` FROM h`,
		flush: `UPDATE parley.head SET seq = seq WHERE one RETURNING ` + settings,
		live: all(`parley.member m JOIN parley.process p ON p.id = m.process
			WHERE m.owner = ANY($1::bytea[]) AND p.until > clock_timestamp()`, "$2"),
		remove: `WITH want AS (
				SELECT * FROM unnest($1::bytea[], $2::bigint[]) AS w(id, revision)
			), gone AS (
				DELETE FROM parley.record r USING want w WHERE r.id = w.id AND r.revision = w.revision
				RETURNING r.id, r.scope, -` + active("r.status") + ` AS active, -` + size("r.data") + ` AS bytes
			), gone_rows AS (
				DELETE FROM parley.record_row k USING gone g WHERE k.id = g.id
				RETURNING g.scope, 0 AS active, -` + size("k.data") + ` AS bytes
			), put AS (
				SELECT scope, active, bytes FROM gone UNION ALL SELECT scope, active, bytes FROM gone_rows
			)` + tally + all("gone", "$3"),
		// A start hash that one record gives up and another takes must be free in between.
		release: `UPDATE parley.record SET start = NULL WHERE id = ANY($1::bytea[])`,
		put: `WITH want AS (
				SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::smallint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bytea[],
					$8::bigint[], $9::bigint[], $10::bytea[], $11::bigint[])
				AS w(id, revision, status, scope, start, due, owner, epoch, attempt, data, expected)
			), written AS (
				UPDATE parley.record r SET revision = w.revision, status = w.status, start = w.start, due = w.due, owner = w.owner,
					epoch = w.epoch, attempt = w.attempt, data = w.data
				FROM want w JOIN parley.record o ON o.id = w.id
				WHERE w.revision > 1 AND r.id = w.id AND r.revision + 1 = w.revision AND r.epoch = w.expected AND r.scope = w.scope
				RETURNING r.scope, ` + active("w.status") + ` - ` + active("o.status") + ` AS active,
					octet_length(w.data) - octet_length(o.data) AS bytes
			), created AS (
				INSERT INTO parley.record AS r (id, revision, status, scope, start, due, owner, epoch, attempt, data)
				SELECT id, revision, status, scope, start, due, owner, epoch, attempt, data FROM want WHERE revision = 1 AND expected = 0
				RETURNING r.scope, ` + active("r.status") + ` AS active, ` + size("r.data") + ` AS bytes
			), put AS (
				SELECT scope, active, bytes FROM written UNION ALL SELECT scope, active, bytes FROM created
			)` + tally + all("put", "$12"),
		row: `WITH want AS (
				SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) AS w(id, name, data, epoch)
			), held AS (
				SELECT w.id, w.name, w.data, r.scope, k.data IS NOT NULL AS there, octet_length(k.data) AS size FROM want w
				JOIN parley.record r ON r.id = w.id AND r.epoch = w.epoch
				LEFT JOIN parley.record_row k ON k.id = w.id AND k.name = w.name
			), gone AS (
				DELETE FROM parley.record_row k USING held h WHERE h.data IS NULL AND k.id = h.id AND k.name = h.name
			), kept AS (
				INSERT INTO parley.record_row (id, name, data) SELECT id, name, data FROM held WHERE data IS NOT NULL
				ON CONFLICT (id, name) DO UPDATE SET data = excluded.data
			), put AS (
				SELECT scope, 0 AS active, (CASE WHEN data IS NULL THEN 0 ELSE ` + size("data") + ` END)
					- (CASE WHEN there THEN 512 + size ELSE 0 END) AS bytes FROM held
			)` + tally + all("held", "$5"),
		// The numbers have no gaps, so that the oldest ones are a range.
		trim: `DELETE FROM parley.audit WHERE seq >= (SELECT min(seq) FROM parley.audit)
			AND seq <= least($1::bigint, (SELECT min(seq) FROM parley.audit) + ` + strconv.Itoa(checkpoint.MaxTrim-1) + `)`,
		meta:   `WITH put AS (UPDATE parley.ledger SET meta = $1 RETURNING 1) ` + all("put", "1"),
		notify: `SELECT pg_notify($1, $2)`,
	}
	q := inSchema(schema)
	for _, sql := range s.each() {
		*sql = strings.TrimSpace(q.Replace(*sql))
	}
	return s
}

func (s *statements) each() []*string {
	return []*string{
		&s.load, &s.find, &s.list, &s.due, &s.byID, &s.rows, &s.audit, &s.usage, &s.ledger, &s.join, &s.joinProcess, &s.joinMember,
		&s.leave, &s.beat, &s.bury, &s.known, &s.holders, &s.owners, &s.joined, &s.order, &s.head, &s.flush, &s.live,
		&s.remove, &s.release, &s.put, &s.row, &s.trim,
		&s.meta, &s.notify, &s.lazy, &s.bound, &s.checks, &s.format, &s.time, &s.end,
	}
}
