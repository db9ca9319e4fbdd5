package session_test

// Speed of the fold on the demo's history, as bridges write it: canonical
// msgpack, decoded, chained and folded from the first event on. Run with
//
//	go test -run xxx -bench . ./actors/session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// demoHistory is what the built-in demo leaves in the log: open a host
// session, read and search in one group, patch, test, answer.
func demoHistory(tb testing.TB) []session.Event {
	tb.Helper()
	var history []session.Event
	add := func(door session.Door, typ string, data any) {
		raw, err := codec.Marshal(data)
		if err != nil {
			tb.Fatal(err)
		}
		payload, err := codec.Marshal(session.Envelope{Type: typ, Data: raw, V: session.Version})
		if err != nil {
			tb.Fatal(err)
		}
		n := len(history)
		history = append(history, session.Event{Session: "demo", Door: door, Seq: uint64(n + 2), Time: 1_000_000 + int64(n)*50, Payload: payload})
	}
	calls := func(effect string, observed ...session.ObservedCall) {
		add(session.DoorLLM, session.TypeToolCallsObserved, session.ToolCallsObserved{
			Calls: observed, Effect: effect, Model: "scripted", Usage: &session.Usage{InputTokens: 900, OutputTokens: 60},
		})
	}
	settle := func(effect, output string, host *session.HostSession) {
		add(session.DoorTool, session.TypeToolCallSettled, session.ToolCallSettled{
			DurationMS: 3, Effect: effect, HostSession: host, Output: &session.Content{Text: output}, Status: "succeeded",
		})
	}
	add(session.DoorIn, session.TypeRunRequested, session.RunRequested{
		Config: &session.RunConfig{Provider: "scripted", Model: "demo"}, Input: session.Content{Text: "The tests fail. Find out why and repair it."},
	})
	calls("r1t1", session.ObservedCall{Arguments: "{}", ToolName: "open_session"})
	settle("r1t1c0", "opened", &session.HostSession{ID: "demo", Status: "ready", Route: "01J"})
	calls("r1t2",
		session.ObservedCall{Arguments: `{"path":"sum.go"}`, ToolName: "read_file"},
		session.ObservedCall{Arguments: `{"pattern":"func Sum","path":"."}`, ToolName: "grep"},
		session.ObservedCall{Arguments: `{}`, ToolName: "list_dir"})
	settle("r1t2c1", "sum.go:7:func Sum(values []int) int {", nil)
	settle("r1t2c0", strings.Repeat("	total += value // add it up\n", 20), nil)
	settle("r1t2c2", "go.mod\nsum.go\nsum_test.go\n", nil)
	calls("r1t3", session.ObservedCall{Arguments: `{"patch":"*** Begin Patch\n*** Update File: sum.go\n@@\n-\tfor i := 1; i < len(values); i++ {\n+\tfor i := range values {\n*** End Patch"}`, ToolName: "apply_patch"})
	settle("r1t3c0", "updated sum.go", nil)
	calls("r1t4", session.ObservedCall{Arguments: `{"command":"go test ./..."}`, ToolName: "shell"})
	settle("r1t4c0", "exit status 0\nok  	example.com/sum	0.003s\n", nil)
	add(session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{
		Effect: "r1t5", FinishReason: "stop", Status: "ok", Text: &session.Content{Text: "The loop began at 1 and left the first value out. It is repaired, and the tests pass."},
	})
	return history
}

// checkDemo makes sure that what is measured is what the demo does: every event
// is taken, every call runs.
func checkDemo(tb testing.TB, install *session.Install, history []session.Event) {
	tb.Helper()
	s := session.New(install, "demo")
	for _, e := range history {
		notices, err := s.Evolve(e)
		if err != nil {
			tb.Fatalf("event %d: %v", e.Seq, err)
		}
		for _, n := range notices {
			if n.Type == session.NoticeToolRejected {
				tb.Fatalf("event %d: %s", e.Seq, n.JSON())
			}
		}
	}
	if s.Last == nil || s.Last.Lifecycle != session.Completed {
		tb.Fatalf("the demo's history doesn't complete its run: %+v", s.Last)
	}
}

func BenchmarkFold(b *testing.B) { benchmarkFold(b, builtin(b)) }

// BenchmarkFoldWithWorkspace folds the same history in sessions whose install
// record brings a workspace with a prompt, context and a catalog.
func BenchmarkFoldWithWorkspace(b *testing.B) {
	ref := codec.RefOf([]byte("x")).String()
	file := func(path string) any {
		return map[string]any{"path": path, "ref": ref, "size": 1, "media_type": "text/markdown"}
	}
	spaces := []any{map[string]any{"space": "support", "manifest": map[string]any{
		"v": 1, "kind": "workspace", "space": "support", "files": []any{file("a.md"), file("b.md")},
		"prompts": []any{map[string]any{"prompt_pack": "default", "parts": []any{
			map[string]any{"file": 0, "vars": map[string]any{"session": 1, "fact.region": 1}}, map[string]any{"context": "docs"},
		}}},
		"context":  []any{map[string]any{"group": "docs", "files": []any{1}}},
		"catalogs": []any{map[string]any{"tool_catalog": "default", "tools": []any{"open_session", "read_file", "grep", "list_dir", "apply_patch", "shell"}}},
	}}}
	benchmarkFold(b, builtinWith(b, map[string]any{"spaces": spaces}))
}

// builtinWith is the built-in install record with more fields.
func builtinWith(tb testing.TB, more map[string]any) *session.Install {
	tb.Helper()
	var record map[string]any
	text, err := codec.ToJSON(session.BuiltinInstall())
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		tb.Fatal(err)
	}
	install, err := session.ParseInstall(asJSON(tb, merged(record, more)))
	if err != nil {
		tb.Fatal(err)
	}
	return install
}

func benchmarkFold(b *testing.B, install *session.Install) {
	b.Helper()
	history := demoHistory(b)
	checkDemo(b, install, history)
	b.ReportAllocs()
	for b.Loop() {
		session.Fold(install, "demo", slices.Values(history))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(history)), "ns/event")
}

// fiftyTurns is a session of 50 turns with a call each.
func fiftyTurns(tb testing.TB) *session.State {
	tb.Helper()
	install := builtin(tb)
	s := session.New(install, "s1")
	seq := uint64(1)
	fold := func(door session.Door, typ string, data any) {
		tb.Helper()
		d, payload := say(door, typ, data)
		seq++
		if _, err := s.Evolve(session.Event{Session: "s1", Door: d, Seq: seq, Time: int64(seq), Payload: payload}); err != nil {
			tb.Fatal(err)
		}
	}
	fold(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"})
	fold(session.DoorIn, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "p", "model": "m"},
	})
	for turn := 1; turn < 50; turn++ {
		name := fmt.Sprintf("r1t%d", turn)
		fold(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
			"effect": name, "calls": []any{map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}},
		})
		fold(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": name + "c0", "status": "succeeded"})
	}
	return s
}

func BenchmarkSnapshot(b *testing.B) {
	s := fiftyTurns(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Snapshot()
	}
}

func BenchmarkRestore(b *testing.B) {
	s := fiftyTurns(b)
	snap, install := s.Snapshot(), s.InstallRecord()
	for b.Loop() {
		if _, err := session.Restore(snap, given(install)); err != nil {
			b.Fatal(err)
		}
	}
}
