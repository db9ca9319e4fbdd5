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
		code, detail, run, tail string
	}{
		{"tool_unknown", "no ls", "refused: ls: tool_unknown: no ls\n", `{"effect":"r1t2c0","tool_name":"ls","code":"tool_unknown","detail":"no ls"}`},
		{"tool_unbound", "", "refused: ls: tool_unbound\n", "r1t2c0 ls: tool_unbound"},
		{"tool_changed", "its schema", "refused: ls: tool_changed: its schema" + again + "\n", "r1t2c0 ls: tool_changed: its schema" + again},
		{"tool_gone", "", "refused: ls: tool_gone" + again + "\n", "r1t2c0 ls: tool_gone" + again},
		{"tool_not_pinned", "", "refused: ls: tool_not_pinned" + again + "\n", "r1t2c0 ls: tool_not_pinned" + again},
		{
			"tool_not_served", "no", "refused: ls: tool_not_served: no; what to do: start the program that has the tool, or take it out of the registry (refold tools check)\n",
			"r1t2c0 ls: tool_not_served: no; what to do: start the program that has the tool, or take it out of the registry (refold tools check)",
		},
		{
			"service_refused", "", "refused: ls: service_refused; what to do: correct the service's metadata, then import it again (refold tools import services)\n",
			"r1t2c0 ls: service_refused; what to do: correct the service's metadata, then import it again (refold tools import services)",
		},
	} {
		data, err := json.Marshal(session.ToolRejected{Effect: "r1t2c0", ToolName: "ls", Code: c.code, Detail: c.detail})
		bustest.OK(t, err)
		n := client.Notice{Type: session.NoticeToolRejected, Data: data}
		var out strings.Builder
		(&following{out: &out, run: 1}).note(n)
		(&following{out: &out, run: 2}).note(n) // of another run: nothing
		if got := out.String(); got != c.run {
			t.Errorf("run: got %q, want %q", got, c.run)
		}
		if got := about(n); got != c.tail {
			t.Errorf("tail: got %q, want %q", got, c.tail)
		}
	}
}
