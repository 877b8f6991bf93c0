package mcpbridge_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpbridge "github.com/parley-go/parley/bridge/mcp"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

var protocols = []string{modern, legacy, oldest}

// R1, R9: a permission reaches a person in every protocol, with the arguments, and only a yes runs
// the tool.
func TestPermission(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			var effects counter
			s := memSite(t, nil, deploy(&effects, nil))
			yes := answering("accept:" + allow)
			wantText(t, call(t, connect(t, s, version, yes), "deploy", `{"service":"api"}`), "deployed api")
			yes.want(t, 1)
			effects.want(t, 1)
			if m := yes.messages(); !contains(m, "Deploy api to production") || !contains(m, `"service": "api"`) {
				t.Errorf("message %q", m)
			}
			for answer, code := range map[string]gate.Code{
				"accept:" + reject: gate.ErrRejected, "decline": gate.ErrDeclined, "cancel": gate.ErrCancelled,
			} {
				wantEnding(t, call(t, connect(t, s, version, answering(answer)), "deploy", `{"service":"api"}`), code)
			}
			effects.want(t, 1)
		})
	}
}

// R29, R18: several rounds, with every kind of question, and several questions in one.
func TestEveryKind(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			s := memSite(t, nil, everyKind(), twoAtOnce())
			p := answering("accept:"+allow, `accept:{"choice":"1"}`,
				`accept:{"name":"Ann","sure":false,"count":3,"tags":["a","c"]}`, "accept")
			if version == modern { // the SDK's client inserts the default before it sends
				p.answers[2] = `accept:{"name":"Ann","sure":false,"count":3,"tags":["a","c"],"level":"lo"}`
			}
			result := call(t, connect(t, s, version, p), "every_kind", `{}`)
			p.want(t, 4)
			wantText(t, result, `{"choice":"south","form":{"count":3,"level":"lo","name":"Ann","sure":false,"tags":["a","c"]}}`)

			p = &person{}
			cs := connect(t, s, version, nil, func(o *mcp.ClientOptions) {
				o.Capabilities, o.ElicitationHandler = both(), p.elicitByKind
			})
			wantText(t, call(t, cs, "two_at_once", `{}`), `a {"why":"so so"}`)
		})
	}
}

// R33, R36: a call for which there is no room can come again; nothing of it is kept.
func TestNoRoom(t *testing.T) {
	for _, version := range protocols {
		var effects counter
		tool := deploy(&effects, nil)
		g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}, Capacity: gate.Capacity{Open: 1}})
		s := newSite(t, g, nil, tool)
		call(t, connect(t, s, modern, &person{}, byHand), "deploy", `{"service":"api"}`)
		p := answering("accept:" + allow)
		_, err := connect(t, s, version, p).CallTool(t.Context(), with("deploy", `{"service":"db"}`, "", nil))
		if data := wantError(t, err, mcpbridge.CodeUnavailable, gate.ErrBusy); !data.Retryable {
			t.Error("the same later helps")
		}
		p.want(t, 0)
	}
}

// R31: a start ID is for one piece of work; the same call finds its question again.
func TestStartID(t *testing.T) {
	var effects counter
	tool := deploy(&effects, nil)
	g := openGate(t, memstore.New(), gate.Options{Tools: []*gate.Tool{tool}})
	s := newSite(t, g, &mcpbridge.Options{Authorize: func(context.Context, mcpbridge.Request) (mcpbridge.Grant, error) {
		return mcpbridge.Grant{Scope: "ann", StartID: "work"}, nil
	}}, tool)
	cs := connect(t, s, modern, &person{}, byHand)
	first, again := call(t, cs, "deploy", `{"service":"api"}`), call(t, cs, "deploy", `{"service":"api"}`)
	key, _ := only(t, first)
	if same, _ := only(t, again); same != key || first.RequestState != again.RequestState {
		t.Errorf("asked as %q and then as %q", key, same)
	}
	_, err := cs.CallTool(t.Context(), with("deploy", `{"service":"db"}`, "", nil))
	wantError(t, err, mcpbridge.CodeInvalidContinuation, gate.ErrStartConflict)
	wantText(t, send(t, cs, with("deploy", `{"service":"api"}`, again.RequestState, mcp.InputResponseMap{key: accept(allow)})), "deployed api")
	effects.want(t, 1)
}
