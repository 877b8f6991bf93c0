// Package checkpoint is what parley keeps: the record of an interaction, and the [Store] that holds
// it.
//
// An interaction is the recorded life of one call of a tool that needs a person. Its [Interaction]
// (call, rounds, answers, ending) is one self-describing JSON value; [Encode] puts it into a
// [Record], together with the few plain fields that a store searches and fences by without reading
// the value: status, scope hash, start hash, claim, and when to look at it again.
//
// A store only stores. It has one verb that writes, [Store.Commit], which applies a [Batch] whole
// or not at all, each put stating the revision and claim epoch it expects. All rules (tokens,
// rounds, expiry, replay) live above it, in package gate, and are the same on every store. Package
// checkpointtest is the contract of a store, one case per promise; memstore and boltstore implement
// it.
//
// Which commits there are, in which order, and what a crash beside each of them leaves, stands in
// docs/transitions.md.
package checkpoint
