//go:build race

package agent_test

func init() { slowed = true }
