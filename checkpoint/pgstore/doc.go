// Package pgstore keeps interactions in PostgreSQL, for any number of processes on any number of
// machines: each of them opens the same database with [Open], and every rule holds over all of
// them.
//
// [Migrate] makes the tables, when it is asked to. Every commit is durable when it returns, as far
// as the server's synchronous_commit and its standbys make it so; a server whose settings lose what
// it acknowledged is refused. The batches of callers that commit at once go to the server as one
// transaction in one round trip, which takes one row that puts the commits of all processes in one
// order. A batch that is lazy is visible to all processes when Commit returns, and the server
// writes it to its disk a moment later (synchronous_commit off, for it alone).
//
// A process is alive by a row that it writes a few times in each [Options.Lapse]; the server's
// clock decides, for deadlines too. A process that did not get through for that long has lost its
// claims, which others may take over then, and knows it: see [checkpoint.Lapser]. Commits are
// fenced by that in the transaction that applies them. Those who wait for an answer are woken by
// LISTEN and NOTIFY.
//
// docs/scaling.md tells when to leave a file for a server, and how to run one.
package pgstore
