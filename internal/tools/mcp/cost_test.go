package mcp

// Servers whose lists would cost more than a registry may: one tool alone, and
// all of them together.

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAttackSchemasOfServer does not run in parallel: it counts allocations of
// the whole process.
func TestAttackSchemasOfServer(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	const allocatedMax = 64 << 20
	for name, c := range map[string]struct{ schema, want string }{
		"a long name above many schemas": {
			`{"properties":{"` + strings.Repeat("n", 30_000) + `":{"anyOf":[` + strings.TrimSuffix(strings.Repeat("{},", 3000), ",") + `]}}}`, "JSON pointers",
		},
		"large patterns": {
			`{"properties":{` + numbered(1000, `"p%d":{"pattern":"^\\pL{400}$"}`) + `}}`, "bytes compiled, at most",
		},
		"more text than a schema may have": {
			`{"description":"` + strings.Repeat("a", 1<<20) + `"}`, "bytes as JSON, at most",
		},
	} {
		listed := []*sdk.Tool{{Name: "a", InputSchema: parsed(t, c.schema)}, {Name: "b", InputSchema: parsed(t, schemaText)}}
		var tools []*Tool
		var problems []*Problem
		if got := allocated(func() { tools, problems = find("peer", &Server{}, "host", listed, nil) }); got > allocatedMax {
			t.Errorf("%s: allocated %d bytes, want at most %d", name, got, allocatedMax)
		}
		if len(tools) != 1 || tools[0].Name != "b" || len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%s: %d tools, problems %.200v; want tool b alone and a problem that says %q", name, len(tools), problems, c.want)
		}
	}
	var listed []*sdk.Tool
	for i := range 200 {
		listed = append(listed, &sdk.Tool{Name: fmt.Sprintf("t%d", i), InputSchema: parsed(t, `{"pattern":"^\\pL{200}$"}`)})
	}
	tools, problems := find("peer", &Server{}, "host", listed, nil)
	weight := 0
	for _, tool := range tools {
		weight += tool.Function.Weight()
	}
	one := tools[0].Function.Weight()
	if weight > weightMax+one || weight < weightMax/2 || len(tools)+len(problems) != len(listed) || len(problems) == 0 {
		t.Errorf("%d tools that take %d bytes, and %d problems, of %d tools; want about %d bytes", len(tools), weight, len(problems), len(listed), weightMax)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// numbered returns n items with their numbers, joined by commas.
func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

// parsed returns what a JSON text holds.
func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(text), &v))
	return v
}
