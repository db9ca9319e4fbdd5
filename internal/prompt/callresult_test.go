package prompt

// Results of calls, found in a log by their names.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

func TestResultsOfCalls(t *testing.T) {
	t.Parallel()
	l := newLog()
	calls := func(sid, effect string, n int) {
		l.say(t, session.DoorLLM, sid, session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: effect, Calls: make([]session.ObservedCall, n)})
	}
	settled := func(sid, effect string, output *session.Content) {
		l.say(t, session.DoorTool, sid, session.TypeToolCallSettled, session.ToolCallSettled{Effect: effect, Status: "succeeded", Output: output})
	}
	long := strings.Repeat("x", 300<<10)
	l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("hi")})
	calls("s2", "r1t1", 1)
	settled("s2", "r1t1c0", text("of another session"))
	l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "failed", Error: &session.Fault{Code: "overloaded"}})
	calls("s1", "r1t1a2", 3)
	settled("s1", "r1t1c1", blob(l, long))
	settled("s1", "r1t1c0", &session.Content{Parts: []session.Content{*text("a"), *blob(l, "b"), {Blob: blob(l, "\x00").Blob, MediaType: "application/zip", Size: 1}}})
	settled("s1", "r1t1c0", text("again"))
	calls("s1", "r1t2", 2)
	l.say(t, session.DoorTool, "s1", session.TypeToolBatchSettled, session.ToolBatchSettled{Batch: "r1t2", Results: []session.ToolCallSettled{
		{Effect: "r1t2c0", Status: "succeeded"}, {Effect: "r1t2c1", Status: "failed", Output: text("exit 1"), Error: &session.Fault{Code: "exit_status", Detail: "it failed"}},
	}})
	l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok"}) // late
	calls("s1", "r2t1", 2)
	settled("s1", "r2t1c0", text("now"))
	results := NewResults(l)
	for _, c := range []struct{ call, want string }{
		{"r1t1c0", "a\nb\n[application/zip, 1 bytes, " + blob(l, "\x00").Blob.String() + "]"},
		{"r1t1c1", long},
		{"r1t1c2", CodeResultNotStored},
		{"r1t1c3", CodeResultUnknown},
		{"r1t2c0", "(no output)"},
		{"r1t2c1", "error: exit_status: it failed\nexit 1"},
		{"r2t1c0", "now"},
		{"s1.r2t1c0", "now"},
		{"s1/r2t1c0", "now"},
		{"r2t1c1", CodeResultPending},
		{"r2t2c0", CodeResultUnknown},
		{"r1t3c0", CodeResultUnknown},
		{"r4294967296t1c0", CodeResultUnknown},
		{"s2.r1t1c0", CodeOtherSession},
		{"s2/r1t1c0", CodeOtherSession},
		{"r1t1", CodeInvalidArguments},
		{"r01t1c0", CodeInvalidArguments},
		{"w1", CodeInvalidArguments},
		{"", CodeInvalidArguments},
	} {
		got, err := results.Of(t.Context(), "s1", c.call)
		var fault *executor.Error
		if errors.As(err, &fault) && fault.Detail != "" {
			got, err = fault.Code, nil
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %.100q, %v; want %.100q", c.call, got, err, c.want)
		}
	}
	l.lose()
	if got, err := results.Of(t.Context(), "s1", "r1t1c0"); err == nil {
		t.Errorf("from an empty log: got %q", got)
	}
}

// A lost blob is a failure of the call, not a text.
func TestResultWithoutItsBlob(t *testing.T) {
	t.Parallel()
	l := newLog()
	l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: "r1t1", Calls: make([]session.ObservedCall, 1)})
	l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: "r1t1c0", Status: "succeeded", Output: blob(l, "gone")})
	clear(l.blobs)
	_, err := NewResults(l).Of(t.Context(), "s1", "r1t1c0")
	if fault := new(executor.Error); !errors.As(err, &fault) || fault.Code != codeTranscript {
		t.Errorf("got %v", err)
	}
}

// However long a session is, a result is found with few reads, among other sessions'
// events and late settlements.
func TestResultsInALongLog(t *testing.T) {
	t.Parallel()
	l := newLog()
	const turns = 5_000
	for turn := 1; turn <= turns; turn++ {
		for _, sid := range []string{"s1", "s2"} {
			effect := fmt.Sprintf("r%dt%d", 1+turn/100, 1+turn%100)
			l.say(t, session.DoorLLM, sid, session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: effect, Calls: make([]session.ObservedCall, 1)})
			l.say(t, session.DoorTool, sid, session.TypeToolCallSettled, session.ToolCallSettled{Effect: effect + "c0", Status: "succeeded", Output: text(sid + effect)})
			if turn%7 == 0 {
				l.say(t, session.DoorLLM, sid, session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok"})
			}
		}
	}
	results := NewResults(l)
	for turn := 1; turn <= turns; turn += 97 {
		effect := fmt.Sprintf("r%dt%d", 1+turn/100, 1+turn%100)
		l.requests = nil
		if got, err := results.Of(t.Context(), "s1", effect+"c0"); err != nil || got != "s1"+effect {
			t.Errorf("%s: got %q, %v", effect, got, err)
		}
		if n := len(l.requests); n > 100 {
			t.Errorf("%s: %d reads", effect, n)
		}
	}
}
