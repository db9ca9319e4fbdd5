package session_test

// A session at its limits: every list full, every text as long as it may be.
// It must still encode, restore, be shown, and ask for effects that fit.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// submissionsHeldMax is how many submissions a state may hold.
const submissionsHeldMax = 2 * session.SubmissionsMax

// long returns a text of n bytes that begins with prefix.
func long(prefix string, n int) string { return prefix + strings.Repeat("x", n-len(prefix)) }

// largestInstall has as many tools as a registry may, with the longest names,
// and resource keys that are the longest too.
func largestInstall(t testing.TB) *session.Install {
	t.Helper()
	tools := make([]any, planner.ToolsMax)
	for i := range tools {
		tools[i] = map[string]any{
			"tool_id": long(fmt.Sprintf("t%03d", i), planner.ToolIDBytesMax), "tool_name": long(fmt.Sprintf("t%03d", i), planner.NameBytesMax),
			"args_schema": map[string]any{"type": "object"}, "executor": map[string]any{"kind": "effect", "target": long("e", planner.NameBytesMax)},
			"parallel_safe": true, "resource_key": long("k", 128) + ":{key}", "deadline_ms": session.DeadlineMaxMS / 2,
		}
	}
	record, err := codec.FromJSON(asJSON(t, map[string]any{"v": 1, "rules": 1, "tools": tools}))
	if err != nil {
		t.Fatal(err)
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// largestConfig is a config of the largest size that is taken.
func largestConfig(install *session.Install) map[string]any {
	ids := make([]string, session.NamesMax)
	for i := range ids {
		ids[i] = install.Registry.Tools()[i].ToolID
	}
	return map[string]any{
		"provider": long("p", 64), "model": long("m", session.NameBytesMax), "tool_choice": install.Registry.Tools()[0].ToolName,
		"system": long("s", session.SystemBytesMax), "params": map[string]any{"p": long("p", session.ParamsBytesMax-8)},
		"response_format": map[string]any{"type": "json_schema", "schema": map[string]any{"s": long("s", session.FormatBytesMax-64)}},
		"active_tools":    ids, "enable": ids, "force": ids, "turns_max": session.TurnsMax,
		"deadlines_ms": map[string]any{"turn": session.DeadlineMaxMS, "call": session.DeadlineMaxMS},
		"steps": []any{
			map[string]any{"when": "false", "system": long("s", planner.StepSystemBytesMax)}, map[string]any{"when": "false", "system": long("s", planner.StepSystemBytesMax-1<<10)},
		},
		"step_hook": map[string]any{"hook": long("h", 64), "deadline_ms": session.DeadlineMaxMS, "fallback": "rules"},
	}
}

// largestAnswer is what a hook may say at most.
func largestAnswer(install *session.Install) map[string]any {
	ids := make([]string, planner.StepToolsMax)
	for i := range ids {
		ids[i] = install.Registry.Tools()[i].ToolID
	}
	return map[string]any{
		"active_tools": ids, "context": map[string]any{"c": long("c", planner.StepContextBytesMax-8)}, "model": long("m", planner.StepModelBytesMax),
		"params": map[string]any{"p": long("p", planner.StepParamsBytesMax-8)}, "system": long("s", planner.StepSystemBytesMax), "tool_choice": ids[0],
	}
}

func TestFullSession(t *testing.T) {
	t.Parallel()
	install := largestInstall(t)
	w := toldUnder(t, install)
	w.time = 1 << 41
	large := largestConfig(install)
	fillFacts(w)
	fillWakes(w)
	fillSubmissions(w, submissionsHeldMax-session.QueueMax-1)
	w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, merged(large, map[string]any{"queue_max": session.QueueMax})))
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{
		"scope": "session", "enable": large["enable"], "force": large["force"], "disable": []any{},
	}))
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, request(submissionsHeldMax-1, large)))
	step := w.state.Open()[0]
	fits(t, w)
	w.prepared(step.Name, largestAnswer(install))
	generation := w.state.Open()[0]
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": "run", "disable": large["enable"].([]string)[session.CallsMax:]}))
	fillQueue(w, large)
	fillBatch(w, generation.Name)

	s := w.state
	for what, distance := range map[string]int{
		"ids": len(s.IDs) - session.IDsMax, "submissions": len(s.Submissions) - submissionsHeldMax, "facts": len(s.Facts) - session.FactsMax,
		"queued runs": len(s.Queue) - session.QueueMax, "wakes": len(s.Wakes) - session.WakesMax, "calls": len(s.Turn.Batch.Calls) - session.CallsMax,
		"open effects": len(s.Open()) - session.CallsMax - session.WakesMax, "excess": s.Turn.Batch.Excess - session.CallsSeenMax + session.CallsMax,
	} {
		if distance != 0 {
			t.Errorf("%s: %+d from the limit", what, distance)
		}
	}
	fits(t, w, step, generation)
	if n := len(s.Bytes()); n < session.StateBytesMax/2 {
		t.Errorf("the state has %d bytes, want at least half of %d, or this is no test of the limit", n, session.StateBytesMax)
	}
	refusesMore(w, large)

	// The last result overflows the transcript: this run ends, and every queued
	// one in turn, in one event. Its bytes pass nine tenths, too.
	var notices []session.Notice
	for i := range session.CallsMax {
		var err error
		if notices, err = w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{
			"effect": fmt.Sprintf("%sc%d", generation.Name, i), "status": "succeeded",
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := len(notices), 1+2*session.QueueMax+1; got != want {
		t.Errorf("the last result made %d notices, want %d", got, want)
	}
	if s.Run != nil || len(s.Queue) > 0 || s.Last.Code != session.CodeTranscriptFull {
		t.Errorf("got run %v, %d queued, the last ended %s: want the transcript to be full for all", s.Run, len(s.Queue), s.Last.Code)
	}
	fits(t, w, generation)
}

// fits checks that the state encodes, restores and shows itself within the
// limits, and that every effect does.
func fits(t *testing.T, w *told, effects ...session.Effect) {
	t.Helper()
	s := w.state
	state := s.Bytes()
	if len(state) > session.StateBytesMax {
		t.Errorf("the state has %d bytes, want at most %d", len(state), session.StateBytesMax)
	}
	for _, e := range append(effects, s.Open()...) {
		if len(e.Payload) > session.EffectBytesMax {
			t.Errorf("%s has %d bytes, want at most %d", e.Name, len(e.Payload), session.EffectBytesMax)
		}
	}
	v := s.View()
	v.Overrides = nil // lists are what a host leaves out of a view that is no message
	for i := range v.Queue {
		v.Queue[i].Overrides = nil
	}
	if v.Run != nil {
		v.Run.Overrides = nil
	}
	if view := len(asJSON(t, v)); view > session.NoticeBytesMax {
		t.Errorf("the view has %d bytes, want at most %d: it is one message", view, session.NoticeBytesMax)
	}
	snap, err := session.ParseSnapshot(s.Snapshot().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := session.Restore(snap, given(s.InstallRecord()))
	if err != nil {
		t.Fatal(err)
	}
	if restored.Hash() != s.Hash() {
		t.Error("restored to other bytes")
	}
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// merged returns both objects as one.
func merged(a, b map[string]any) map[string]any {
	m := map[string]any{}
	for _, from := range []map[string]any{a, b} {
		for name, value := range from {
			m[name] = value
		}
	}
	return m
}

// request is a RunRequested with the nth submission.
func request(n int, config map[string]any) map[string]any {
	roles := make([]any, session.RolesMax)
	for i := range roles {
		roles[i] = long("r", session.RoleBytesMax)
	}
	return map[string]any{
		"input": map[string]any{"text": "a"}, "config": config, "submission": long(fmt.Sprintf("s%05d", n), session.IDBytesMax), "roles": roles,
	}
}

func fillFacts(w *told) {
	w.t.Helper()
	facts := map[string]any{}
	for i := range session.FactsMax {
		facts[long(fmt.Sprintf("f%02d", i), session.FactNameBytesMax)] = long("v", session.FactValueBytesMax)
	}
	w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": facts}))
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready", "id": long("h", session.HostIDBytesMax)}))
}

// fillWakes runs what has an earlier deadline each time, so that each needs a
// wake of its own; one more than there may be.
func fillWakes(w *told) {
	w.t.Helper()
	for i := range session.WakesMax + 1 {
		w.run(map[string]any{"deadlines_ms": map[string]any{"turn": session.DeadlineMaxMS - i*1000}})
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": fmt.Sprintf("r%dt1", i+1), "status": "ok"}))
	}
}

// fillSubmissions asks for n runs that fail at once, and leaves room in the transcript
// for one more run.
func fillSubmissions(w *told, n int) {
	w.t.Helper()
	before := int(w.state.Runs)
	fold := func(door session.Door, payload []byte) {
		w.t.Helper()
		w.seq++
		if _, err := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: w.time, Payload: payload}); err != nil {
			w.t.Fatalf("event %d: %v", w.seq, err)
		}
	}
	for i := range n {
		context := ""
		if len(w.state.Items)+n-i > session.ItemsMax-session.QueueMax {
			context = `,"context":{"summary":{"off":true}}`
		}
		fold(session.DoorCtl, fmt.Appendf(nil, `{"id":%q,"type":"RunRequested","data":{"input":{"text":"a"},"submission":%q,"config":{"provider":"p","model":"m","active_tools":[]%s}}}`,
			long(fmt.Sprintf("i%05d", i), session.IDBytesMax), long(fmt.Sprintf("s%05d", i), session.IDBytesMax), context))
		fold(session.DoorLLM, fmt.Appendf(nil, `{"type":"GenerationSettled","data":{"effect":"r%dt1","status":"failed","error":{"code":"no"}}}`, before+i+1))
	}
}

// fillQueue fills the queue's places, and its bytes as far as whole configs do.
func fillQueue(w *told, large map[string]any) {
	w.t.Helper()
	small := map[string]any{"provider": "p", "model": "m", "steps": []any{}} // else they have the session's
	for i := range session.QueueMax {
		config := small
		if i < 2 {
			config = large
		}
		w.must(w.tell(session.DoorCtl, session.TypeRunRequested, request(submissionsHeldMax-2-i, config)))
	}
}

// fillBatch settles a generation with as many calls as an answer may hold, of
// which as many run as may, with as much in their arguments as an event holds.
func fillBatch(w *told, generation string) {
	w.t.Helper()
	reg := w.state.InstallRecord().Registry
	calls := make([]any, session.CallsSeenMax)
	for i := range calls {
		calls[i] = map[string]any{"tool_name": "", "arguments": ""}
		if i < session.CallsMax {
			arguments := asJSON(w.t, map[string]any{"key": long(fmt.Sprintf("%02d", i), planner.KeyBytesMax-129), "pad": long("", 10_200)})
			calls[i] = map[string]any{
				"tool_name": reg.Tools()[i].ToolName, "arguments": string(arguments), "provider_call_id": long("id", session.ByBytesMax),
			}
		}
	}
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": generation, "calls": calls}))
}

// refusesMore: what is full takes nothing more, and says so.
func refusesMore(w *told, large map[string]any) {
	w.t.Helper()
	for _, c := range []struct {
		typ  string
		data any
		want session.Rejection
	}{
		{session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "a"}}, session.RejectQueueFull},
		{session.TypeFactsSet, map[string]any{"facts": map[string]any{"new": "x"}}, session.RejectLimitExceeded},
	} {
		if _, err := w.tell(session.DoorCtl, c.typ, c.data); !errors.Is(err, c.want) {
			w.t.Errorf("%s: got %v, want %v", c.typ, err, c.want)
		}
	}
	again := request(submissionsHeldMax-session.QueueMax-2, map[string]any{"provider": "p", "model": "m", "active_tools": []any{}})
	delete(again, "roles")
	if _, err := w.tell(session.DoorCtl, session.TypeRunRequested, again); err != nil {
		w.t.Errorf("a submission taken before: got %v, want a no-op", err)
	}
}

