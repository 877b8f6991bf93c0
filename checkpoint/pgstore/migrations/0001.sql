-- The tables of a store. The schema that the store is told to use is put in for parley, where a dot follows it.

CREATE TABLE parley.ledger (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	id bytea NOT NULL,
	meta bytea NOT NULL
);

-- One row that every commit updates: it puts the commits of all processes in one order, in which the audit trail is
-- numbered without gaps. floor is the latest time that a batch had, in nanoseconds since 1970.
CREATE TABLE parley.head (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	seq bigint NOT NULL DEFAULT 0,
	floor bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO parley.head DEFAULT VALUES;

-- due is in milliseconds since 1970; 0: never.
CREATE TABLE parley.record (
	id bytea PRIMARY KEY,
	revision bigint NOT NULL,
	status smallint NOT NULL,
	scope bytea NOT NULL,
	start bytea,
	due bigint NOT NULL,
	owner bytea NOT NULL,
	epoch bigint NOT NULL,
	attempt bigint NOT NULL,
	data bytea NOT NULL
);
CREATE UNIQUE INDEX record_start ON parley.record (start) WHERE start IS NOT NULL;
CREATE INDEX record_place ON parley.record (status, scope, id);
CREATE INDEX record_due ON parley.record (due, id) WHERE due > 0;

CREATE TABLE parley.record_row (
	id bytea NOT NULL,
	name bytea NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (id, name)
);

CREATE TABLE parley.audit (
	seq bigint PRIMARY KEY,
	data bytea NOT NULL
);

-- What each scope uses; the zero scope's row is in all.
CREATE TABLE parley.usage (
	scope bytea PRIMARY KEY,
	active bigint NOT NULL,
	bytes bigint NOT NULL
) WITH (fillfactor = 50);

-- A process is alive until it did not push "until" ahead; its members are the owners of claims.
CREATE TABLE parley.process (
	id text PRIMARY KEY,
	until timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE parley.member (
	owner bytea PRIMARY KEY,
	process text NOT NULL REFERENCES parley.process ON DELETE CASCADE
);
CREATE INDEX member_process ON parley.member (process);
