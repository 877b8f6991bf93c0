// Package watch wakes those who wait for a record to change, inside one process.
package watch
