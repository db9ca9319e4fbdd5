package prompt

// Calls as a model is shown them: arguments that were too large for an event, and
// the results of a batch that settled as a whole.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// In their place the model is shown an object with their size.
func TestTooLargeArgumentsAreOmitted(t *testing.T) {
	t.Parallel()
	l := newLog()
	large := blob(l, strings.Repeat("x", 1<<20))
	calls := l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: "r1t1", Calls: []session.ObservedCall{
		{ToolName: "stat", ArgumentsBlob: large.Blob, Size: large.Size},
		{ToolName: "stat", ArgumentsBlob: large.Blob},
		{ToolName: "stat", Arguments: "{"},
	}})
	clear(l.blobs) // it isn't even read
	g := generation("r1t2", session.Item{Role: session.RoleAssistant, Seq: calls})
	request, fault, err := New(l).Request(t.Context(), &g)
	if err != nil || fault != nil {
		t.Fatal(err, fault)
	}
	want := []executor.MessageCall{
		{ID: "r1t1c0", Name: "stat", Arguments: `{"omitted":"1048576 bytes of arguments"}`, Omitted: 1 << 20},
		{ID: "r1t1c1", Name: "stat", Arguments: `{"omitted":"1 bytes of arguments"}`, Omitted: 1},
		{ID: "r1t1c2", Name: "stat", Arguments: "{"},
	}
	if got := request.Messages[0].Calls; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// batch is a log with a turn of calls, which settled as a whole except for one.
func batch(t *testing.T, l *fakeLog, second session.ToolCallSettled) session.Generation {
	t.Helper()
	calls := l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t1a2", Calls: []session.ObservedCall{{ToolName: "a"}, {ToolName: "b"}, {ToolName: "c"}},
	})
	one := l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: "r1t1c1", Status: "succeeded", Output: text("b is done")})
	rest := l.say(t, session.DoorTool, "s1", session.TypeToolBatchSettled, session.ToolBatchSettled{
		Batch: "r1t1", Results: []session.ToolCallSettled{second, {Effect: "r1t1c0", Status: "succeeded", Output: blob(l, "a is done")}},
	})
	return generation("r1t2",
		session.Item{Role: session.RoleAssistant, Seq: calls},
		session.Item{Role: session.RoleTool, Call: 0, Seq: rest},
		session.Item{Role: session.RoleTool, Call: 1, Seq: one},
		session.Item{Role: session.RoleTool, Call: 2, Seq: rest},
	)
}

func TestBatchResultsFollowTheirCalls(t *testing.T) {
	t.Parallel()
	l := newLog()
	g := batch(t, l, session.ToolCallSettled{Effect: "r1t1c2", Status: "failed", Output: text("exit 1"), Error: &session.Fault{Code: "exit_status", Detail: "it failed"}})
	r := New(l)
	for _, when := range []string{"from the log", "from the cache"} {
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%s: %v, %v", when, fault, err)
		}
		want := []executor.Message{
			{Role: "tool", CallID: "r1t1c0", Text: "a is done"},
			{Role: "tool", CallID: "r1t1c1", Text: "b is done"},
			{Role: "tool", CallID: "r1t1c2", Text: "error: exit_status: it failed\nexit 1", Error: true},
		}
		if got := fmt.Sprintf("%+v", request.Messages[1:]); got != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: got %s", when, got)
		}
		l.lose()
	}
}

// The texts of a batch count, blobs included.
func TestBatchResultsShareOneLimit(t *testing.T) {
	t.Parallel()
	l := newLog()
	// Parts, since of a longer text only the beginning and the end are shown.
	part := blob(l, strings.Repeat("x", session.TextBytesMax))
	parts := slices.Repeat([]session.Content{*part}, ContentBytesMax/session.TextBytesMax)
	long := session.ToolCallSettled{Effect: "r1t1c2", Status: "succeeded", Output: &session.Content{Parts: parts}}
	g := batch(t, l, long)
	r := New(l)
	if _, fault, err := r.Request(t.Context(), &g); err != nil || fault != nil {
		t.Fatal(err, fault)
	}
	if got := r.events.counts().Bytes; got < ContentBytesMax || got > ContentBytesMax+8<<10 {
		t.Errorf("the cache counts %d bytes for %d", got, ContentBytesMax)
	}
	many := session.ToolBatchSettled{Batch: "r1t1"}
	for i := range requestBytesMax/ContentBytesMax + 1 {
		long.Effect = callID("r1t1", i)
		many.Results = append(many.Results, long)
	}
	items := listed(t, g.Items)
	items[1].Seq = l.say(t, session.DoorTool, "s1", session.TypeToolBatchSettled, many)
	g.Items = session.ListItems(items...)
	if _, fault, err := r.Request(t.Context(), &g); err != nil || fault != nil {
		t.Errorf("too much: got %v, %v; want its texts cut", fault, err)
	}
}

func TestMissingBatchResultIsAFault(t *testing.T) {
	t.Parallel()
	l := newLog()
	g := batch(t, l, session.ToolCallSettled{Effect: "r1t2c2", Status: "succeeded"})
	_, fault, err := New(l).Request(t.Context(), &g)
	if err != nil || fault == nil || fault.Code != codeTranscript || !strings.Contains(fault.Detail, "r1t1c2") {
		t.Errorf("got %v, %v", fault, err)
	}
}
