package refold

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Tools that are added to an agent are offered, whatever its config names.
func TestAgentWithMoreTools(t *testing.T) {
	t.Parallel()
	tool := func(name string) string {
		return `{"tool_id":"x.` + name + `","tool_name":"` + name + `","description":"","args_schema":{"type":"object"},"executor":{"kind":"reply"},"availability":[{"kind":"always"}],"access":"read"}`
	}
	const model = `{"provider":"p","model":"m"`
	for config, registry := range map[string]string{
		model + `}`:                          `{"tools":[` + tool("own") + `]}`,
		model + `,"active_tools":["x.own"]}`: `{"tools":[` + tool("own") + `]}`,
		model + `,"profile":"a"}`:            `{"tools":[` + tool("own") + `],"profiles":[{"profile":"a","tools":["x.own"]},{"profile":"b","tools":[]}]}`,
	} {
		a := &Agent{name: "a", config: json.RawMessage(config), tools: json.RawMessage(registry)}
		more, left, err := a.with([]json.RawMessage{json.RawMessage(tool("own")), json.RawMessage(tool("new"))})
		if err != nil || !slices.Equal(left, []string{"own"}) {
			t.Errorf("%s: left %q, %v", config, left, err)
			continue
		}
		if n := strings.Count(string(more.tools), `"tool_id"`); n != 2 || more.hash == "" {
			t.Errorf("%s: %d tools, hash %q: %s", config, n, more.hash, more.tools)
		}
		named := strings.Contains(string(more.config), `["x.own","x.new"]`) || strings.Contains(string(more.tools), `"tools":["x.own","x.new"]`)
		if wants := strings.Contains(config, "active") || strings.Contains(config, "profile"); named != wants {
			t.Errorf("%s: got the config %s and the registry %s", config, more.config, more.tools)
		}
	}
}
