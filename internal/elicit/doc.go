// Package elicit is what the elicitations of MCP and ACP have in common: the schema of a form, the
// words for what an answer is remembered for, and how an answer is read.
package elicit
