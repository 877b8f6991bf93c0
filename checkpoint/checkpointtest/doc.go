// Package checkpointtest is the contract of a store: one case for each promise of package
// checkpoint, and a comparison with a dumb model under random operations.
//
// A store's own test is a [Harness] and a call of [Run]. A case that fails prints the promise it
// checks. What a store promises beyond the contract (its file, its locks, its crashes) is for its
// own tests.
package checkpointtest
