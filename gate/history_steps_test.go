package gate_test

import "github.com/parley-go/parley/checkpoint"

// The rule about recorded steps. See history_check_test.go.
func (c *checker) steppedOnce() {
	type step struct {
		interaction checkpoint.ID
		exchange    int // where the interaction is not known
		key         string
	}
	ran, given := map[step]int{}, map[step]string{}
	for _, d := range c.steps {
		s := step{interaction: c.interactionOfStep(d), key: d.key}
		if s.interaction.IsZero() {
			s.exchange = d.exchange
		}
		result, was := given[s]
		switch {
		case d.given && was && result != d.result:
			c.breaks("exchange %d was given %q of %s of %s, and %q before", d.exchange, d.result, d.key, s.interaction, result)
		case d.given:
			given[s] = d.result
		case was:
			c.breaks("exchange %d did %s of %s again, whose result %q was given", d.exchange, d.key, s.interaction, result)
		case ran[s] > 0 && !d.idempotent:
			c.breaks("exchange %d did %s of %s once more", d.exchange, d.key, s.interaction)
		}
		if !d.given {
			ran[s]++
		}
	}
}

// interactionOfStep is that of the run in which the step is.
func (c *checker) interactionOfStep(d stepDone) (id checkpoint.ID) {
	for _, r := range c.runsOf[d.exchange] {
		if r.begin < d.at {
			id = c.interactionOfRun(r)
		}
	}
	return id
}
