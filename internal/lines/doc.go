// Package lines reads a stream of lines for a library that reads it as it comes, and lets each
// line be looked at, and put in another form, before that.
package lines
