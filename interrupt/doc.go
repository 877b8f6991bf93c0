// Package interrupt is what a tool's handler raises when it needs a person, and what the person
// answers.
//
// A handler asks by returning an error that is an [Interrupt]: a permission ([ToolPermission]), a
// choice ([UserSelection]), a form ([Form]) or a page to open ([URL]), or a registered type of the
// application's own. [Ask] is the ordinary way:
//
//	func deploy(ctx context.Context, in DeployInput) (DeployOutput, error) {
//		ask := interrupt.ToolPermission("deploy", "Deploy "+in.Service+" to production")
//		if _, err := interrupt.Ask(ctx, ask); err != nil {
//			return DeployOutput{}, err
//		}
//		return ship(ctx, in) // reached only after a person allowed exactly this call
//	}
//
// On the first run Ask returns the question, and the handler returns it. Whoever runs the handler
// (package gate, or any program that looks with errors.As) puts it to a person and, when the answer
// is there, runs the handler again from the top; then Ask returns the answered question. So what
// stands before an Ask runs more than once, and has to bear that, or is a step of [Once], which is
// recorded and not repeated.
//
// # Answers
//
// An answer is a JSON object. Every type's may hold "interruptId" and "action" (accept, decline or
// cancel; absent means accept), which are therefore reserved names; an accepted one holds what the
// type needs:
//
//	tool_permission   {"optionId": "allow_once"}
//	user_selection    {"selectionIdx": 0}
//	form              {"content": {"service": "api"}}
//	url               {}
//
// Answers are read strictly: no duplicate or unknown members, no coercion, no default ever
// inserted, nothing missing read as a yes or as the first. What is wrong is a [*PayloadError] with
// its place, and changes nothing.
//
// # Progress
//
// A handler that takes long tells how far it is with [Progress]. Nothing hangs on it.
//
// # Forms of a struct
//
// [FormFor] makes a form of a struct: the fields and their tags say what is asked, and
// [FormOf.Value] returns the answer as one. What a form cannot ask for is an error of the question,
// with the field's name.
//
// # Types of the application's own
//
// Implement Interrupt on a pointer, and [Register] it at init under a name that never changes.
// Optional behaviour is a small interface each: [Validator], [PayloadValidator],
// [PayloadInitializer], [Keyed], [Limited], [Rejecter].
//
// A host can show the four kinds. A type that is a [Presenter] is shown as one of them, and turns
// the answer to that into its own; without it, only a face that knows the type can show it.
//
// Questions outlive a release. A type that changes what it serializes counts its versions
// ([Versioned]) and reads the former ones ([Upgrader]); one that changes its name keeps the former
// ones known ([Renamed]). A question that cannot be read back is quarantined, never dropped. Keep a
// file of each version, and a test that reads it.
//
// # Questions that are data
//
// A tool that is described by data asks with [RaiseInterrupt]: a registered name and a payload from
// which the type makes the question ([PayloadInitializer]).
package interrupt
