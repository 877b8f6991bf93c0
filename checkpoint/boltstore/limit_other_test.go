//go:build !unix

package boltstore_test

import "errors"

func limitFiles(string) error { return errors.ErrUnsupported }
