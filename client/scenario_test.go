package client_test

// An export is a scenario: the runner of the fold's own tests, here a short one,
// reads it and prints the same lines.

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// runScenario folds a scenario and compares what each step leaves.
func runScenario(t *testing.T, text string) (events int) {
	t.Helper()
	file, err := scenario.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if file.Format() != text {
		t.Error("the scenario is not what it parses to")
	}
	var state *session.State
	clock := int64(1_000_000)
	for _, step := range file.Steps {
		var before session.View
		if state != nil {
			before = state.View()
		}
		action, err := scenario.Read(step.Input, nil, before)
		if err != nil {
			t.Fatalf("line %d: %v", step.Line, err)
		}
		got := ""
		switch action.Kind {
		case scenario.KindInstall:
			install, err := session.ParseInstall(action.Payload)
			if err != nil {
				t.Fatalf("line %d: %v", step.Line, err)
			}
			state = session.New(install, "s1")
			got = fmt.Sprintf("%d tools, rules %d\n", install.Registry.Len(), install.Rules)
		case scenario.KindClock:
			clock += action.Clock
		case scenario.KindEvent:
			events++
			notices, _ := state.Evolve(session.Event{Session: "s1", Door: action.Door, Seq: uint64(events + 1), Time: clock, Payload: action.Payload})
			var said []scenario.Said
			for _, n := range notices {
				var s scenario.Said
				bustest.OK(t, json.Unmarshal(n.JSON(), &s))
				said = append(said, s)
			}
			got = scenario.Picture(before, state.View(), action.Settles, said)
		default:
			t.Fatalf("line %d: %q", step.Line, step.Input)
		}
		if got != step.Want {
			t.Errorf("line %d: %.200s\n--- folded again:\n%s--- exported:\n%s", step.Line, step.Input, got, step.Want)
		}
	}
	return events
}

func TestExportFoldsToSameState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := 0
	publish := func(door session.Door, payload []byte) {
		t.Helper()
		if _, err := w.Publish(w.ctx, door, "a-session", payload, ""); err != nil {
			t.Fatal(err)
		}
		events++
	}
	pack := func(typ string, body any) []byte {
		t.Helper()
		payload, err := packed(typ, body)
		bustest.OK(t, err)
		return payload
	}
	if _, err := w.Run(w.ctx, "a-session", "über \"alles\"\n\nzwei Zeilen", client.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	events++
	// JSON and msgpack, good and bad, in any spelling.
	publish(session.DoorIn, []byte("{ \"type\" :\n\"RunRequested\",\n\n\"data\": {\"input\":{\"text\":\"two\"}}}"))
	publish(session.DoorIn, pack(session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "three"}}))
	publish(session.DoorIn, []byte("{\"type\": \xff"))
	publish(session.DoorLLM, []byte{0xc1})
	publish(session.DoorIn, []byte(`{"type":"Nothing"}`))
	publish(session.DoorIn, []byte(`{"type":"RunRequested","data":{"input":{"text":"x"},"no_such_field":1}}`))
	publish(session.DoorIn, []byte(`{"type":"RunRequested","v":9}`))
	publish(session.DoorIn, []byte(``))
	publish(session.DoorIn, []byte(`7`))
	raw, err := hex.DecodeString("82a474797065ac52756e526571756573746564a464617461c4020102") // data: binary, which JSON has not
	bustest.OK(t, err)
	publish(session.DoorIn, raw)
	publish(session.DoorLLM, pack(session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t1", Calls: []session.ObservedCall{{ToolName: "no_such_tool", Arguments: "{}"}, {ToolName: "no such name", Arguments: "\n"}},
	}))
	publish(session.DoorLLM, pack(session.TypeGenerationSettled, session.GenerationSettled{
		Effect: "r1t2", Status: "failed", Error: &session.Fault{Code: "a_code", Detail: "one line"},
	}))
	publish(session.DoorWake, []byte(`{"type":"WakeSettled","data":{"effect":"w1"}}`))
	publish(session.DoorLLM, pack(session.TypeGenerationSettled, session.GenerationSettled{
		Effect: "r2t1", Status: "ok", Text: &session.Content{Text: strings.Repeat("\x01", 200_000)}, // too long as JSON
	}))
	text, err := w.Export(w.ctx, "a-session", 0)
	bustest.OK(t, err)
	if got := runScenario(t, text); got != events {
		t.Errorf("%d events were exported, want %d", got, events)
	}
	last, err := w.LastEvent(w.ctx)
	bustest.OK(t, err)
	part, err := w.Export(w.ctx, "a-session", last-2)
	if err != nil || !strings.HasPrefix(text, part) {
		t.Errorf("a part of it (%v) is not its beginning:\n%s", err, part)
	}
	if got := runScenario(t, part); got != events-2 {
		t.Errorf("%d events were exported in part, want %d", got, events-2)
	}
}

// A history that a scenario can't hold is refused: it would test something else.
func TestDamagedExportIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, detail := range []string{"one\ntwo", "one\n\ntwo", "one\n----\ntwo", "\n", "one\n\n# two", "one\n\nclock +1s\n----"} {
		sid := fmt.Sprintf("s%d", i)
		w.ask(sid, "hi")
		w.say(session.DoorLLM, sid, session.TypeGenerationSettled, map[string]any{
			"effect": "r1t1", "status": "failed", "error": map[string]any{"code": "a_code", "detail": detail},
		})
		text, err := w.Export(w.ctx, sid, 0)
		if err != nil {
			if !strings.Contains(err.Error(), "several lines") {
				t.Errorf("%q: %v", detail, err)
			}
			continue
		}
		if got := runScenario(t, text); got != 2 {
			t.Errorf("%q: %d events were exported, want 2", detail, got)
		}
	}
}

func TestExportOfUnknownSessionFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if text, err := w.Export(w.ctx, "nobody", 0); err == nil {
		t.Errorf("exported %q", text)
	}
}
