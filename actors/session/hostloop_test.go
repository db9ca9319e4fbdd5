package session_test

// Batches that a host loop carries out: each sentence of the rules about
// ToolBatchSettled and about single settlements of a host loop's calls.

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// loopTools are tools of a host loop and of a bridge. The last letter says
// whether calls may stand side by side (p) or not (n).
func loopTools() []any {
	tool := func(name, kind string, retrySafe bool) map[string]any {
		return map[string]any{
			"tool_id": "x." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"},
			"executor":      map[string]any{"kind": kind, "target": map[string]string{"host_loop": "ide", "effect": "box"}[kind]},
			"parallel_safe": strings.HasSuffix(name, "p"), "retry_safe": retrySafe,
		}
	}
	ready := tool("readyn", "host_loop", true)
	ready["availability"] = []any{map[string]any{"kind": "host_session_ready"}}
	return []any{
		tool("loopp", "host_loop", true), tool("onceloopp", "host_loop", false), tool("loopn", "host_loop", true), ready,
		tool("boxp", "effect", true), tool("boxn", "effect", true),
	}
}

// loopInstall is an install record of these tools.
func loopInstall(t testing.TB) *session.Install {
	t.Helper()
	install, err := session.ParseInstall(asJSON(t, map[string]any{"v": 1, "rules": 1, "tools": loopTools()}))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// looped is a session whose model called these tools, each with {"a":position}.
func looped(t testing.TB, config map[string]any, tools ...string) *told {
	t.Helper()
	w := toldUnder(t, loopInstall(t))
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
	w.run(config)
	w.called("r1t1", tools...)
	return w
}

// called answers a generation with one call of each of these tools.
func (w *told) called(effect string, tools ...string) []session.Notice {
	w.t.Helper()
	var calls []any
	for i, name := range tools {
		calls = append(calls, map[string]any{"tool_name": name, "arguments": fmt.Sprintf(`{"a":%d}`, i)})
	}
	notices, err := w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": effect, "calls": calls})
	w.must(notices, err)
	return notices
}

// answered ends the run with an answer to a generation.
func (w *told) answered(effect string) {
	w.t.Helper()
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": effect, "status": "ok", "text": map[string]any{"text": "done"}}))
}

// refused: the event is refused for this reason and changes only the head.
func (w *told) refused(want session.Rejection, door session.Door, typ string, data any) string {
	w.t.Helper()
	before := w.state.Bytes()
	notices, err := w.tell(door, typ, data)
	if !errors.Is(err, want) {
		w.t.Fatalf("event %d: got %v, want %v", w.seq, err, want)
	}
	if what := moreThanHead(w.t, before, w.state.Bytes()); what != "" {
		w.t.Fatalf("event %d: %v, and %s", w.seq, err, what)
	}
	return notices[len(notices)-1].Data.(session.EventRejected).Detail
}

// silent: the event is taken without a word and changes only the head.
func (w *told) silent(door session.Door, typ string, data any) {
	w.t.Helper()
	was, before := w.state.Record, w.state.Bytes()
	notices, err := w.tell(door, typ, data)
	if err != nil || len(notices) > 0 || len(w.state.Withdrawals()) > 0 {
		w.t.Fatalf("event %d: got %v and %d notices, want a no-op", w.seq, err, len(notices))
	}
	again := w.state.Record
	again.Seq, again.Count, again.Chain, again.Leaf = was.Seq, was.Count, was.Chain, was.Leaf
	if after, err := codec.Marshal(&again); err != nil || !bytes.Equal(before, after) {
		w.t.Fatalf("event %d: more than the head changed: %v", w.seq, err)
	}
}

// result is a call's result, with an output if that is not empty.
func result(effect, status, output string) map[string]any {
	r := map[string]any{"effect": effect, "status": status}
	if output != "" {
		r["output"] = map[string]any{"text": output}
	}
	return r
}

// batch is a ToolBatchSettled under the session's latest plan.
func (w *told) batch(name string, results ...any) map[string]any {
	if results == nil {
		results = []any{}
	}
	return map[string]any{"batch": name, "plan_hash": w.state.LastPlan.String(), "results": results}
}

const (
	batchSettled = session.TypeToolBatchSettled
	callSettled  = session.TypeToolCallSettled
)

// otherHash is the hash of no plan.
const otherHash = "00000000000000000000000000000000000000000000000000000000000000ff"

// asked returns the names of the open effects, wakes not counted.
func (w *told) asked() string {
	var names []string
	for _, e := range w.state.Open() {
		if e.Class != session.ClassWake {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, " ")
}

func (w *told) wants(asked, waits string) {
	w.t.Helper()
	if got := w.asked(); got != asked || w.state.View().WaitsFor != waits {
		w.t.Errorf("event %d: asked is %q, it waits for %s; want %q and %s", w.seq, got, w.state.View().WaitsFor, asked, waits)
	}
}

// Every call without a result gets one, also in later groups, and the next turn
// begins.
func TestBatchIsSettledWhole(t *testing.T) {
	t.Parallel()
	w := looped(t, nil, "loopp", "onceloopp", "loopn", "nosuch", "loopn")
	w.wants("", "host_loop")
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1",
		result("r1t1c4", "outcome_unknown", ""), result("r1t1c0", "succeeded", "a"), result("r1t1c1", "failed", "b"), result("r1t1c2", "cancelled", ""))))
	w.wants("r1t2", "model")
	var got []string
	for _, it := range w.state.Items[2:] {
		got = append(got, fmt.Sprintf("%d %d %s", it.Call, it.Seq, it.Code))
	}
	if want := []string{"0 5 ", "1 5 ", "2 5 ", "3 4 tool_unknown", "4 5 "}; !slices.Equal(got, want) {
		t.Errorf("the results are %q, want %q", got, want)
	}
	// What was cancelled was not carried out; what was refused neither.
	if got, want := w.state.Run.Used, []string{"x.loopn", "x.loopp", "x.onceloopp"}; !slices.Equal(got, want) {
		t.Errorf("used are %v, want %v", got, want)
	}
}

