package session_test

// Calls that wait for a reply or for a time, where a scenario is too narrow: at every
// message, in every order, and ten thousand of them.

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// reply answers a call that was made with these arguments.
func (w *told) reply(call, arguments, text string) error {
	w.t.Helper()
	_, err := w.tell(session.DoorApprove, session.TypeReplyGiven, map[string]any{
		"call": call, "args_hash": codec.Sum([]byte(arguments)).String(), "output": map[string]any{"text": text},
	})
	return err
}

// question has a model ask, with a week to answer.
func question(t testing.TB) *told {
	t.Helper()
	w := newTold(t)
	w.run(map[string]any{"active_tools": []string{"ask_person"}, "deadlines_ms": map[string]any{"reply": 7 * 24 * 3600 * 1000}})
	w.calls("r1t1", made(1, "ask_person", `{"question":"Which colour?"}`))
	return w
}

// A process may die at any message and be restored from the log: the call has one answer,
// three days later, and the run goes on.
func TestAReplyAfterThreeDaysSurvivesDeathAtEachMessage(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600 * 1000
	said := func(typ string, data any) []byte {
		_, payload := say("", typ, data)
		return payload
	}
	hash := codec.Sum([]byte(`{"question":"Which colour?"}`)).String()
	reply := said(session.TypeReplyGiven, map[string]any{"call": "r1t1c0", "args_hash": hash, "output": map[string]any{"text": "blue"}})
	events := []session.Event{
		{Door: session.DoorCtl, Time: 1000, Payload: said(session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "config": map[string]any{
			"provider": "openai", "model": "m", "active_tools": []string{"ask_person"}, "deadlines_ms": map[string]any{"reply": 7 * day},
		}})},
		{Door: session.DoorLLM, Time: 2000, Payload: said(session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": made(1, "ask_person", `{"question":"Which colour?"}`)})},
		{Door: session.DoorWake, Time: 601_000, Payload: said(session.TypeWakeSettled, map[string]any{"effect": "w1"})},
		{Door: session.DoorApprove, Time: 3 * day, Payload: reply},
		{Door: session.DoorApprove, Time: 3*day + 1, Payload: reply}, // sent again
		{Door: session.DoorLLM, Time: 3*day + 1000, Payload: said(session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": map[string]any{"text": "painted"}})},
	}
	for i := range events {
		events[i].Session, events[i].Seq = "s1", uint64(i+2)
	}
	install := builtin(t)
	lives := session.New(install, "s1")
	for i := range events {
		if _, err := lives.Evolve(events[i]); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	v := lives.View()
	if v.Lifecycle != session.Completed || v.Items != 4 || v.Turn.Effect != "r1t2" {
		t.Errorf("the run is %s after turn %s, with %d items", v.Lifecycle, v.Turn.Effect, v.Items)
	}
	for dies := range events {
		before := session.Fold(install, "s1", slices.Values(events[:dies+1])) // it folded the message, and stored nothing
		open := fmt.Sprint(before.Open())
		again := session.Fold(install, "s1", slices.Values(events[:dies]))
		for i := range events[dies:] {
			_, _ = again.Evolve(events[dies+i])
			if i == 0 && fmt.Sprint(again.Open()) != open {
				t.Errorf("after message %d, open are %s, want %s", dies, fmt.Sprint(again.Open()), open)
			}
		}
		if !bytes.Equal(again.Snapshot().Bytes(), lives.Snapshot().Bytes()) {
			t.Errorf("a death at message %d leaves another state", dies)
		}
	}
}

// An effect, an approval, a reply and a sleep of one group may end in any order: the
// results stand in the order of the calls, and the next turn begins after the last.
func TestABatchOfAllThatWaitsEndsInEveryOrder(t *testing.T) {
	t.Parallel()
	orders := 0
	var permute func(rest, order []int)
	permute = func(rest, order []int) {
		if len(rest) == 0 {
			orders++
			endsInOrder(t, order)
		}
		for i, n := range rest {
			permute(slices.Concat(rest[:i], rest[i+1:]), append(slices.Clone(order), n))
		}
	}
	permute([]int{0, 1, 2, 3}, nil)
	if orders != 24 {
		t.Errorf("%d orders were tried", orders)
	}
}

func endsInOrder(t *testing.T, order []int) {
	t.Helper()
	w := toldUnder(t, weaveInstall(t))
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}}))
	w.calls("r1t1", slices.Concat(made(1, "read", `{}`), made(1, "asks", `{"a":"1"}`), made(1, "answers", `{}`), made(1, "sleeps", `{"seconds":60}`)))
	if got := fmt.Sprint(w.state.View().Batch.Groups); got != "[[0 1 2 3]]" {
		t.Fatalf("the groups are %s", got)
	}
	for n, call := range order {
		if w.state.View().Turn.Effect != "r1t1" {
			t.Errorf("%v: the turn was over after %d results", order, n)
		}
		switch call {
		case 0:
			w.settled("r1t1c0")
		case 1:
			w.must(w.tell(session.DoorApprove, session.TypeApprovalDecided, map[string]any{"call": "r1t1c1", "args_hash": codec.Sum([]byte(`{"a":"1"}`)).String(), "decision": "approve"}))
			w.settled("r1t1c1")
		case 2:
			if err := w.reply("r1t1c2", "{}", "yes"); err != nil {
				t.Fatalf("%v: %v", order, err)
			}
		case 3:
			w.time += 60_000
			for _, e := range w.state.Open() {
				if e.Class == session.ClassWake && e.Deadline <= w.time {
					w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name}))
				}
			}
		}
	}
	var results []string
	for _, it := range w.state.View().Transcript[2:] {
		results = append(results, fmt.Sprintf("%d%s", it.Call, it.Code))
	}
	if got := strings.Join(results, " "); got != "0 1 2 3slept" || w.state.View().Turn.Effect != "r1t2" {
		t.Errorf("%v: the results are %q, the turn is %s", order, got, w.state.View().Turn.Effect)
	}
}

