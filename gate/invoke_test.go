package gate_test

import (
	"testing"

	"github.com/parley-go/parley/gate"
)

func TestAskAnswerFinish(t *testing.T) {
	var effects counter
	g := openMem(t, deploy(&effects, nil))
	c := call("deploy", `{"service":"api"}`)
	p := mustAsk(t, g, c)
	effects.want(t, 0)
	if string(p.Arguments) != `{"service":"api"}` {
		t.Errorf("arguments shown: %s", p.Arguments)
	}
	mustFinish(t, g, with(c, p, allow), `"deployed api"`)
	effects.want(t, 1)
	mustFail(t, g, with(c, p, allow), gate.ErrAlreadyCompleted)
	mustFail(t, g, with(c, p, reject), gate.ErrAnswerConflict)
	effects.want(t, 1)
}
