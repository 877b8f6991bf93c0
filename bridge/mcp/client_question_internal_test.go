package mcpbridge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-go/parley/interrupt"
)

// Whatever a server asks becomes a question that can be shown, and says whose it is, or a failure.
func FuzzQuestion(f *testing.F) {
	h := NewClientHandler("the site", nil, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		var params mcp.ElicitParams
		if json.Unmarshal(data, &params) != nil {
			return
		}
		asked, err := h.question("key", &params)
		if err != nil {
			if _, ok := errors.AsType[*interrupt.Failure](err); !ok {
				t.Errorf("%s: %v", data, err)
			}
			return
		}
		switch q := asked.(type) {
		case *interrupt.FormInterrupt:
			if err := q.Validate(); err != nil || !strings.HasPrefix(q.Message, "the site asks: ") {
				t.Errorf("%s: form %q, %v", data, q.Message, err)
			}
		case *interrupt.URLInterrupt:
			if err := q.Validate(); err != nil || !strings.HasPrefix(q.Message, "the site asks: ") {
				t.Errorf("%s: page %q, %v", data, q.Message, err)
			}
		default:
			t.Errorf("%s: asked as %T", data, asked)
		}
	})
}
