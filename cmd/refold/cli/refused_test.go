package cli

// Lines of `refold run` and `refold tail` about calls that were not run.

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestRefusedCallSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const again = "; what to do: the tool differs from the imported one: review it (refold bridge doctor), import it again (refold tools import), and start its bridge again"
	for _, c := range []struct {
		code, detail, want string
	}{
		{"tool_unknown", "no ls", "refused ls r1t2c0: tool_unknown: no ls"},
		{"tool_unknown", "no\nls", "refused ls r1t2c0: tool_unknown: no ls"}, // on one line
		{"tool_unbound", "", "refused ls r1t2c0: tool_unbound"},
		{"tool_changed", "its schema", "refused ls r1t2c0: tool_changed: its schema" + again},
		{"tool_gone", "", "refused ls r1t2c0: tool_gone" + again},
		{"tool_not_pinned", "", "refused ls r1t2c0: tool_not_pinned" + again},
		{
			"tool_not_served", "no",
			"refused ls r1t2c0: tool_not_served: no; what to do: start the program that has the tool, or take it out of the registry (refold tools check)",
		},
		{
			"service_refused", "",
			"refused ls r1t2c0: service_refused; what to do: correct the service's metadata, then import it again (refold tools import services)",
		},
	} {
		data, err := json.Marshal(session.ToolRejected{Effect: "r1t2c0", ToolName: "ls", Code: c.code, Detail: c.detail})
		bustest.OK(t, err)
		n := client.Notice{Type: session.NoticeToolRejected, Data: data}
		var out strings.Builder
		(&following{out: &out, run: 1}).note(n)
		(&following{out: &out, run: 2}).note(n) // of another run: nothing
		if got, want := out.String(), c.want+"\n"; got != want {
			t.Errorf("run: got %q, want %q", got, want)
		}
		if got := about(n); got != c.want {
			t.Errorf("tail: got %q, want %q", got, c.want)
		}
	}
}
