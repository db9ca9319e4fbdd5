package host

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TestHostServesTheBuiltinRegistry: the host carries out exactly the tools of
// the built-in registry, with exactly the arguments that it describes.
func TestHostServesTheBuiltinRegistry(t *testing.T) {
	t.Parallel()
	takes := map[string]any{
		ToolSessionOpen: openArguments{}, ToolSessionClose: struct{}{}, ToolExec: execArguments{},
		ToolReadFile: readFileArguments{}, ToolStat: pathArguments{}, ToolExists: pathArguments{},
		ToolGrep: grepArguments{}, ToolGlob: globArguments{}, ToolListDir: listDirArguments{},
		ToolWriteFile: writeFileArguments{}, ToolEditFile: editFileArguments{}, ToolApplyPatch: applyPatchArguments{},
	}
	var ids []string
	for _, spec := range planner.Builtin().Tools {
		if spec.Executor.Target != "host" {
			continue
		}
		ids = append(ids, spec.ToolID)
		text, err := codec.ToJSON(spec.ArgsSchema)
		must(t, err)
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		must(t, json.Unmarshal(text, &schema))
		if takes[spec.ToolID] == nil {
			t.Errorf("%s: the host has no such tool", spec.ToolID)
			continue
		}
		var all, required []string
		for f := range fields(takes[spec.ToolID]) {
			name, optional := argument(f)
			all = append(all, name)
			if !optional {
				required = append(required, name)
			}
		}
		slices.Sort(all)
		slices.Sort(required)
		slices.Sort(schema.Required)
		if want := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(all, want) {
			t.Errorf("%s: takes %q, and the registry describes %q", spec.ToolID, all, want)
		}
		if !slices.Equal(required, schema.Required) {
			t.Errorf("%s: requires %q, and the registry says %q", spec.ToolID, required, schema.Required)
		}
	}
	slices.Sort(ids)
	if got := ToolIDs(); !slices.Equal(got, ids) {
		t.Errorf("the host has %q, the registry %q", got, ids)
	}
	if got := slices.Sorted(maps.Keys(takes)); !slices.Equal(got, ToolIDs()) {
		t.Errorf("this test knows %q, the host has %q", got, ToolIDs())
	}
}

func fields(v any) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range reflect.TypeOf(v).NumField() {
			if !yield(reflect.TypeOf(v).Field(i)) {
				return
			}
		}
	}
}
