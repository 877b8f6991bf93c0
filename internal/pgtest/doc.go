// Package pgtest gives tests a PostgreSQL server: the one that PARLEY_TEST_POSTGRES names, or a
// private one that it starts from the binaries in PARLEY_POSTGRES_BIN, or from those that are
// installed. Where there is none, tests skip, or fail where PARLEY_REQUIRE_POSTGRES is set.
package pgtest
