//go:build !unix

package boltstore_test

import "testing"

func makePipe(t *testing.T, _ string) { t.Skip("there are no pipes in a directory there") }