// The same results again are a no-op: at once, in another order, after the next
// turn began, after the run ended, and in the next run.
func TestBatchRepeated(t *testing.T) {
	t.Parallel()
	w := looped(t, nil, "loopp", "loopn")
	a, b := result("r1t1c0", "succeeded", "a"), result("r1t1c1", "failed", "")
	whole := w.batch("r1t1", a, b)
	w.must(w.tell(session.DoorTool, batchSettled, whole))
	repeats := func() {
		t.Helper()
		slow := merged(a, map[string]any{"duration_ms": 7})
		empty := merged(b, map[string]any{"output": map[string]any{"text": ""}})
		for _, again := range []map[string]any{whole, merged(whole, map[string]any{"results": []any{empty, slow}})} {
			w.silent(session.DoorTool, batchSettled, again)
		}
		for _, other := range []map[string]any{
			{"plan_hash": otherHash}, {"results": []any{a, result("r1t1c1", "succeeded", "")}}, {"results": []any{result("r1t1c0", "succeeded", "c"), b}},
			{"results": []any{a, a}},
		} {
			w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, merged(whole, other))
		}
		w.refused(session.RejectUnknownCall, session.DoorTool, batchSettled, merged(whole, map[string]any{"results": []any{a, result("r1t1c2", "failed", "")}}))
	}
	repeats()
	w.answered("r1t2")
	repeats()
	w.run(nil)
	repeats()
}

// After a later batch, an older one is stale, whether its results are the same or
// not; one that never existed is unknown.
func TestBatchOfAnOlderTurn(t *testing.T) {
	t.Parallel()
	w := looped(t, nil, "loopp")
	first := w.batch("r1t1", result("r1t1c0", "succeeded", ""))
	w.must(w.tell(session.DoorTool, batchSettled, first))
	w.refused(session.RejectUnknownEffect, session.DoorTool, batchSettled, w.batch("r1t2"))
	w.called("r1t2", "loopp", "loopn")
	w.refused(session.RejectStale, session.DoorTool, batchSettled, first)
	second := w.batch("r1t2", result("r1t2c0", "succeeded", ""), result("r1t2c1", "succeeded", ""))
	w.must(w.tell(session.DoorTool, batchSettled, second))
	w.refused(session.RejectStale, session.DoorTool, batchSettled, first)
	w.silent(session.DoorTool, batchSettled, second)
	for _, never := range []string{"r1t3", "r1t4", "r2t1", "r4294967295t1"} {
		w.refused(session.RejectUnknownEffect, session.DoorTool, batchSettled, w.batch(never))
	}
	for _, odd := range []string{"", "r1", "r1t1c0", "r1t1s", "w1", "r01t1", "r0t1"} {
		w.refused(session.RejectInvalidData, session.DoorTool, batchSettled, w.batch(odd))
	}
}

