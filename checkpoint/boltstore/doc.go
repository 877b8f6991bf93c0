// Package boltstore keeps interactions in one file: durable, embedded, for one process at a time.
//
// [Open] opens or creates the file; the process that has it open holds its lock, so that a claim of
// any other boot is dead without leases or heartbeats. Several gates of the process may join the
// one [Store]. Each commit that is not lazy is synced to the disk before it returns; the commits of
// concurrent callers share a sync. SECURITY.md says how that is tested, with cuts of the power.
// After a sync that failed nothing is known about the file's state, so the store serves nothing any
// more until it is opened again.
//
// The file is a bbolt database with the mode 0600. Its format has a version: a file of an older one
// is taken over when it is opened, and one that is damaged, of a newer format, or another
// application's is reported as a [*FileError] and left as it is. [Store.Backup] copies the file
// while it is in use; [Check] looks for damage and contradictions in a file, and [Compact] gives
// back its free space. docs/store-format.md describes the format, and how a backup is brought back.
package boltstore
