// Package scripted is a chat model that follows a script, for tests, benchmarks and examples: no
// network, and after a restart it goes on where the conversation stands.
package scripted
