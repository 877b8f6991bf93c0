// Package memstore keeps interactions in memory: for tests, for examples, and for a process whose
// questions may die with it.
//
// A [Store] keeps every promise of [checkpoint.Store] but durability: what is committed is gone
// when the process is, and a lazy commit is an ordinary one. Several gates may join one Store, and
// each sees what the others commit; package boltstore does the same in a file.
package memstore
