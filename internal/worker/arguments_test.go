package worker

// Arguments that are too large: which of them an event holds, and what a model
// is shown of the others.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// The largest arguments are stored apart, and no more than must be; what is
// stored is what the model wrote.
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, c := range []struct {
		name  string
		sizes []int
		apart []int // indices
	}{
		{"at the limit", []int{planner.ArgumentsBytesMax}, nil},
		{"above the limit", []int{planner.ArgumentsBytesMax + 1, 5}, []int{0}},
		{"one MiB", []int{5, 1024 * kib}, []int{1}},
		{"all above the limit", []int{300 * kib, 1024 * kib, 5000 * kib}, []int{0, 1, 2}},
		{"three that fit", []int{250 * kib, 250 * kib, 250 * kib}, nil},
		{"four of a size", []int{200 * kib, 200 * kib, 200 * kib, 200 * kib}, []int{0}},
		{"the largest go first", []int{150 * kib, 220 * kib, 210 * kib, 160 * kib, 200 * kib, 1}, []int{1}},
		{"two must go", []int{200 * kib, 256 * kib, 200 * kib, 255 * kib, 254 * kib}, []int{1, 3}},
		{"many small ones", slices.Repeat([]int{kib}, session.CallsSeenMax), consecutive(333)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var a executor.Answer
				for i, n := range c.sizes {
					a.Calls = append(a.Calls, executor.AnswerCall{Name: "a", Arguments: strings.Repeat(string(rune('a'+i%26)), n)})
				}
				b := body[session.ToolCallsObserved](t, settleOne(t, w, a))
				if len(b.Calls) != len(c.sizes) {
					t.Fatalf("calls: got %d, want %d", len(b.Calls), len(c.sizes))
				}
				var apart []int
				for i, call := range b.Calls {
					text := call.Arguments
					if call.ArgumentsBlob != nil {
						apart = append(apart, i)
						if text = string(w.blobs[*call.ArgumentsBlob]); call.Arguments != "" || call.Size != int64(len(text)) {
							t.Errorf("%d: %d bytes inline beside a blob, which is %d bytes and said to be %d", i, len(call.Arguments), len(text), call.Size)
						}
					}
					if text != a.Calls[i].Arguments {
						t.Errorf("%d: %d bytes are kept, and not those that the model wrote", i, len(text))
					}
				}
				if !slices.Equal(apart, c.apart) {
					t.Errorf("apart: got %v, want %v", apart, c.apart)
				}
			})
		})
	}
}

func consecutive(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A model is not shown again what was too large; it is shown an object, and
// how large it was.
func TestArgumentsOmitted(t *testing.T) {
	t.Parallel()
	w := newWorld()
	large := blob(t, w, strings.Repeat("x", 1<<20))
	calls := w.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: "r1t1", Calls: []session.ObservedCall{
		{ToolName: "stat", ArgumentsBlob: large.Blob, Size: large.Size},
		{ToolName: "stat", ArgumentsBlob: large.Blob},
		{ToolName: "stat", Arguments: "{"},
	}})
	clear(w.blobs) // it isn't even read
	g := generation("r1t2", session.Item{Role: session.RoleAssistant, Seq: calls})
	request, fault, err := newReader(w).request(t.Context(), &g)
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

// batch is a log with a turn of calls that settled as a whole, but for one.
func batch(t *testing.T, w *world, second session.ToolCallSettled) session.Generation {
	t.Helper()
	calls := w.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t1a2", Calls: []session.ObservedCall{{ToolName: "a"}, {ToolName: "b"}, {ToolName: "c"}},
	})
	one := w.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: "r1t1c1", Status: "succeeded", Output: text("b is done")})
	rest := w.say(t, session.DoorTool, "s1", session.TypeToolBatchSettled, session.ToolBatchSettled{
		Batch: "r1t1", Results: []session.ToolCallSettled{second, {Effect: "r1t1c0", Status: "succeeded", Output: blob(t, w, "a is done")}},
	})
	return generation("r1t2",
		session.Item{Role: session.RoleAssistant, Seq: calls},
		session.Item{Role: session.RoleTool, Call: 0, Seq: rest},
		session.Item{Role: session.RoleTool, Call: 1, Seq: one},
		session.Item{Role: session.RoleTool, Call: 2, Seq: rest},
	)
}

func TestBatchResults(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := batch(t, w, session.ToolCallSettled{Effect: "r1t1c2", Status: "failed", Output: text("exit 1"), Error: &session.Fault{Code: "exit_status", Detail: "it failed"}})
	r := newReader(w)
	for _, when := range []string{"from the log", "from the cache"} {
		request, fault, err := r.request(t.Context(), &g)
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
		w.mu.Lock()
		w.events, w.blobs = nil, nil // the second time nothing is read
		w.mu.Unlock()
	}
}

// A batch's results count by their texts, blobs included, and have a limit in
// common.
func TestBatchResultsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld()
	// Parts, since of a longer text only the beginning and the end are shown.
	part := blob(t, w, strings.Repeat("x", inlineBytesMax))
	parts := slices.Repeat([]session.Content{*part}, contentBytesMax/inlineBytesMax)
	long := session.ToolCallSettled{Effect: "r1t1c2", Status: "succeeded", Output: &session.Content{Parts: parts}}
	g := batch(t, w, long)
	r := newReader(w)
	if _, fault, err := r.request(t.Context(), &g); err != nil || fault != nil {
		t.Fatal(err, fault)
	}
	if got := r.events.bytes; got < contentBytesMax || got > contentBytesMax+8<<10 {
		t.Errorf("the cache counts %d bytes for %d", got, contentBytesMax)
	}
	many := session.ToolBatchSettled{Batch: "r1t1"}
	for i := range requestBytesMax/contentBytesMax + 1 {
		long.Effect = callID("r1t1", i)
		many.Results = append(many.Results, long)
	}
	g.Items[1].Seq = w.say(t, session.DoorTool, "s1", session.TypeToolBatchSettled, many)
	if _, fault, err := r.request(t.Context(), &g); err != nil || fault == nil || fault.Code != codeRequestTooLarge || !strings.Contains(fault.Detail, fmt.Sprintf("event %d has", g.Items[1].Seq)) {
		t.Errorf("too much: got %v, %v", fault, err)
	}
}

// A result that its event does not hold is no result.
func TestBatchResultMissing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := batch(t, w, session.ToolCallSettled{Effect: "r1t2c2", Status: "succeeded"})
	_, fault, err := newReader(w).request(t.Context(), &g)
	if err != nil || fault == nil || fault.Code != codeTranscript || !strings.Contains(fault.Detail, "r1t1c2") {
		t.Errorf("got %v, %v", fault, err)
	}
}
