// Package durable gives files their names so that a crash leaves a whole file under a name or none,
// and so that what was made is still there after one.
package durable
