package elicit

import (
	"fmt"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// Remembered says what an "always" is for, and how long (R19).
func Remembered(r *checkpoint.Remember) string {
	what := "with exactly these arguments"
	switch {
	case r.AnyArguments:
		what = "with any arguments"
	case len(r.Arguments) > 0:
		what = "with the same " + strings.Join(r.Arguments, ", ")
	}
	return what + ", for " + duration(r.Seconds)
}

// duration says seconds in the largest unit that needs no fraction.
func duration(seconds int64) string {
	n, unit := seconds, "second"
	switch {
	case seconds%3600 == 0:
		n, unit = seconds/3600, "hour"
	case seconds%60 == 0:
		n, unit = seconds/60, "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
