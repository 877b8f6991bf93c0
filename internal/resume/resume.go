package resume

import (
	"context"
	"slices"
	"sync"
)

// A Question is one recorded question with its verified answer.
type Question struct {
	ID, Type, Key string
	Digest        [32]byte // of what the handler raised
	Body          []byte   // as shown
	Payload       []byte   // in canonical form, with its action
	Unreadable    bool     // it cannot be read back here, and answers nothing that is asked
}

// A Run is one run of a handler.
type Run struct {
	Round      int // the round whose answer is carried out; 0 for the first run
	Attempt    int
	Recovery   bool
	State      []byte // nil: none
	Questions  []Question
	Current    int  // Questions[Current:] are those of Round
	Fallback   bool // one of the answers was given to a question that was put as a fallback
	Facilities []string
	Steps      Steps
	// Report takes an update of the handler's progress, and reports false once the run has ended.
	Report func(ctx context.Context, u Update) bool

	mu    sync.Mutex
	ended bool
	asked bool
	taken []bool          // which of Questions were matched in this run
	keys  map[string]bool // which types and keys were asked in this run
}

type key struct{}

// With returns a context that carries the run; nil hides an outer one (R3).
func With(ctx context.Context, run *Run) context.Context { return context.WithValue(ctx, key{}, run) }

// From returns the run of the context, or nil.
func From(ctx context.Context) *Run {
	run, _ := ctx.Value(key{}).(*Run)
	return run
}

// End closes the run: what is asked on its context from now on fails. It reports whether a question
// was asked in it.
func (r *Run) End() (asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.asked
}

// What Take found.
type Found int

const (
	Ended Found = iota // the handler has returned
	New                // no recorded answer: the question is asked now
	Recorded
	Twice // the key was used before in this run
)

// Take finds the recorded question that is the one asked (R2): by type and key where it has a key,
// which a run uses once, else by type, digest and occurrence: the nth such question of a run is the
// nth such question on record.
func (r *Run) Take(typeName, key string, digest [32]byte) (Question, Found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return Question{}, Ended
	}
	if key != "" {
		if r.keys[typeName+"\x00"+key] {
			return Question{}, Twice
		}
		if r.keys == nil {
			r.keys = make(map[string]bool)
		}
		r.keys[typeName+"\x00"+key] = true
	}
	if r.taken == nil {
		r.taken = make([]bool, len(r.Questions))
	}
	for i, q := range r.Questions {
		if q.Type == typeName && q.Key == key && !r.taken[i] && !q.Unreadable && (key != "" || q.Digest == digest) {
			r.taken[i] = true
			return q, Recorded
		}
	}
	r.asked = true
	return Question{}, New
}

// Supports reports whether the call can show questions of that facility.
func (r *Run) Supports(facility string) bool { return slices.Contains(r.Facilities, facility) }
