package session_test

// Events of the largest size, made to cost as much as they can.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// allocatedMax is what folding one event may allocate: some tens of times what
// it may weigh.
const allocatedMax = 48 << 20

// costlyTools is a registry of n tools with one schema.
func costlyTools(n int, schema string) []byte {
	tools := make([]string, n)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"tool_id":"x.t%d","tool_name":"t%[1]d","args_schema":%s,"executor":{"kind":"effect","target":"x"}}`, i, schema)
	}
	return []byte(`{"type":"ToolRegistrySet","data":{"tools":[` + strings.Join(tools, ",") + `]}}`)
}

// numberedPatterns is the properties of a schema, n of them with a pattern.
func numberedPatterns(n int) string {
	properties := make([]string, n)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"p%d":{"pattern":"^\\pL{%d}$"}`, i, 1+i%400)
	}
	return `"properties":{` + strings.Join(properties, ",") + `}`
}

// Anyone with a door may publish these events, as often as they like, and all
// sessions of a host share its memory.
func TestHostileEvents(t *testing.T) { //nolint:paralleltest // it measures what is allocated in the process
	text := func(b []byte) []byte { return append([]byte{0xa0 | byte(len(b))}, b...) }
	array := func(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)) }
	packed := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	named := func(name string) []byte { return text([]byte(name)) }
	input := func(content []byte) []byte {
		return packed([]byte{0x82}, named("data"), []byte{0x81}, named("input"), content, named("type"), named(session.TypeRunRequested))
	}
	const n = 780_000
	nested := packed([]byte{0x81}, named("parts"), array(n), bytes.Repeat([]byte{0x80}, n))
	for range 20 {
		nested = packed([]byte{0x81}, named("parts"), []byte{0x91}, nested)
	}
	var facts bytes.Buffer
	for i := range 60_000 {
		fmt.Fprintf(&facts, `,"%05x":""`, i)
	}
	for name, c := range map[string]struct {
		door    session.Door
		payload []byte
		want    error
	}{
		"parts that are empty":  {session.DoorIn, input(packed([]byte{0x81}, named("parts"), array(n), bytes.Repeat([]byte{0x80}, n))), session.RejectLimitExceeded},
		"parts inside parts":    {session.DoorIn, input(nested), session.RejectLimitExceeded},
		"parts in JSON":         {session.DoorIn, fmt.Appendf(nil, `{"type":"RunRequested","data":{"input":{"parts":[{}%s]}}}`, bytes.Repeat([]byte(",{}"), n/3)), session.RejectLimitExceeded},
		"names that are empty":  {session.DoorIn, fmt.Appendf(nil, `{"type":"RunRequested","data":{"input":{"text":"a"},"config":{"provider":"p","model":"m","active_tools":[""%s]}}}`, bytes.Repeat([]byte(`,""`), n/3-60)), session.RejectLimitExceeded},
		"facts without a value": {session.DoorCtl, fmt.Appendf(nil, `{"type":"FactsSet","data":{"facts":{%s}}}`, facts.Bytes()[1:]), session.RejectLimitExceeded},
		"objects in objects":    {session.DoorIn, append(bytes.Repeat([]byte(`{"a":`), n/5), '1'), session.RejectUndecodable},
		"calls that are empty":  {session.DoorLLM, packed([]byte{0x82}, named("data"), []byte{0x82}, named("calls"), array(n-50), bytes.Repeat([]byte{0x80}, n-50), named("effect"), named("r1t1"), named("type"), named(session.TypeToolCallsObserved)), nil},
		"an output in parts":    {session.DoorTool, packed([]byte{0x82}, named("data"), []byte{0x82}, named("effect"), named("r1t1c0"), named("output"), nested, named("type"), named(session.TypeToolCallSettled)), nil},
		"rules that are empty":  {session.DoorIn, packed([]byte{0x82}, named("data"), []byte{0x82}, named("config"), []byte{0x83}, named("model"), named("m"), named("provider"), named("p"), named("steps"), array(n-100), bytes.Repeat([]byte{0x80}, n-100), named("input"), []byte{0x81}, named("text"), named("a"), named("type"), named(session.TypeRunRequested)), session.RejectLimitExceeded},
		"rules of a session":    {session.DoorCtl, packed([]byte{0x82}, named("data"), []byte{0x83}, named("model"), named("m"), named("provider"), named("p"), named("steps"), array(n-100), bytes.Repeat([]byte{0x80}, n-100), named("type"), named(session.TypeSessionConfigured)), session.RejectLimitExceeded},
		"rules of a profile":    {session.DoorCtl, packed([]byte{0x82}, named("data"), []byte{0x82}, named("profiles"), []byte{0x92, 0xc0, 0x83}, named("profile"), named("p"), named("steps"), array(n-100), bytes.Repeat([]byte{0x80}, n-100), named("tools"), []byte{0x90}, named("tools"), []byte{0x90}, named("type"), named(session.TypeToolRegistrySet)), session.RejectInvalidRegistry},
		"roles that are empty":  {session.DoorIn, fmt.Appendf(nil, `{"type":"RunRequested","data":{"input":{"text":"a"},"roles":[""%s]}}`, bytes.Repeat([]byte(`,""`), n/3-60)), session.RejectLimitExceeded},
		"refs that are short":   {session.DoorIn, fmt.Appendf(nil, `{"type":"RunRequested","data":{"input":{"text":"a"},"config":{"provider":"p","model":"m","tool_refs":[""%s]}}}`, bytes.Repeat([]byte(`,""`), n/3-60)), session.RejectInvalidData},
		"tools that are empty":  {session.DoorCtl, packed([]byte{0x82}, named("data"), []byte{0x81}, named("tools"), array(n-50), bytes.Repeat([]byte{0x80}, n-50), named("type"), named(session.TypeToolRegistrySet)), session.RejectInvalidData},
		"profiles that are":     {session.DoorCtl, packed([]byte{0x82}, named("data"), []byte{0x82}, named("profiles"), array(n-50), bytes.Repeat([]byte{0x80}, n-50), named("tools"), []byte{0x90}, named("type"), named(session.TypeToolRegistrySet)), session.RejectInvalidData},
		"lists that are empty":  {session.DoorCtl, fmt.Appendf(nil, `{"type":"ToolOverridesSet","data":{"scope":"session","force":[""%s]}}`, bytes.Repeat([]byte(`,""`), n/3-60)), session.RejectLimitExceeded},
		"results of nothing":    {session.DoorTool, packed([]byte{0x82}, named("data"), []byte{0x83}, named("batch"), named("r1t1"), named("plan_hash"), named("x"), named("results"), array(n-50), bytes.Repeat([]byte{0x80}, n-50), named("type"), named(session.TypeToolBatchSettled)), session.RejectLimitExceeded},
		"results in parts":      {session.DoorTool, packed([]byte{0x82}, named("data"), []byte{0x83}, named("batch"), named("r1t1"), named("plan_hash"), named("x"), named("results"), []byte{0x91, 0x83}, named("effect"), named("r1t1c0"), named("output"), nested, named("status"), named("failed"), named("type"), named(session.TypeToolBatchSettled)), session.RejectLimitExceeded},
		"patterns of a schema":  {session.DoorCtl, costlyTools(1, "{"+numberedPatterns(1200)+"}"), session.RejectInvalidRegistry},
		"patterns of tools":     {session.DoorCtl, costlyTools(500, `{"pattern":"^\\pL{100}$"}`), session.RejectInvalidRegistry},
		"tools of a hook":       {session.DoorStep, fmt.Appendf(nil, `{"type":"StepPrepared","data":{"effect":"r1t1s","status":"ok","active_tools":[""%s]}}`, bytes.Repeat([]byte(`,""`), n/3-60)), nil},
	} {
		w := ready(t)
		if c.door == session.DoorStep {
			w = hooked(t, nil, nil)
		}
		if c.door == session.DoorTool {
			w.calls("r1t1", made(1, "stat", `{"path":"a"}`))
		}
		if len(c.payload) > session.EventBytesMax {
			t.Fatalf("%s: %d bytes are refused for their number", name, len(c.payload))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := w.state.Evolve(session.Event{Session: "s1", Door: c.door, Seq: 100, Time: w.time, Payload: c.payload})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > allocatedMax {
			t.Errorf("%s: folding %d bytes allocated %d MiB, want at most %d", name, len(c.payload), got>>20, allocatedMax>>20)
		}
	}
}