// TestFullTranscript fills a transcript with the longest possible results, up to
// the last generation that still fits.
func TestFullTranscript(t *testing.T) {
	t.Parallel()
	install := largestInstall(t)
	w := toldUnder(t, install)
	large := merged(largestConfig(install), map[string]any{"turns_max": 1000})
	delete(large, "step_hook") // so that each answer is followed by a turn
	w.run(large)
	var last session.Effect
	var sizes []int
	for w.state.Run != nil {
		last = w.state.Open()[0]
		sizes = append(sizes, len(last.Payload))
		if len(last.Payload) > session.EffectBytesMax {
			t.Fatalf("%s has %d bytes, want at most %d", last.Name, len(last.Payload), session.EffectBytesMax)
		}
		n := session.CallsSeenMax
		if len(w.state.Items) > 3*session.CallsSeenMax {
			n = session.CallsMax
		}
		calls := make([]any, n)
		for i := range calls {
			calls[i] = map[string]any{"tool_name": strings.Repeat("\x01", 600), "arguments": ""}
		}
		w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": last.Name, "calls": calls}))
	}
	fits(t, w)
	if w.state.Last.Code != session.CodeTranscriptFull {
		t.Errorf("the run ended %s, want %s", w.state.Last.Code, session.CodeTranscriptFull)
	}
	if n := sizes[len(sizes)-1]; n < session.EffectBytesMax*3/4 {
		t.Errorf("the last generation has %d bytes, want at least three quarters of %d, or this is no test of the limit", n, session.EffectBytesMax)
	}

	// A full transcript takes nothing more, however many runs are asked for.
	items, size := len(w.state.Items), len(w.state.Bytes())
	for range 100 {
		w.run(nil)
	}
	if got := len(w.state.Items); got != items {
		t.Errorf("100 runs on a full transcript left %d items, want %d", got, items)
	}
	if got := len(w.state.Bytes()); got > size+64 {
		t.Errorf("100 runs on a full transcript left %d bytes, want %d", got, size)
	}
}
