package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// BenchmarkSchedule64 plans a full batch with conflicting reads, writes and
// commands, and hashes the plan.
func BenchmarkSchedule64(b *testing.B) {
	calls := make([]planner.PlanCall, 64)
	for i := range calls {
		calls[i] = planner.PlanCall{
			Access: planner.AccessRead, ParallelSafe: i%16 != 15, ToolID: "host.fs.read_file", ToolName: "read_file",
			Key: planner.Key{Bare: "host.fs", Part: fmt.Sprintf("internal/package/file%d.go", i%7)},
		}
		if i%3 == 0 {
			calls[i].Access = planner.AccessWrite
		}
	}
	b.Run("groups", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			planner.Schedule(calls)
		}
	})
	b.Run("hash", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			planner.Schedule(calls).Hash()
		}
	})
}

// BenchmarkSelect selects the tools of a turn.
func BenchmarkSelect(b *testing.B) {
	reg := builtin(b)
	req := planner.Request{Profile: "openai", Run: planner.Overrides{Disable: []string{"apply_patch"}, Force: []string{"edit_file"}}}
	facts := planner.Facts{HostSession: "ready"}
	b.ReportAllocs()
	for b.Loop() {
		planner.Select(reg, req, facts)
	}
}

// BenchmarkCheck checks one call: small arguments, and the largest.
func BenchmarkCheck(b *testing.B) {
	reg := builtin(b)
	ts := planner.Select(reg, planner.Request{}, planner.Facts{HostSession: "ready"})
	for name, arguments := range map[string]string{
		"small": `{"path":"internal/bus/connect.go","offset":10,"limit":200}`,
		"large": `{"path":"` + strings.Repeat("a", planner.ArgumentsBytesMax-11) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, why := planner.Check(reg, &ts, planner.ObservedCall{ToolName: "read_file", Arguments: arguments}); !why.OK() {
					b.Fatal(why)
				}
			}
		})
	}
}

// BenchmarkCheckWorst checks the most expensive arguments: it shows that no
// call can block a session for long.
func BenchmarkCheckWorst(b *testing.B) {
	for name, c := range map[string][2]string{
		"doubling": {
			`{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},{"properties":{"a":{"$ref":"#/$defs/n"}}}]}}}`,
			strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat("}", 60),
		},
		"values": {
			`{"additionalProperties":{"items":{"enum":[1,2,3]},"uniqueItems":true}}`,
			`{"a":[` + strings.Repeat("[],", 80_000) + `1]}`,
		},
		"pattern": {
			`{"additionalProperties":{"pattern":"^(([a-c]{1,9}){1,9}-?){1,10}$"}}`,
			`{"a":"` + strings.Repeat("abc", 5_000) + `"}`,
		},
		"unevaluated": {
			`{"additionalProperties":{"allOf":[{"allOf":[{"allOf":[{"contains":{"const":1}},{"contains":{"const":0}}]},{"contains":{"const":2}}]}],"unevaluatedItems":{"const":0}}}`,
			`{"a":[` + strings.Repeat("0,", 100_000) + `1,2]}`,
		},
	} {
		reg, ts, err := checker(b, c[0])
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				planner.Check(reg, &ts, planner.ObservedCall{ToolName: "tool", Arguments: c[1]})
			}
		})
	}
}

// BenchmarkNewRegistry makes the built-in registry, and one whose only schema
// has the maximal size.
func BenchmarkNewRegistry(b *testing.B) {
	def := planner.Builtin()
	b.Run("builtin", func(b *testing.B) {
		for b.Loop() {
			if _, err := def.Registry(); err != nil {
				b.Fatal(err)
			}
		}
	})
	wide := `{"properties":{`
	for i := range 2_000 {
		wide += fmt.Sprintf(`"p%d":{"type":"string"},`, i)
	}
	wide = strings.TrimSuffix(wide, ",") + `}}`
	for name, schema := range map[string]string{
		"wide":  wide,
		"terse": `{"allOf":[` + strings.TrimSuffix(strings.Repeat("true,", planner.SchemaNodesMax-2), ",") + `]}`,
		"deep":  strings.Repeat(`{"not":{"items":`, 30) + `{}` + strings.Repeat("}}", 30),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := checker(b, schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompose adds a workspace of 16 rewordings to the built-in registry,
// and composes with a layer of one tool.
func BenchmarkCompose(b *testing.B) {
	base, err := planner.Builtin().Registry()
	if err != nil {
		b.Fatal(err)
	}
	tools, bad := planner.PackTools([]planner.ToolSpec{{
		ToolID: "own.look", ToolName: "own_look", ArgsSchema: []byte{0x80}, Executor: planner.Executor{Kind: "effect", Target: "own"},
	}})
	if bad != nil {
		b.Fatal(bad)
	}
	own := planner.Layer{Name: "own", Tools: tools}
	words := planner.Layer{Name: "support"}
	for i := range min(16, base.Len()) {
		words.Words = append(words.Words, planner.Word{Tool: base.Tool(planner.ToolIndex(i)).ToolID, Description: "Other words."})
	}
	for name, layers := range map[string][]planner.Layer{"tool": {own}, "tool and 16 words": {own, words}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, bad := planner.Compose(base, layers); bad != nil {
					b.Fatal(bad)
				}
			}
		})
	}
}
