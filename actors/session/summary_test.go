package session_test

// The summary: what it says of a session as it goes on, that it is small, and that it
// depends on the events alone. That the latest one is current in lifecycle, closing and
// waiting for people is a law, tried on long histories in laws_test.go.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

type summarized struct{ *told }

// after folds an event, and compares the JSON of the summary in its notices; "" for an
// event without one.
func (w summarized) after(want string, door session.Door, typ string, data any) {
	w.t.Helper()
	notices, _ := w.tell(door, typ, data)
	got := ""
	if n := len(notices); n > 0 {
		text, err := json.Marshal(notices[n-1].Summary)
		if err != nil {
			w.t.Fatal(err)
		}
		got = string(text)
	}
	if got != want {
		w.t.Errorf("%s at %d:\n got %s\nwant %s", typ, w.seq, got, want)
	}
}

func TestSummaryFollowsTheSession(t *testing.T) {
	t.Parallel()
	w := summarized{newTold(t)}
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
	text := func(s string) map[string]any { return map[string]any{"text": s} }
	w.after(`{"lifecycle":"running","waits_for":"model","run":1,"provider":"p","model":"m","text":"go"}`,
		session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("go"), "config": map[string]any{"provider": "p", "model": "m", "completion": "explicit"}})
	w.after(`{"lifecycle":"running","waits_for":"model","run":1,"queued":1,"provider":"p","model":"m","text_seq":3}`,
		session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("next"), "config": map[string]any{"provider": "p", "model": "n"}})
	w.after("", session.DoorIn, session.TypeSteerRequested, map[string]any{"input": text("faster")})
	w.after("", session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "usage": map[string]any{"input_tokens": 20, "output_tokens": 3}, "calls": []any{map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}},
	})
	w.after(`{"lifecycle":"paused","waits_for":"tools","run":1,"queued":1,"provider":"p","model":"m","tokens":23,"text_seq":6}`,
		session.DoorIn, session.TypeRunPauseRequested, map[string]any{})
	w.after(`{"lifecycle":"paused","waits_for":"resume","run":1,"queued":1,"provider":"p","model":"m","tokens":23,"text_seq":6}`,
		session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c0", "status": "succeeded", "output": text("file")})
	w.after(`{"lifecycle":"running","waits_for":"model","run":1,"queued":1,"provider":"p","model":"m","tokens":23,"text_seq":5}`,
		session.DoorIn, session.TypeRunResumeRequested, map[string]any{})
	w.after(`{"lifecycle":"waiting_input","waits_for":"input","run":1,"queued":1,"provider":"p","model":"m","tokens":23,"text":"which?"}`,
		session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": text("which?")})
	w.after(`{"lifecycle":"running","waits_for":"model","run":2,"provider":"p","model":"n","tokens":23,"text_seq":4}`,
		session.DoorIn, session.TypeRunCompleted, map[string]any{})
	w.after(`{"lifecycle":"failed","waits_for":"nobody","run":2,"provider":"p","model":"n","tokens":23,"code":"auth","detail":"no key","text_seq":4}`,
		session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r2t1", "status": "failed", "error": map[string]any{"code": "auth", "detail": "no key"}})
	w.after("", session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "b"}})
	w.after(`{"lifecycle":"failed","waits_for":"nobody","closed":true,"run":2,"tokens":23,"code":"auth","detail":"no key","text_seq":4}`,
		session.DoorCtl, session.TypeSessionClosed, map[string]any{})
}

// The largest texts that a state takes, with every character escaped.
func TestSummaryIsSmall(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("\x01", session.DetailBytesMax)
	calls := make([]string, session.SummaryCallsMax)
	for i := range calls {
		calls[i] = longest[:session.NameBytesMax]
	}
	const number = 1 << 62
	full, err := json.Marshal(session.Summary{
		Lifecycle: session.WaitingInput, WaitsFor: "host_loop", Closed: true, Quarantined: true, Spent: true, Run: 1<<32 - 1, Queued: session.QueueMax,
		Provider: longest[:64], Model: longest[:session.NameBytesMax], Deadline: number, Tokens: number, Cost: number,
		Code: longest[:session.CodeBytesMax], Detail: longest, Text: longest[:session.SummaryTextMax], Calls: calls, TextSeq: number,
	})
	if err != nil || len(full) > session.SummaryBytesMax {
		t.Errorf("the largest summary has %d bytes (%v), want at most %d", len(full), err, session.SummaryBytesMax)
	}
	for name, text := range map[string]string{"letters": "a", "controls": "\x01", "separators": "\u2028", "faces": "\U0001F600"} {
		notices := answered(t, map[string]any{"text": strings.Repeat(text, 3*session.SummaryTextMax)})
		got := notices[len(notices)-1].Summary
		packed, err := json.Marshal(got)
		if err != nil || utf8.RuneCountInString(got.Text) != session.SummaryTextMax || len(got.Text) > session.SummaryTextBytesMax || len(packed) > session.SummaryBytesMax {
			t.Errorf("%s: got %d characters, %d bytes, %d of JSON (%v)", name, utf8.RuneCountInString(got.Text), len(got.Text), len(packed), err)
		}
	}
}

// A session-actor that folds from the first event, one that goes on from a snapshot and
// one that folded quietly before publish the same bytes.
func TestSummaryDependsOnEventsAlone(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	var history []session.Event
	for _, e := range recordedHistory(t, "warehouse-audit") {
		door, text := say(e.door, e.typ, e.data)
		payload, err := codec.Canonicalize(text)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, session.Event{Session: "s1", Door: door, Seq: uint64(len(history) + 2), Time: 1_000_000, Payload: payload})
	}
	lines := func(s *session.State, e session.Event) (all string) {
		notices, _ := s.Evolve(e)
		for _, n := range notices {
			all += string(n.JSON()) + "\n"
		}
		return all
	}
	whole := session.New(install, "s1")
	lines(whole, history[0])
	said := 0
	for i, e := range history[1:] {
		quiet := session.Fold(install, "s1", slices.Values(history[:i+1]))
		restored, err := session.Restore(whole.Snapshot(), shelf{install: install})
		if err != nil {
			t.Fatal(err)
		}
		want := lines(whole, e)
		if a, b := lines(quiet, e), lines(restored, e); a != want || b != want {
			t.Errorf("event %d: got %s and %s, want %s", e.Seq, a, b, want)
		}
		if want != "" {
			said++
		}
	}
	if said < 2 {
		t.Errorf("%d events had notices, want several", said)
	}
}

// A text is cut with a mark, and only if it is longer.
func TestSummaryMarksCutText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Repeat("é", session.SummaryTextMax):   strings.Repeat("é", session.SummaryTextMax),
		strings.Repeat("é", session.SummaryTextMax+1): strings.Repeat("é", session.SummaryTextMax-1) + "…",
	} {
		notices := answered(t, map[string]any{"text": text})
		if got := notices[len(notices)-1].Summary.Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
