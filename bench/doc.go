// Package bench measures whole interactions beside their floor, in one run: run it with `make bench`.
// Machines differ and are noisy; only ratios of one run mean something.
package bench
