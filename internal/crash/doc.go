// Package crash drives a child process that answers requests line by line, and that is killed while
// it does. It is for tests that hold a durable promise against SIGKILL: what the child acknowledged
// before its death must be there after it.
package crash