// Two answers at once: the first counts, whatever the second says.
func TestTheFirstReplyCounts(t *testing.T) {
	t.Parallel()
	w := question(t)
	if err := w.reply("r1t1c0", `{"question":"Which colour?"}`, "blue"); err != nil {
		t.Fatal(err)
	}
	if err := w.reply("r1t1c0", `{"question":"Which colour?"}`, "red"); err != session.RejectStale { //nolint:errorlint // a rejection is never wrapped
		t.Errorf("another reply: got %v, want %v", err, session.RejectStale)
	}
}

// waitingBytesMax is the heap of a session that waits for a reply. A session-actor evicts
// such sessions as it evicts sleeping ones: by their weight, the least recently used first.
const waitingBytesMax = 3500

// Sessions that wait for replies take little memory, and their weight, by which they are
// evicted, tells how much. There are 10,000 of them, or REFOLD_WAITING_SESSIONS.
func TestWaitingSessions(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	heapNow := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	install := builtin(t)
	payload := func(typ string, data any) []byte {
		_, text := say("", typ, data)
		return text
	}
	run := payload(session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "openai", "model": "m", "active_tools": []string{"ask_person"}}})
	calls := payload(session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": made(1, "ask_person", `{"question":"Which colour?"}`)})
	before := heapNow()
	sessions := make([]*session.State, fromEnv(t, "REFOLD_WAITING_SESSIONS", idleSessions))
	n := int64(len(sessions))
	weight := 0
	for i := range sessions {
		s := session.New(install, "waits")
		_, _ = s.Evolve(session.Event{Session: "waits", Door: session.DoorCtl, Seq: 2, Time: 1000, Payload: run})
		_, _ = s.Evolve(session.Event{Session: "waits", Door: session.DoorLLM, Seq: 3, Time: 2000, Payload: calls})
		_ = s.Progress()
		sessions[i], weight = s, weight+s.Weight()
	}
	heap := heapNow() - before
	t.Logf("%d bytes a session, weighed as %d", heap/n, int64(weight)/n)
	if waits := sessions[0].View().WaitsFor; waits != "reply" {
		t.Fatalf("the sessions wait for %s", waits)
	}
	if heap > n*waitingBytesMax || heap < n*100 {
		t.Errorf("%d waiting sessions hold %d bytes; want at most %d", n, heap, n*waitingBytesMax)
	}
	if int64(weight) < heap/2 {
		t.Errorf("they weigh %d bytes, and hold %d: a session-actor would keep too many", weight, heap)
	}
	runtime.KeepAlive(sessions)
}
