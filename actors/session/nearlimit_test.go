package session_test

// Of a limit at which every later run fails, a notice and the view tell at nine tenths.

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// nearing is a session whose transcript grows, and the LimitNear that it published.
type nearing struct {
	*told
	near    []session.LimitNear
	history []session.Event
}

func (w *nearing) fold(door session.Door, typ string, data any) {
	w.t.Helper()
	w.seq++
	door, text := say(door, typ, data)
	e := session.Event{Session: "s1", Door: door, Seq: w.seq, Time: w.time, Payload: text}
	w.history = append(w.history, e)
	notices, err := w.state.Evolve(e)
	if err != nil {
		w.t.Fatalf("event %d: %v", w.seq, err)
	}
	for _, n := range notices {
		if d, is := n.Data.(session.LimitNear); is {
			w.near = append(w.near, d)
		}
	}
}

// runs asks for runs until the transcript has n items: it gets two of each.
func (w *nearing) runs(n int) {
	w.t.Helper()
	for len(w.state.Items) < n {
		w.answer(nil)
	}
}

// answer asks for a run that answers at once.
func (w *nearing) answer(config map[string]any) {
	w.t.Helper()
	w.fold(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("go"), "config": merged(map[string]any{"provider": "p", "model": "m"}, config)})
	w.fold(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": fmt.Sprintf("r%dt1", w.state.Runs), "status": "ok", "text": text("a")})
}

// tells checks the notices so far and the view.
func (w *nearing) tells(when string, notices []session.LimitNear, warnings []session.Warning) {
	w.t.Helper()
	if !reflect.DeepEqual(w.near, notices) {
		w.t.Errorf("%s: got the notices %+v, want %+v", when, w.near, notices)
	}
	if got := w.state.View().Warnings; !reflect.DeepEqual(got, warnings) {
		w.t.Errorf("%s: got the warnings %+v, want %+v", when, got, warnings)
	}
}

func TestNearTranscriptLimitIsTold(t *testing.T) {
	t.Parallel()
	w := &nearing{told: toldUnder(t, withoutContext(t))}
	w.runs(session.ItemsMax*9/10 - 2)
	w.tells("before nine tenths", nil, nil)
	w.runs(session.ItemsMax * 9 / 10)
	told := []session.LimitNear{{Run: 4500, Warning: session.Warning{Limit: session.LimitItems, Used: 9000, Max: session.ItemsMax}}}
	w.tells("at nine tenths", told, []session.Warning{told[0].Warning})
	w.runs(session.ItemsMax*9/10 + 10)
	more := []session.Warning{{Limit: session.LimitItems, Used: 9010, Max: session.ItemsMax}}
	w.tells("later", told, more)
	w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "b"}}))
	if _, err := w.tell(session.DoorIn, session.TypeRunCancelRequested, map[string]any{}); err == nil {
		t.Error("a cancel without a run is accepted")
	}
	w.tells("after other events", told, more)
	if got := w.restored().state.View().Warnings; !reflect.DeepEqual(got, more) {
		t.Errorf("restored: got the warnings %+v, want %+v", got, more)
	}

	// A context moves the limit away for good, and closing ends all work.
	w.fold(session.DoorCtl, session.TypeSessionConfigured, map[string]any{"provider": "p", "model": "m", "context": map[string]any{}})
	w.tells("with a context", told, nil)
	w.answer(map[string]any{"context": map[string]any{"summary": map[string]any{"off": true}}})
	w.fold(session.DoorCtl, session.TypeSessionConfigured, map[string]any{"provider": "p", "model": "m"})
	w.tells("after a run with a context", told, nil)
}

func TestClosedSessionHasNoWarnings(t *testing.T) {
	t.Parallel()
	w := &nearing{told: toldUnder(t, withoutContext(t))}
	w.runs(session.ItemsMax * 9 / 10)
	w.fold(session.DoorCtl, session.TypeSessionClosed, map[string]any{})
	w.tells("closed", w.near[:1], nil)
	if got, want := session.Fold(w.state.InstallRecord(), "s1", slices.Values(w.history)).Hash(), w.state.Hash(); got != want {
		t.Errorf("folded without notices: got %s, want %s", got, want)
	}
}

// Items with codes take more bytes, and may take them all before there are 10,000.
func TestNearTranscriptBytesAreTold(t *testing.T) {
	t.Parallel()
	w := &nearing{told: toldUnder(t, withoutContext(t))}
	w.run(map[string]any{"turns_max": 1000})
	calls := make([]any, session.CallsMax)
	for i := range calls {
		calls[i] = map[string]any{"tool_name": strings.Repeat("\x01", 600), "arguments": ""}
	}
	before := int32(0)
	for len(w.near) == 0 && w.state.Run != nil {
		before = w.state.ItemBytes
		w.fold(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": w.state.Open()[0].Name, "calls": calls})
	}
	if len(w.near) != 1 || before*10 >= session.TranscriptBytesMax*9 {
		t.Fatalf("got the notices %+v, there were %d bytes before", w.near, before)
	}
	want := session.LimitNear{Run: 1, Warning: session.Warning{Limit: session.LimitItemBytes, Used: int64(w.state.ItemBytes), Max: session.TranscriptBytesMax}}
	w.tells("of bytes", []session.LimitNear{want}, []session.Warning{want.Warning})
	if want.Used*10 < want.Max*9 || want.Used > want.Max {
		t.Errorf("told at %d of %d", want.Used, want.Max)
	}
}
