package planner_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// fuzzRegistries are registries with all that one can have, as JSON.
var fuzzRegistries = []string{
	`{"tools":[]}`,
	`{"tools":[{"tool_id":"x.a","tool_name":"a","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"}}]}`,
	`{"default_profile":"p","profile_by_provider":{"OpenAI":"p"},"profiles":[{"profile":"p","tools":["x.a","b"],"steps":[{"when":"step > 0 && used(\"a\")","active_tools":["a"],"context":{"n":1},"params":{"t":0.5},"tool_choice":"a"}]}],
	"tools":[
	 {"tool_id":"x.a","tool_name":"a","description":"A.","access":"read","parallel_safe":true,"retry_safe":true,"resource_key":"fs:{path}","resource_kind":"path","requires":["c"],"deadline_ms":5,
	  "availability":[{"kind":"fact","name":"f","equals":"v"},{"kind":"host_session_ready"}],"approval":"args.path == 'x'","executor":{"kind":"effect","target":"x"},
	  "args_schema":{"type":"object","properties":{"path":{"type":"string","pattern":"^\\pL{1,9}$"}},"patternProperties":{"^x-":{"$ref":"#/properties/path"}}},
	  "alternates":[{"tool_name":"other","args_schema":{"anyOf":[{"$ref":"#/const"}],"const":{"not":{}}}}]},
	 {"tool_id":"x.b","tool_name":"b","args_schema":{"$defs":{"~":{"enum":[1,"1"]}},"properties":{"l":{"items":{"$ref":"#/$defs/~0"},"uniqueItems":true}}},"executor":{"kind":"host_loop","target":"y"},"approval":"always"}
	]}`,
	`{"tools":[{"tool_id":"x.a","tool_name":"a","args_schema":{"properties":{"a":{"pattern":"^\\pL{400}$"},"b":{"pattern":"(?i)[\\pL\\pN]{99}"}}},"executor":{"kind":"effect","target":"x"}}]}`,
	`{"tools":[{"tool_id":"x.a","tool_name":"a","args_schema":{"not":{"not":{"not":{}}},"allOf":[{"$ref":"#/not/not"},{"$ref":"#/not"}]},"approval":"calls.all(c, c == 1)","executor":{"kind":"effect","target":"x"}}]}`,
}

// fuzzAllocMax is what a registry allocates at most, for each byte that it has
// and at all.
const (
	fuzzAllocMax     = 64 << 20
	fuzzAllocByteMax = 32 << 10
)

// FuzzRegistry: a registry of any bytes is read or refused without a panic,
// repeatably, and with memory bounded by its length; an accepted one can be
// written and read again, and has a weight.
func FuzzRegistry(f *testing.F) {
	for _, text := range fuzzRegistries {
		packed, err := codec.FromJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
		f.Add([]byte(packed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		canonical, err := codec.Canonicalize(data)
		if err != nil {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reg, err := planner.ParseRegistry(canonical)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > fuzzAllocMax+fuzzAllocByteMax*uint64(len(canonical)) {
			t.Fatalf("%d bytes allocated for %d of a registry", took, len(canonical))
		}
		again, errAgain := planner.ParseRegistry(canonical)
		if err != nil {
			if errAgain == nil || err.Error() != errAgain.Error() {
				t.Fatalf("read twice: %v, then %v", err, errAgain)
			}
			return
		}
		if errAgain != nil || again.Hash() != reg.Hash() {
			t.Fatalf("read twice: %s, then %v", reg.Hash(), errAgain)
		}
		if written, err := planner.ParseRegistry(reg.Bytes()); err != nil || !bytes.Equal(written.Bytes(), reg.Bytes()) {
			t.Fatalf("what it wrote is read as another: %v", err)
		}
		if reg.Weight() < len(reg.Bytes()) {
			t.Fatalf("%d bytes weigh %d", len(reg.Bytes()), reg.Weight())
		}
		floor := planner.NewFloor(reg)
		if bad := floor.Check(reg, reg.Tools()); bad != nil {
			t.Fatalf("it is bound more loosely than itself: %v", bad)
		}
		ts := planner.Select(reg, planner.Request{}, planner.Facts{Floor: floor})
		checker := planner.Checker{Floor: floor, Root: "/w"}
		var plan []planner.PlanCall
		for i := range min(reg.Len(), 4) {
			call, _ := checker.Check(reg, &ts, planner.ObservedCall{ToolName: reg.Tools()[i].ToolName, Arguments: `{"path":"a/../b","l":[1,"1",1],"x-y":{}}`})
			plan = append(plan, call)
		}
		_ = planner.Schedule(plan)
	})
}