// A batch is settled as a whole or not at all.
func TestBatchInPart(t *testing.T) {
	t.Parallel()
	w := looped(t, nil, "loopp", "loopp", "loopn")
	a, b, c := result("r1t1c0", "succeeded", ""), result("r1t1c1", "succeeded", ""), result("r1t1c2", "succeeded", "")
	for _, part := range [][]any{{}, {a}, {a, b}, {b, c}} {
		w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", part...))
	}
	w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", a, b, c, b))
	for _, strange := range []string{"r1t1c3", "r1t1c63", "r1t1c64", "r1t2c0", "r2t1c0", "r1t1", "w1", ""} {
		w.refused(session.RejectUnknownCall, session.DoorTool, batchSettled, w.batch("r1t1", a, b, c, result(strange, "succeeded", "")))
	}
	for _, odd := range []map[string]any{
		{"effect": "r1t1c2", "status": "waiting"}, {"effect": "r1t1c2", "status": "succeeded", "error": map[string]any{"code": "x"}},
		{"effect": "r1t1c2", "status": "failed", "host_session": map[string]any{"status": "odd"}},
	} {
		if detail := w.refused(session.RejectInvalidData, session.DoorTool, batchSettled, w.batch("r1t1", a, b, odd)); !strings.HasPrefix(detail, "results[2].") {
			t.Errorf("got %q, want the path of the result", detail)
		}
	}
	many := slices.Repeat([]any{a}, session.CallsMax+1)
	w.refused(session.RejectLimitExceeded, session.DoorTool, batchSettled, w.batch("r1t1", many...))
	w.refused(session.RejectPlanMismatch, session.DoorTool, batchSettled, merged(w.batch("r1t1", a, b, c), map[string]any{"plan_hash": otherHash}))
	w.refused(session.RejectPlanMismatch, session.DoorTool, batchSettled, w.batch("r1t1", a, b, merged(c, map[string]any{"plan_hash": otherHash})))
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1", a, b, merged(c, map[string]any{"plan_hash": w.state.LastPlan.String()}))))
	w.wants("r1t2", "model")
}

// Results that exist may be left out or repeated, but not changed.
func TestBatchAfterSingleResults(t *testing.T) {
	t.Parallel()
	for name, again := range map[string][]any{
		"left out":   nil,
		"said again": {result("r1t1c0", "succeeded", "a")},
	} {
		w := looped(t, nil, "loopp", "loopp", "nosuch", "loopn")
		w.must(w.tell(session.DoorTool, callSettled, result("r1t1c0", "succeeded", "a")))
		rest := []any{result("r1t1c1", "succeeded", ""), result("r1t1c3", "failed", "")}
		for _, other := range []any{
			result("r1t1c0", "succeeded", "b"), result("r1t1c0", "failed", "a"), result("r1t1c0", "succeeded", ""),
			result("r1t1c2", "failed", ""), // the session's own
		} {
			w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", append(slices.Clone(rest), other)...))
		}
		w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1", append(rest, again...)...)))
		if w.asked() != "r1t2" || w.state.Items[2].Seq != 5 || w.state.Items[3].Seq != w.seq {
			t.Errorf("%s: asked is %q, results %+v", name, w.asked(), w.state.Items[2:])
		}
	}
}

