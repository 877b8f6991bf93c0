// Package pgtest gives tests a PostgreSQL server: the one that PARLEY_TEST_POSTGRES names, or a
// private one that it starts from the installed binaries. Where there is neither, tests skip, or
// fail where PARLEY_REQUIRE_POSTGRES is set.
package pgtest
