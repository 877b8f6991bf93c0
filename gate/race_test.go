//go:build race

package gate_test

func init() { raceDetector = true }