// A bridge settles its open calls; the host loop may settle those that are not open
// yet.
func TestBatchWhileABridgeIsAsked(t *testing.T) {
	t.Parallel()
	a, b := result("r1t1c0", "succeeded", ""), result("r1t1c1", "succeeded", "")
	w := looped(t, nil, "boxp", "loopp")
	w.wants("r1t1c0", "tools")
	w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", a, b))
	w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", b))
	w.must(w.tell(session.DoorTool, callSettled, a))
	w.wants("", "host_loop")
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1", b)))
	w.wants("r1t2", "model")

	w = looped(t, nil, "loopn", "boxn")
	w.wants("", "host_loop")
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1", a, b)))
	w.wants("r1t2", "model")
	if len(w.state.Withdrawals()) > 0 {
		t.Errorf("withdrew %v, and nothing was asked", w.state.Withdrawals())
	}
}

// plannedOf returns what notices say to a host loop: group and calls.
func plannedOf(notices []session.Notice) string {
	var said []string
	for _, n := range notices {
		if p, is := n.Data.(session.CallsPlanned); is {
			said = append(said, fmt.Sprintf("%s %v group %d: %s", p.Batch, p.Groups, p.Group, strings.Join(p.Calls, " ")))
		}
	}
	return strings.Join(said, "; ")
}

// A notice announces the first group of a batch with calls for a host loop, and
// each later group with such calls.
func TestCallsPlanned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []string
		said  []string // by the answer, then by each result in the order of the calls
	}{
		"side by side":         {[]string{"loopp", "boxp", "loopp"}, []string{"r1t1 [[0 1 2]] group 0: r1t1c0 r1t1c2", "", "", ""}},
		"the bridge first":     {[]string{"boxn", "loopn"}, []string{"r1t1 [[0] [1]] group 0: ", "r1t1 [[0] [1]] group 1: r1t1c1", ""}},
		"the host loop first":  {[]string{"loopn", "boxn"}, []string{"r1t1 [[0] [1]] group 0: r1t1c0", "", ""}},
		"two bridges before":   {[]string{"boxn", "boxn", "loopn"}, []string{"r1t1 [[0] [1] [2]] group 0: ", "", "r1t1 [[0] [1] [2]] group 2: r1t1c2", ""}},
		"one after the other":  {[]string{"loopn", "loopn"}, []string{"r1t1 [[0] [1]] group 0: r1t1c0", "r1t1 [[0] [1]] group 1: r1t1c1", ""}},
		"none for a host loop": {[]string{"boxn", "boxn"}, []string{"", "", ""}},
		"all refused":          {[]string{"nosuch"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, clock := range []int64{1_000_000, 0} { // the first millisecond is a time like any other
				w := toldUnder(t, loopInstall(t))
				w.time = clock
				w.run(nil)
				said := []string{plannedOf(w.called("r1t1", c.tools...))}
				for i := range len(c.said) - 1 {
					notices, err := w.tell(session.DoorTool, callSettled, result(fmt.Sprintf("r1t1c%d", i), "succeeded", ""))
					w.must(notices, err)
					said = append(said, plannedOf(notices))
				}
				if !slices.Equal(said, c.said) {
					t.Errorf("at %d: said %q, want %q", clock, said, c.said)
				}
				w.wants("r1t2", "model")
			}
		})
	}
	w := looped(t, nil, "loopn")
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c0", "succeeded", "")))
	for _, n := range w.called("r1t2", "loopp") {
		if p, is := n.Data.(session.CallsPlanned); is && p.PlanHash != w.state.LastPlan.String() {
			t.Errorf("plan_hash is %s, want %s", p.PlanHash, w.state.LastPlan)
		}
	}
}

