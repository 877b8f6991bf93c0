package gate

import (
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// This file is docs/transitions.md as code: which row an event is, and what record that row
// commits. It does no I/O, reads no clock and calls nothing of the application's. The rows are
// named in the comments; change the page first.

// What happens after the commit of a move, if it has one.
type then int

const (
	refuse      then = iota // the caller gets the move's code
	showPrompt              // the open prompt and its token
	runHandler              // an ordinary attempt
	runRecovery             // an attempt in recovery
	tellResult              // the kept result
	confirm                 // an answer from another road is recorded
)

// A move is one row: what is committed, and what happens then.
type move struct {
	next *checkpoint.Interaction // nil: nothing is committed
	then then
	code Code // of refuse
}

// needsClaim reports whether the row is one for which the interaction is claimed within the process
// (check 7). Rows that tell of a dead claim are: only under the claim is it sure that no run is
// going on here.
func (m move) needsClaim() bool {
	return m.then == runHandler || m.then == runRecovery || m.code == ErrOutcomeUnknown
}

// usesTool reports whether the row shows a prompt or runs code, so that the tool's revision matters
// (check 5).
func (m move) usesTool() bool {
	return m.then == showPrompt || m.then == runHandler || m.then == runRecovery
}

// An arrival is a request that passed the checks, with what the transition must know of the world
// around the record.
type arrival struct {
	round     int                // of the token; 0: by start ID
	answer    *checkpoint.Answer // verified against the question; nil: none
	mint      *checkpoint.Mint   // a new one for the open round (P1m); nil: the recorded one is good
	held      bool               // the record's claim is held (see "claim")
	replay    Replay
	owner     string
	now       time.Time
	lookAgain time.Time // when a sweep looks at a claim made now
}

// overdue is check 5: whether a request for that round (0: by start ID) comes after a deadline.
func overdue(in *checkpoint.Interaction, round int, now time.Time) bool {
	if in.Status == checkpoint.Expired {
		return true
	}
	if round > 0 && past(in.Rounds[round-1].Deadline, now) {
		return true
	}
	return waiting(in.Status) && past(in.Last().Deadline, now)
}

// waiting: the interaction waits for a person or for the caller, and expires.
func waiting(s checkpoint.Status) bool { return s == checkpoint.Open || s == checkpoint.Answered }

func past(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// arrive is what a request on an existing interaction leads to. It comes after overdue: a round
// without an answer is the open one.
func arrive(in *checkpoint.Interaction, a arrival) move {
	if a.answer != nil {
		switch recorded := in.Rounds[a.round-1].Answer; {
		case recorded == nil: // N1, N3
			next := advance(in, a.now)
			next.Last().Answer = a.answer
			if !a.answer.Elsewhere {
				return claim(next, a, runHandler)
			}
			next.Status = checkpoint.Answered
			return move{next: next, then: confirm}
		case recorded.Digest == a.answer.Digest && a.answer.Elsewhere: // N4
			return move{then: confirm}
		case recorded.Digest == a.answer.Digest: // as if the answer had not come along
		case recorded.Elsewhere && !a.answer.Elsewhere: // N5
			return move{then: refuse, code: ErrAlreadyAnswered}
		default: // N5
			return move{then: refuse, code: ErrAnswerConflict}
		}
	}
	switch in.Status {
	case checkpoint.Tombstone: // T1
		return move{then: refuse, code: remains(in)}
	case checkpoint.Open: // P1, P2, P3
		if a.mint == nil {
			return move{then: showPrompt}
		}
		next := advance(in, a.now) // P1m
		next.Last().Mint = *a.mint
		return move{next: next, then: showPrompt}
	case checkpoint.Answered: // N2
		return claim(advance(in, a.now), a, runHandler)
	case checkpoint.Started, checkpoint.Running:
		if a.held { // C1
			return move{then: refuse, code: ErrBusy}
		}
	}
	return again(in, a)
}

// again is R27: an attempt was made for the recorded answer, or for the first run.
func again(in *checkpoint.Interaction, a arrival) move {
	finished := in.Status == checkpoint.Finished
	switch {
	case finished && Code(in.Ending.Code).Decision(): // E2: a no began nothing that could be recovered
		return move{then: refuse, code: ErrAlreadyCompleted}
	case finished && in.Ending.Code == "" && in.Ending.Result != nil: // E1
		return move{then: tellResult}
	case a.replay == Recover: // A1
		return claim(advance(in, a.now), a, runRecovery)
	case finished: // E2
		return move{then: refuse, code: ErrAlreadyCompleted}
	case a.replay == Repeatable: // A2
		return claim(advance(in, a.now), a, runHandler)
	default: // E3, A3
		return move{then: refuse, code: ErrOutcomeUnknown}
	}
}

// remains is T1: what a tombstone tells of what was there.
func remains(in *checkpoint.Interaction) Code {
	switch in.Remains.Status {
	case checkpoint.Finished:
		return ErrAlreadyCompleted
	case checkpoint.Expired:
		return ErrExpired
	default:
		return ErrOutcomeUnknown
	}
}

// start is F2: the record that a start ID makes before the first run.
func start(in *checkpoint.Interaction, a arrival) move {
	next := advance(in, a.now)
	next.Created = next.Updated
	return claim(next, a, runHandler)
}

// claim makes next the owner's, for one more attempt at its last round.
func claim(next *checkpoint.Interaction, a arrival, then then) move {
	next.Status = checkpoint.Running
	if len(next.Rounds) == 0 {
		next.Status = checkpoint.Started
	}
	next.Claim = checkpoint.Claim{Owner: a.owner, Epoch: next.Claim.Epoch + 1, Attempt: next.Claim.Attempt + 1}
	next.Due = a.lookAgain
	leave(next)
	return move{next: next, then: then}
}

// leave gives the join hash up: nobody can join any more.
func leave(next *checkpoint.Interaction) {
	if !next.Join.IsZero() {
		next.Start = checkpoint.Hash{}
	}
}

// ask is H1: the handler's prompt becomes the open round. Its deadline is what the gate, the tool
// and the questions allow from now on, and never later than that of the round before (R30).
func ask(in *checkpoint.Interaction, round checkpoint.Round, now time.Time) *checkpoint.Interaction {
	next := advance(in, now)
	if last := next.Last(); last != nil {
		round.Deadline = earlier(round.Deadline, last.Deadline)
	}
	next.Rounds = append(next.Rounds, round)
	next.Status = checkpoint.Open
	next.Claim = checkpoint.Claim{Epoch: in.Claim.Epoch}
	next.Due = round.Deadline
	if !next.Join.IsZero() {
		next.Start = next.Join
	}
	return next
}

// askAnswered is H9: the round that ask made is answered by remembered decisions, and the next
// attempt is claimed, in the same commit.
func askAnswered(next *checkpoint.Interaction, answer *checkpoint.Answer, a arrival) *checkpoint.Interaction {
	next = next.Clone()
	next.Last().Answer = answer
	return claim(next, a, runHandler).next
}

// end is H2 to H7: the attempt came to its end.
func end(in *checkpoint.Interaction, ending checkpoint.Ending, now time.Time, retention time.Duration) *checkpoint.Interaction {
	next := advance(in, now)
	ending.Time = next.Updated
	next.Ending = &ending
	if code := Code(ending.Code); code == "" || code.Decision() { // H2, H3
		next.Status = checkpoint.Finished
	} else { // H4 to H7
		next.Status = checkpoint.Failed
	}
	return retire(next, retention)
}

// expire is X1: open or answered, and the deadline passed.
func expire(in *checkpoint.Interaction, now time.Time, retention time.Duration) *checkpoint.Interaction {
	next := advance(in, now)
	next.Status = checkpoint.Expired
	return retire(next, retention)
}

// abandon is X3: a claim that is dead and was not taken over.
func abandon(in *checkpoint.Interaction, now time.Time, retention time.Duration) *checkpoint.Interaction {
	next := advance(in, now)
	next.Status = checkpoint.Abandoned
	next.Claim.Epoch++
	return retire(next, retention)
}

// retire gives up the claim and sets when the record may be removed (X4).
func retire(next *checkpoint.Interaction, retention time.Duration) *checkpoint.Interaction {
	next.Claim.Owner = ""
	next.Due = time.Time{}
	if retention != NoExpiry {
		next.Due = next.Updated.Add(retention)
	}
	leave(next)
	return next
}

// bury is X4 for an interaction with a start ID: what is left of it until due. digest is that of
// its arguments.
func bury(in *checkpoint.Interaction, digest checkpoint.Hash, now, due time.Time) *checkpoint.Interaction {
	next := advance(in, now)
	next.Status = checkpoint.Tombstone
	next.Due = due
	next.Arguments, next.Rounds = nil, nil
	next.Remains = &checkpoint.Remains{Status: in.Status, Digest: digest}
	if in.Ending != nil {
		next.Ending = &checkpoint.Ending{Code: in.Ending.Code, Time: in.Ending.Time}
	}
	return next
}

// buryUnread is X6: as bury, of an interaction of which nothing but the plain fields can be read.
func buryUnread(r checkpoint.Record, now, due time.Time) *checkpoint.Interaction {
	return &checkpoint.Interaction{
		ID: r.ID, Revision: r.Revision + 1, Status: checkpoint.Tombstone, Scope: r.Scope, Start: r.Start, Created: now, Updated: now,
		Due: due, Claim: checkpoint.Claim{Epoch: r.Claim.Epoch + 1}, Remains: &checkpoint.Remains{},
	}
}

// advance is what every write has in common.
func advance(in *checkpoint.Interaction, now time.Time) *checkpoint.Interaction {
	next := in.Clone()
	next.Revision++
	next.Updated = now
	return next
}

// earlier returns the earlier of two deadlines, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
