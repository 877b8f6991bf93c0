package resume

import "context"

type fallbackKey struct{}

// AnswerFallback returns a context in which the answers that come with a call are those to a
// question that was put as a fallback, or are not. The gate records it with them, and what a
// handler calls does not inherit it.
func AnswerFallback(ctx context.Context, is bool) context.Context {
	if ToFallback(ctx) == is {
		return ctx
	}
	return context.WithValue(ctx, fallbackKey{}, is)
}

// ToFallback reports whether answers in the context are those to a fallback.
func ToFallback(ctx context.Context) bool {
	is, _ := ctx.Value(fallbackKey{}).(bool)
	return is
}
