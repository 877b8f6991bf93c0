// Package gate enforces the rules of an interaction: the same for every face, on every store.
//
// A [Tool]'s handler asks a person by returning a typed error (package interrupt). [Face.Invoke]
// runs it, makes the question durable, and returns it as a [Prompt] with a [Token]. Whoever put the
// prompt to a person comes again with the token and the answers: they are checked against the
// stored question, recorded, and only then does the handler run again, with the verified answer in
// its context.
//
//	g, err := gate.Open(ctx, store, &gate.Options{Tools: []*gate.Tool{deploy}, Keys: keys})
//	call := gate.Call{Tool: "deploy", Arguments: args, Scope: user, Session: s, Facilities: can}
//	outcome, err := g.Invoke(ctx, call)
//	if p := outcome.Prompt; p != nil {
//		// put p.Questions to the person, then the same call again with p.Token and the answers
//	}
//
// What it promises, with the rule's number where a test names it:
//
//   - A prompt is durable before anybody sees it, an answer before the handler runs (R25).
//   - A token is good for one round of one interaction, for the scope, session, face, tool,
//     revision and arguments it was made for, until its deadline. Anything else gets the same
//     refusal, changes nothing and uses nothing up (R20, R21).
//   - An answer is checked strictly and recorded whole or not at all; an invalid one leaves the
//     question open (R15–R18).
//   - The same answer again leads to where the interaction stands; another one is a conflict (R26,
//     R28). After an attempt was made the handler never runs again as if nothing had been, unless
//     the tool said that this is safe (R27).
//   - Progress is advice: no mistake of a handler or a host in it changes how a call ends (R35).
//   - A step of [interrupt.Once] that is finished is not repeated; one that was begun and may have
//     had its effect is told (R4).
//   - What runs is what was approved (R9). Nothing is ever answered on a person's behalf but what
//     they wanted remembered, for exactly that and until it expires or is revoked (R19).
//
// The table behind this, row by row, with what a crash leaves, is docs/transitions.md;
// transition.go is that table as code. External effects are the application's: the gate does not
// make them exactly-once, it tells when they may already exist.
package gate