// Calls are settled by name, in any order within a group. A settlement of another
// plan is refused, and the call stays open. A repeat is a no-op, a different one is
// effect_settled, and one of an earlier turn is stale.
func TestSingleSettlementsOfAHostLoop(t *testing.T) {
	t.Parallel()
	w := looped(t, nil, "loopp", "loopp", "loopn", "boxn")
	other := map[string]any{"plan_hash": otherHash}
	a, b := result("r1t1c0", "succeeded", "a"), result("r1t1c1", "succeeded", "b")
	w.refused(session.RejectIllegalTransition, session.DoorTool, callSettled, result("r1t1c2", "succeeded", ""))
	w.refused(session.RejectUnknownEffect, session.DoorTool, callSettled, result("r1t1c3", "succeeded", "")) // a bridge's, never asked
	w.refused(session.RejectPlanMismatch, session.DoorTool, callSettled, merged(b, other))
	w.must(w.tell(session.DoorTool, callSettled, b))
	w.silent(session.DoorTool, callSettled, b)
	w.refused(session.RejectEffectSettled, session.DoorTool, callSettled, result("r1t1c1", "failed", "b"))
	w.must(w.tell(session.DoorTool, callSettled, merged(a, map[string]any{"plan_hash": w.state.LastPlan.String()})))
	w.wants("", "host_loop")
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c2", "succeeded", "")))
	w.wants("r1t1c3", "tools")
	w.must(w.tell(session.DoorTool, callSettled, merged(result("r1t1c3", "succeeded", ""), other)))
	if it := w.state.Items[len(w.state.Items)-1]; it.Code != session.CodeBadSettlement {
		t.Errorf("a bridge's settlement under another plan is %+v, want %s", it, session.CodeBadSettlement)
	}
	w.refused(session.RejectStale, session.DoorTool, callSettled, b)
	w.called("r1t2", "loopp")
	w.must(w.tell(session.DoorTool, callSettled, map[string]any{"effect": "r1t2c0", "status": "succeeded", "wings": 2})) // hangs nothing
	w.wants("r1t3", "model")
}

// No settlement came in time. A retry-safe call has failed, another may have taken
// effect. Nothing is withdrawn, because no effect was open, and a late result is
// refused.
func TestHostLoopDeadline(t *testing.T) {
	t.Parallel()
	w := looped(t, map[string]any{"deadlines_ms": map[string]any{"call": 5000}}, "loopp", "onceloopp", "loopp", "loopn")
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c2", "succeeded", "")))
	late := func(n int) {
		t.Helper()
		var wake string
		for _, e := range w.state.Open() {
			if e.Class == session.ClassWake {
				wake = e.Name
			}
		}
		w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": wake}))
		if got := w.state.Withdrawals(); len(got) > 0 {
			t.Errorf("withdrew %v", got)
		}
	}
	w.time += 5000
	for w.state.Turn.Batch.Group == 0 {
		late(0)
	}
	w.wants("", "host_loop")
	calls := w.state.Turn.Batch.Calls
	if c := calls[0]; c.Status != session.CallFailed || c.Code != session.CodeDeadlineExceeded || c.Detail.String() != "host loop ide did not answer by the deadline" {
		t.Errorf("a call that may run twice: %+v", c)
	}
	if c := calls[1]; c.Status != session.CallUnknown || c.Code != session.CodeOutcomeUnknown || !strings.Contains(c.Detail.String(), "may have taken effect") {
		t.Errorf("a call that may not: %+v", c)
	}
	if calls[2].Status != session.CallSucceeded || calls[3].Status != session.CallOpen {
		t.Errorf("the others: %+v, %+v", calls[2], calls[3])
	}
	w.refused(session.RejectEffectSettled, session.DoorTool, callSettled, result("r1t1c0", "succeeded", ""))
	w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", result("r1t1c0", "succeeded", ""), result("r1t1c3", "succeeded", "")))
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1", result("r1t1c3", "succeeded", ""))))
	w.refused(session.RejectBatchMismatch, session.DoorTool, batchSettled, w.batch("r1t1", result("r1t1c0", "failed", "")))
}

// A result with a host session changes it, and later calls are checked against
// that.
func TestHostSessionOfAHostLoop(t *testing.T) {
	t.Parallel()
	closed := map[string]any{"host_session": map[string]any{"id": "h9", "status": "closed"}}
	w := looped(t, nil, "loopn", "readyn")
	w.must(w.tell(session.DoorTool, callSettled, merged(result("r1t1c0", "succeeded", ""), closed)))
	if it := w.state.Items[len(w.state.Items)-1]; w.state.Host.Status != "closed" || it.Code != "tool_unavailable" || it.Call != 1 {
		t.Errorf("the host session is %+v, the last result %+v", w.state.Host, it)
	}

	// A whole batch was carried out as one: the last word counts, in the order
	// of the calls, from the next turn on.
	w = looped(t, nil, "loopn", "readyn")
	w.must(w.tell(session.DoorTool, batchSettled, w.batch("r1t1",
		merged(result("r1t1c1", "succeeded", ""), closed), merged(result("r1t1c0", "succeeded", ""), map[string]any{"host_session": map[string]any{"status": "error"}}))))
	if w.state.Host.Status != "closed" || w.state.Host.ID != "h9" || w.state.Items[3].Code != "" {
		t.Errorf("the host session is %+v, the results %+v", w.state.Host, w.state.Items[2:])
	}
	for _, tool := range w.state.View().Tools {
		if want := tool.ToolName != "readyn"; tool.Offered != want {
			t.Errorf("%s: offered %v, want %v", tool.ToolName, tool.Offered, want)
		}
	}
}

