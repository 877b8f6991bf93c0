package gatetest

import "github.com/parley-go/parley/gate"

// comeAgain sends a request again to the process that comes after one that died. Where an attempt
// was made that is not an ordinary one any more, that is the end of the story (R27).
func (p *play) comeAgain(call gate.Call) reply {
	p.restart()
	r, recovered := p.again(call)
	p.settled = recovered || r.code() == gate.ErrOutcomeUnknown || r.code() == gate.ErrAlreadyCompleted
	return r
}

// again sends a request again. Where that ran the tool in recovery it looks how that ended.
func (p *play) again(call gate.Call) (r reply, recovered bool) {
	before := len(p.ledger.runs())
	r = p.send(call)
	runs := p.ledger.runs()
	recovered = len(runs) > before && p.recovery(runs[len(runs)-1])
	if recovered {
		p.checkRecovery(r)
	}
	return r, recovered
}

func (p *play) checkRecovery(r reply) {
	switch code := r.code(); {
	case code == gate.ErrRecoveryOnly:
		p.report("in recovery the tool asks; there it may only finish what was begun, or fail (R27)")
	case code == gate.ErrInvalidQuestion:
		p.report("in recovery the tool ends with %s", r)
	case r.err != nil:
	case len(p.left) > 0:
		p.report("recovery ends with %s before the person has answered everything: "+
			"it has to look at what it resumes with, and to fail where nothing was begun", r)
	case p.script.Code.Decision():
		p.report("recovery ends with %s, though the person's answer was %s: it has to look at what it resumes with", r, p.script.Code)
	default:
		p.checkResult(r)
	}
}
