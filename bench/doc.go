// Package bench measures whole interactions beside their floor, in one run: make bench. Machines
// differ and are noisy, so that only ratios within one run mean something.
package bench