// The view has what a host loop needs: the arguments of its calls without a result,
// as far as they fit.
func TestHostLoopView(t *testing.T) {
	t.Parallel()
	w := looped(t, map[string]any{"deadlines_ms": map[string]any{"call": 5000}}, "loopp", "boxp", "onceloopp", "loopn")
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c0", "succeeded", "")))
	v := w.state.View().Batch
	if v.Batch != "r1t1" || v.Seq != 4 || v.PlanHash != w.state.LastPlan.String() || v.Group != 0 || fmt.Sprint(v.Groups) != "[[0 1 2] [3]]" {
		t.Errorf("the batch is %+v", v)
	}
	for i, want := range []session.ViewCall{
		{Effect: "r1t1c0", ToolID: "x.loopp", ToolName: "loopp", Status: session.CallSucceeded},
		{Effect: "r1t1c1", ToolID: "x.boxp", ToolName: "boxp", Status: session.CallOpen},
		{
			Effect: "r1t1c2", ToolID: "x.onceloopp", ToolName: "onceloopp", Status: session.CallOpen, Kind: "host_loop", HostLoop: "ide", Arguments: `{"a":2}`,
			Deadline: w.time + 5000, IdempotencyKey: "s1.r1t1c2",
		},
		{
			Effect: "r1t1c3", ToolID: "x.loopn", ToolName: "loopn", Status: session.CallWaiting, Kind: "host_loop", HostLoop: "ide", Arguments: `{"a":3}`,
			IdempotencyKey: "s1.r1t1c3", RetrySafe: true,
		},
	} {
		if v.Calls[i] != want {
			t.Errorf("call %d is %+v, want %+v", i, v.Calls[i], want)
		}
	}

	// A bridge's call of a later group has to be in a settlement of the batch;
	// one that the bridge was asked for, or that has ended, has not.
	w = looped(t, nil, "boxp", "loopn", "boxp")
	v = w.state.View().Batch
	for i, want := range []session.ViewCall{
		{Effect: "r1t1c0", ToolID: "x.boxp", ToolName: "boxp", Status: session.CallOpen},
		{
			Effect: "r1t1c1", ToolID: "x.loopn", ToolName: "loopn", Status: session.CallWaiting, Kind: "host_loop", HostLoop: "ide", Arguments: `{"a":1}`,
			IdempotencyKey: "s1.r1t1c1", RetrySafe: true,
		},
		{Effect: "r1t1c2", ToolID: "x.boxp", ToolName: "boxp", Status: session.CallWaiting, Arguments: `{"a":2}`},
	} {
		if v.Calls[i] != want {
			t.Errorf("call %d is %+v, want %+v", i, v.Calls[i], want)
		}
	}

	w = looped(t, nil, "nosuch")
	large := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 100<<10))
	w.calls("r1t2", []any{
		map[string]any{"tool_name": "loopp", "arguments": `{"a":0}`}, map[string]any{"tool_name": "loopp", "arguments": large},
		map[string]any{"tool_name": "loopp", "arguments": large},
	})
	calls := w.state.View().Batch.Calls
	if calls[0].Arguments != `{"a":0}` || calls[1].Arguments != large || calls[2].Arguments != "" || calls[2].HostLoop != "ide" {
		t.Errorf("%d, %d and %d bytes of arguments are shown, want the first two calls'", len(calls[0].Arguments), len(calls[1].Arguments), len(calls[2].Arguments))
	}
}
