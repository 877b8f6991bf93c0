package gate

import (
	"fmt"
	"slices"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/interrupt"
)

// missing is what the tool cannot do without and the call does not have, looked at before its
// handler runs (R13).
func (r *request) missing() interrupt.Facility {
	_, missing := r.canAsk(r.tool.opts.Needs...)
	return missing
}

// canAsk compares the call's facilities with types of questions (R13), and returns the first that
// is missing. None is where outOfBand is set, too: then the answer comes by another road.
func (r *request) canAsk(types ...interrupt.Facility) (outOfBand bool, missing interrupt.Facility) {
	for _, t := range types {
		if slices.Contains(r.call.Facilities, t) {
			continue
		}
		if !slices.Contains(r.call.Facilities, interrupt.FacilityOutOfBand) {
			return false, t
		}
		outOfBand = true
	}
	return outOfBand, ""
}

// canShow reports whether the call's host can show the last round: it has the facilities, and its
// face finds that the whole prompt fits its wire (R13, R34). The error is ErrConfirmationRequired.
func (r *request) canShow(in *checkpoint.Interaction) (outOfBand bool, _ *Error) {
	var types []interrupt.Facility
	for _, q := range in.Last().Questions {
		types = append(types, facility(q))
	}
	outOfBand, missing := r.canAsk(types...)
	if missing != "" {
		return false, r.needsPerson(missing)
	}
	if outOfBand || r.opts.Fits == nil {
		return outOfBand, nil
	}
	err := safely(func() error { return r.opts.Fits(r.gate.prompt(in, r.tool)) })
	switch {
	case err == nil:
		return false, nil
	case slices.Contains(r.call.Facilities, interrupt.FacilityOutOfBand):
		return true, nil
	}
	return false, r.needsPerson("").because(hideInterrupts(err))
}

// needsPerson tells the tool's guidance or, without one, which facility is missing; "": the face
// cannot carry the prompt.
func (r *request) needsPerson(missing interrupt.Facility) *Error {
	message := r.tool.opts.Guidance
	switch {
	case message != "":
	case missing == "":
		message = "a person has to be asked, and this host cannot show the question as it stands"
	default:
		message = fmt.Sprintf("a person has to be asked, and this host does not have the facility %.64q", missing)
	}
	e := fail(ErrConfirmationRequired, "%s", message)
	e.Link, e.Missing = r.tool.opts.Link, missing
	return e
}

// facilities as the run keeps them.
func (r *request) facilities() []string {
	names := make([]string, len(r.call.Facilities))
	for i, f := range r.call.Facilities {
		names[i] = string(f)
	}
	return names
}
