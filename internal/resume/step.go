package resume

import "context"

// A Step is one step of a run: what the handler gave its function a key for.
type Step struct {
	Key   string
	ID    string
	State State
	// Result is what was recorded of a step that is Done, as JSON.
	Result []byte
}

// A State is what is recorded of a step.
type State int

// The states.
const (
	Nothing State = iota
	Begun         // the start mark, and no result
	Done
)

// Steps records the steps of one run (R4). Its errors are fit to be returned to the handler.
type Steps interface {
	// Open looks the step up. Where it returns no error the key is taken until Close.
	Open(ctx context.Context, key string) (Step, error)
	// Begin commits the start mark. The step may be run only where it returns nil.
	Begin(ctx context.Context, step Step) error
	// Finish commits the result.
	Finish(ctx context.Context, step Step, result []byte) error
	// Close gives the key free.
	Close(step Step)
}

type stepKey struct{}

type inside struct {
	run *Run
	key string
}

// Inside returns the context with which the function of a step runs.
func Inside(ctx context.Context, step Step) context.Context {
	return context.WithValue(ctx, stepKey{}, inside{From(ctx), step.Key})
}

// StepOf returns the key of the step inside which ctx is used, or "". A run inside the step has
// steps of its own.
func StepOf(ctx context.Context) string {
	if in, ok := ctx.Value(stepKey{}).(inside); ok && in.run == From(ctx) {
		return in.key
	}
	return ""
}
