// Package bench measures whole interactions beside their floor, in one run: make bench, or make
// bench-ratios for the ratios that docs/performance.md speaks of. Machines differ and are noisy, so
// that only ratios within one run mean something.
//
// The names are made for benchstat: -col /store compares parley with bbolt alone (store=raw), which
// writes the same bytes and index entries in the same groups, and with the disk (store=disk). The
// floor of an agent is the same agent of eino's alone, with a map (store=eino).
package bench
