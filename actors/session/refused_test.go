package session_test

// Who was asked refused the call: which results of which events are told by
// ToolRejected. The scenario 71_refused_by_bridges tells when.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// countRefused: of the results that e gave, those are told, once and in the
// order of the calls, by which a call was refused that was asked; and no other.
func (l *laws) countRefused(e session.Event, env session.Envelope, notices []session.Notice) {
	var results []session.ToolCallSettled
	switch env.Type {
	case session.TypeToolCallSettled:
		var one session.ToolCallSettled
		if codec.Decode(env.Data, &one) == nil {
			results = append(results, one)
		}
	case session.TypeToolBatchSettled:
		var batch session.ToolBatchSettled
		if codec.Decode(env.Data, &batch) == nil {
			results = batch.Results
		}
	}
	want := map[int]string{}
	for i := range results {
		r := &results[i]
		if call := l.tookResult(e.Seq, r.Effect); call >= 0 && r.Status == "failed" && r.Error != nil && session.IsRefusedCode(r.Error.Code) {
			want[call] = r.Effect + " " + r.Error.Code + " " + r.Error.Detail[:min(len(r.Error.Detail), session.DetailBytesMax)]
		}
	}
	var got []string
	for _, n := range notices {
		if body, is := n.Data.(session.ToolRejected); is && session.IsRefusedCode(body.Code) {
			got = append(got, body.Effect+" "+body.Code+" "+body.Detail)
		}
	}
	var told []string
	for call := range session.CallsMax {
		if text, is := want[call]; is {
			told = append(told, text)
		}
	}
	if !slices.Equal(got, told) {
		l.t.Fatalf("event %d: told as refused: %q, want %q", e.Seq, got, told)
	}
}

// tookResult returns the position of the call to which the event at seq gave
// its result, -1 if it gave it none.
func (l *laws) tookResult(seq uint64, effect string) int {
	name, text, _ := strings.Cut(effect, "c")
	call := 0
	if _, err := fmt.Sscanf(text, "%d", &call); err != nil {
		return -1
	}
	t := l.state.Turn
	if t != nil && t.Batch != nil && name == fmt.Sprintf("r%dt%d", t.Run, t.Number) && call < len(t.Batch.Calls) {
		if c := t.Batch.Calls[call]; c.Seq != seq || c.Code != "" {
			return -1
		}
		return call
	}
	for _, it := range l.state.Items {
		if it.Role == session.RoleTool && it.Seq == seq && int(it.Call) == call && it.Code == "" {
			return call
		}
	}
	return -1
}

// drawFault draws the error of a call that failed.
func drawFault(t *rapid.T) map[string]any {
	return map[string]any{
		"code": rapid.SampledFrom([]string{
			session.RefusedToolChanged, session.RefusedToolGone, session.RefusedService, "tool_error", "tool_unknown", "cancelled",
		}).Draw(t, "code"),
		"detail": rapid.SampledFrom([]string{"", "why", strings.Repeat("d", 300)}).Draw(t, "detail"),
	}
}

// A notice's detail is cut as usual; the settlement keeps all of it.
func TestRefusedDetail(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "openai", "model": "m"},
	}))
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": made(1, "open_session", "{}")}))
	notices, err := w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{
		"effect": "r1t1c0", "status": "failed", "error": map[string]any{"code": session.RefusedToolChanged, "detail": strings.Repeat("é", 1000)},
	})
	if err != nil || len(notices) != 1 {
		t.Fatalf("got %v, %v, want one notice", notices, err)
	}
	want := session.ToolRejected{Effect: "r1t1c0", ToolName: "open_session", Code: "tool_changed", Detail: strings.Repeat("é", session.DetailBytesMax/2)}
	if notices[0].Type != session.NoticeToolRejected || notices[0].Data != want {
		t.Errorf("got %s %+v, want %+v", notices[0].Type, notices[0].Data, want)
	}
}
