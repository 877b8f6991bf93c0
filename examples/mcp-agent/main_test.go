package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the server of examples/mcp-server asks in four rounds goes to the agent's person, in both
// protocols, and so does a no.
func TestServerAsksTheAgentsPerson(t *testing.T) {
	server := filepath.Join(t.TempDir(), "mcp-server")
	if out, err := exec.Command("go", "build", "-o", server, "../mcp-server").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		for name, tc := range map[string]struct {
			tool, arguments string
			person          []string
			asked           []string
			end             string
		}{
			"four rounds": {
				"onboard", `{"name":"Bob"}`,
				[]string{`{"decision":"allow_once"}`, `{"choice":"1"}`, `{"desk":1200}`, `{"choice":"1"}`, `{"desk":12}`, `{"tools":["badge"]}`, ""},
				[]string{"The MCP server asks: Take Bob on", "The MCP server asks: onboard asks", "The MCP server asks: Where does Bob sit?",
					"The MCP server asks: What does Bob need?", "The MCP server asks: Sign the contract of Bob.\nhttps://example.com/contracts"},
				`{"name":"Bob","team":"product","desk":12,"tools":["badge"]}`,
			},
			"a no": {
				"deploy", `{"service":"api","version":"2"}`, []string{"no"},
				[]string{"The MCP server asks: Deploy api 2 to production"}, "declined",
			},
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				if protocol == "2025-11-25" && name == "four rounds" { // the server asks one question after the other
					tc.person = []string{tc.person[0], tc.person[1], `{"desk":1200}`, `{"desk":12}`, tc.person[5], ""}
				}
				dir := t.TempDir()
				var out bytes.Buffer
				o := options{protocol: protocol, tool: tc.tool, arguments: tc.arguments, server: []string{
					server, "-db", filepath.Join(dir, "ledger.db"), "-key", filepath.Join(dir, "tokens.key"),
				}}
				if err := run(t.Context(), o, strings.NewReader(strings.Join(tc.person, "\n")+"\n"), &out); err != nil {
					t.Fatalf("%v\n%s", err, &out)
				}
				rest := out.String()
				for _, part := range append(tc.asked, tc.tool+": ", tc.end) {
					_, after, ok := strings.Cut(rest, part)
					if !ok {
						t.Fatalf("want %q in %s", part, rest)
					}
					rest = after
				}
			})
		}
	}
}
