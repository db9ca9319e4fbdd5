package session_test

// What the fold says must fit a message, whatever the model, a client or a
// bridge said, and must be the same in every release of Go.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// answered folds a run whose model answers content, and returns what the last
// event made the session say.
func answered(t *testing.T, content map[string]any) []session.Notice {
	t.Helper()
	w := newTold(t)
	w.must(w.tell(session.DoorIn, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "openai", "model": "m"},
	}))
	notices, err := w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok", "text": content})
	if err != nil {
		t.Fatal(err)
	}
	return notices
}

// told is a session that is told things, one after the other.
type told struct {
	t     testing.TB
	state *session.State
	seq   uint64
	time  int64
}

func newTold(t testing.TB) *told { return toldUnder(t, builtin(t)) }

func toldUnder(t testing.TB, install *session.Install) *told {
	return &told{t: t, state: session.New(install, "s1"), seq: 1, time: 1_000_000}
}

// tell folds one event, in msgpack as bridges write it, and checks the state's
// invariants.
func (w *told) tell(door session.Door, typ string, data any) ([]session.Notice, error) {
	w.t.Helper()
	door, text := say(door, typ, data)
	payload, err := codec.Canonicalize(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.fold(door, payload)
}

func (w *told) fold(door session.Door, payload []byte) ([]session.Notice, error) {
	w.t.Helper()
	w.seq++
	notices, err := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: w.time, Payload: payload})
	if bad := w.state.Check(); bad != nil {
		w.t.Fatalf("event %d: invariant: %v", w.seq, bad)
	}
	return notices, err
}

func (w *told) must(_ []session.Notice, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("event %d: %v", w.seq, err)
	}
}

// run asks for a run as an operator, with these fields beside provider and model.
func (w *told) run(config map[string]any) {
	w.t.Helper()
	full := map[string]any{"provider": "openai", "model": "m"}
	for name, value := range config {
		full[name] = value
	}
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "config": full}))
}

// open returns the open effect of that name.
func (w *told) open(name string) session.Effect {
	w.t.Helper()
	for _, e := range w.state.Open() {
		if e.Name == name {
			return e
		}
	}
	w.t.Fatalf("%s is not open", name)
	return session.Effect{}
}

// 256 KiB of text can be 1.5 MiB of JSON. The log has the answer; a notice that
// can't hold it has its sequence.
func TestNoticesFitTheBus(t *testing.T) {
	t.Parallel()
	parts := func(text string, n int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"text": text}
		}
		return map[string]any{"parts": list}
	}
	for name, c := range map[string]struct {
		content map[string]any
		inline  bool
	}{
		"a short answer":          {map[string]any{"text": "done"}, true},
		"256 KiB of prose":        {map[string]any{"text": strings.Repeat("all is well ", session.TextBytesMax/12)}, true},
		"256 KiB of markup":       {map[string]any{"text": strings.Repeat("<&>", session.TextBytesMax/3)}, true},
		"256 KiB of lines":        {map[string]any{"text": strings.Repeat("\n", session.TextBytesMax)}, true},
		"256 KiB of controls":     {map[string]any{"text": strings.Repeat("\x01", session.TextBytesMax)}, false},
		"line separators":         {map[string]any{"text": strings.Repeat("\u2028", session.TextBytesMax/3)}, true},
		"parts that fit":          {parts(strings.Repeat("a", 10<<10), 32), true},
		"parts that are controls": {parts(strings.Repeat("\x02", 3<<10), 64), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notices := answered(t, c.content)
			last := notices[len(notices)-1]
			text := last.JSON()
			if len(text) > session.NoticeBytesMax {
				t.Errorf("the notice has %d bytes, want at most %d", len(text), session.NoticeBytesMax)
			}
			var got struct {
				Seq  uint64 `json:"seq"`
				Data struct {
					Output    map[string]any `json:"output"`
					OutputSeq uint64         `json:"output_seq"`
				} `json:"data"`
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.inline && (fmt.Sprint(got.Data.Output) != fmt.Sprint(c.content) || got.Data.OutputSeq != 0):
				t.Errorf("the output is not the answer, or given twice: output_seq %d", got.Data.OutputSeq)
			case !c.inline && (got.Data.Output != nil || got.Data.OutputSeq != got.Seq):
				t.Errorf("got an output, and output_seq %d, want none, and %d", got.Data.OutputSeq, got.Seq)
			}
		})
	}
}

// A detail is part of the state when the session makes a result. Go's tables of
// printable characters change with Go, so no quoted text may depend on them.
func TestTextsAreTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	const odd = "fine\u00e9\U0001fae9"
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
	w.run(nil)
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{
		map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}, map[string]any{"tool_name": odd, "arguments": odd},
		map[string]any{"tool_name": "stat", "arguments": `{"path":"b"}`},
	}}))
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c0", "status": odd}))
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c2", "status": "failed", odd: 1}))
	details := 0
	for _, it := range w.state.Items {
		if it.Detail == "" {
			continue
		}
		details++
		for _, c := range []byte(it.Detail) {
			if c >= 0x80 {
				t.Errorf("%s: %q is not plain text", it.Code, it.Detail)
				break
			}
		}
	}
	if details != 3 {
		t.Errorf("got %d details, want 3", details)
	}
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": odd}))
	if got, want := w.state.Last.Detail.String(), "the settlement can't be used: invalid_data at status"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for typ, data := range map[string]any{
		session.TypeToolProfileSelected: map[string]any{"profile": odd},
		session.TypeHostSessionUpdated:  map[string]any{"status": odd},
		session.TypeFactsSet:            map[string]any{"facts": map[string]any{odd: 7}},
		session.TypeSessionConfigured:   map[string]any{"enable": []any{odd}},
		"Run" + odd:                     nil,
		session.TypeRunRequested:        map[string]any{"input": map[string]any{"text": "x"}, "when_busy": strings.Repeat("\x01", 300)},
	} {
		notices, err := w.tell(session.DoorCtl, typ, data)
		if err == nil {
			t.Fatalf("%s: taken", typ)
		}
		rejected := notices[len(notices)-1].Data.(session.EventRejected)
		if n := len(rejected.Detail); n == 0 || n > session.DetailBytesMax {
			t.Errorf("%s: the detail has %d bytes, want at most %d", typ, n, session.DetailBytesMax)
		}
		for _, c := range []byte(rejected.Detail) {
			if c >= 0x80 {
				t.Errorf("%s: %q is not plain text", typ, rejected.Detail)
				break
			}
		}
	}
}
