// Command peers measures one interrupt and its resume in LangGraph JS, in eino and in parley, side
// by side in one run, and prints one table: how many cycles a second, how many of them reach the
// disk, and what becomes of a second answer to the same question. README.md says what the columns
// mean and what is not like for like; make bench-peers installs what is needed and runs it.
//
// It is a module of its own, so that no user of parley gets eino's modules, or downloads anything,
// for a comparison.
package main
