package session_test

// Runs that are stopped and held at every event of real conversations: the
// project's two recordings of 30 calls, one with all of them in one batch, one
// with parallel groups in six.

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// recordedEvent is one event of a conversation, and what it settles.
type recordedEvent struct {
	door    session.Door
	typ     string
	data    map[string]any
	settles string
}

// stockInstall is a record with the recording's tools: what reads may stand
// side by side, what moves stock is on its own, and so is the printer.
func stockInstall(t testing.TB) *session.Install {
	t.Helper()
	var tools []any
	for _, name := range []string{"list_zones", "list_bins", "get_stock", "count_bin", "search_items", "move_stock", "send_label"} {
		reads := name != "move_stock" && name != "send_label"
		tool := map[string]any{
			"tool_id": "stock." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"},
			"executor": map[string]any{"kind": "effect", "target": "stock"}, "parallel_safe": reads, "retry_safe": reads,
		}
		if reads {
			tool["access"] = "read"
		}
		tools = append(tools, tool)
	}
	install, err := session.ParseInstall(asJSON(t, map[string]any{
		"v": 1, "rules": 1, "tools": tools, "config": map[string]any{"provider": "p", "model": "m"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// recordedHistory is the history of a conversation's first run: each call is
// settled by itself, in the order in which the session asks.
func recordedHistory(t testing.TB, conversation string) []recordedEvent {
	t.Helper()
	w, h := toldUnder(t, stockInstall(t)), []recordedEvent(nil)
	say := func(e recordedEvent) {
		t.Helper()
		w.must(w.tell(e.door, e.typ, e.data))
		h = append(h, e)
	}
	messages := recordedMessages(t, conversation)
	for i, m := range messages {
		switch {
		case i == 0:
			say(recordedEvent{session.DoorIn, session.TypeRunRequested, map[string]any{"input": text(m.Content)}, ""})
		case m.Role == "user":
			return h
		case m.Role == "tool": // said with the call, which comes before
		case len(m.Calls) == 0:
			name := w.asked()
			say(recordedEvent{session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok", "text": text(m.Content)}, name})
		default:
			name := w.asked()
			say(recordedEvent{session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": name, "calls": m.observed()}, name})
			for strings.Contains(w.asked(), "c") {
				call, _, _ := strings.Cut(w.asked(), " ")
				_, position, _ := strings.Cut(call, "c")
				n, err := strconv.Atoi(position)
				if err != nil {
					t.Fatal(err)
				}
				say(recordedEvent{session.DoorTool, session.TypeToolCallSettled, result(call, "succeeded", messages[i+1+n].Content), call})
			}
		}
	}
	return h
}

// recordedMessage is a message of a conversation.
type recordedMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (m *recordedMessage) observed() []any {
	var calls []any
	for _, c := range m.Calls {
		calls = append(calls, map[string]any{"tool_name": c.Function.Name, "arguments": c.Function.Arguments})
	}
	return calls
}

func recordedMessages(t testing.TB, conversation string) []recordedMessage {
	t.Helper()
	file, err := os.ReadFile("../../testdata/recordings/warehouse.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var c struct {
			ID       string            `json:"id"`
			Messages []recordedMessage `json:"messages"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if c.ID == conversation {
			return c.Messages
		}
	}
	t.Fatalf("no conversation %s is recorded", conversation)
	return nil
}

// moment is a session in the middle of a conversation.
type moment struct {
	*told
	said map[uint64]any  // what each event said, by sequence
	rest []recordedEvent // what was not said yet
	end  []byte          // what the whole conversation leaves: see apartFromOrder
}

// eachMoment calls f after each event of the conversations, and before the first.
func eachMoment(t *testing.T, f func(m *moment)) {
	t.Helper()
	for _, conversation := range []string{"warehouse-stocktake", "warehouse-audit"} {
		t.Run(conversation, func(t *testing.T) {
			t.Parallel()
			install, h, calls := stockInstall(t), recordedHistory(t, conversation), 0
			whole := &moment{told: toldUnder(t, install), said: map[uint64]any{}}
			for _, e := range h {
				whole.say(e)
				if e.typ == session.TypeToolCallSettled {
					calls++
				}
			}
			if calls != 30 || whole.state.Last.Lifecycle != session.Completed {
				t.Fatalf("%d calls are settled in %d events, and the run is %v", calls, len(h), whole.state.Last)
			}
			end := apartFromOrder(t, whole.state, whole.said)
			for k := range len(h) + 1 {
				m := &moment{told: toldUnder(t, install), said: map[uint64]any{}, rest: h, end: end}
				for range k {
					m.next()
				}
				f(m)
			}
		})
	}
}

// say folds an event that must be taken.
func (m *moment) say(e recordedEvent) {
	m.t.Helper()
	m.must(m.tell(e.door, e.typ, e.data))
	m.said[m.seq] = e.data
}

// next folds the next event of the conversation.
func (m *moment) next() {
	m.t.Helper()
	m.say(m.rest[0])
	m.rest = m.rest[1:]
}

// calls returns how the calls of the batch stand that is not complete.
func (m *moment) calls() []session.CallStatus {
	var all []session.CallStatus
	if t := m.state.Turn; t != nil && t.Batch != nil {
		for i := range t.Batch.Calls {
			all = append(all, t.Batch.Calls[i].Status)
		}
	}
	return all
}

// Whenever a run is cancelled, exactly its open effects are withdrawn, every call
// has one result that says whether it may have taken effect, late settlements
// change nothing, and the next run works.
func TestCancelAtEveryEvent(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(m *moment) {
		if m.state.Run == nil {
			m.refused(session.RejectRunNotActive, session.DoorIn, session.TypeRunCancelRequested, map[string]any{})
			return
		}
		var want []session.Withdrawal
		for _, e := range m.state.Open() {
			if e.Class != session.ClassWake {
				want = append(want, withdrawalOf(&e))
			}
		}
		stood := m.calls()
		m.in(session.TypeRunCancelRequested, nil)
		if got := m.state.Withdrawals(); len(want) == 0 || !slices.Equal(got, want) || m.asked() != "" {
			m.t.Errorf("event %d: withdrawn are %v, want %v; open is %q", m.seq, got, want, m.asked())
		}
		if m.state.Run != nil || m.state.Last.Lifecycle != session.Cancelled {
			m.t.Errorf("event %d: the run is %v", m.seq, m.state.Last)
		}
		m.checkResults(stood, map[session.CallStatus]string{session.CallOpen: "may have taken effect", session.CallWaiting: "before the call was started"})
		m.checkAfter()
	})
}

// Whenever a run is interrupted, nothing new is opened; open effects settle, every
// call has one result, and the run ends with the last of them.
func TestInterruptAtEveryEvent(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(m *moment) {
		if m.state.Run == nil {
			return
		}
		left, stood := strings.Fields(m.asked()), m.calls()
		m.in(session.TypeRunInterrupt, nil)
		if withdrawn := m.state.Withdrawals(); len(withdrawn) > 0 {
			m.t.Errorf("event %d: withdrawn are %v", m.seq, withdrawn)
		}
		for _, e := range m.rest {
			if got := strings.Fields(m.asked()); !slices.Equal(got, left) {
				m.t.Fatalf("event %d: open are %v, want %v", m.seq, got, left)
			}
			if at := slices.Index(left, e.settles); at >= 0 {
				left = slices.Delete(left, at, at+1)
				m.say(e)
				if calls, isCalls := e.data["calls"].([]any); isCalls {
					stood = slices.Repeat([]session.CallStatus{session.CallWaiting}, len(calls))
				}
			}
		}
		if m.state.Run != nil || m.state.Last.Lifecycle != session.Interrupted {
			m.t.Fatalf("event %d: the run goes on, or was %v", m.seq, m.state.Last)
		}
		m.checkResults(stood, map[session.CallStatus]string{session.CallWaiting: "before the call was started"})
		m.checkAfter()
	})
}

// While a run is paused nothing is opened. After a pause of one event it ends as it
// would have without.
func TestPauseAtEveryEvent(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(m *moment) {
		if m.state.Run != nil {
			before := strings.Fields(m.asked())
			m.in(session.TypeRunPauseRequested, nil)
			m.next()
			for _, name := range strings.Fields(m.asked()) {
				if !slices.Contains(before, name) {
					m.t.Errorf("event %d: %s is asked while the run is paused", m.seq, name)
				}
			}
			if m.state.Run != nil {
				m.in(session.TypeRunResumeRequested, nil)
			}
		}
		left := len(m.rest)
		for range left {
			m.next()
		}
		if got := apartFromOrder(m.t, m.state, m.said); !bytes.Equal(got, m.end) {
			m.t.Errorf("paused %d events before the end, it leaves other bytes:\n%q\nwant\n%q", left, got, m.end)
		}
	})
}

// checkResults checks that the transcript ends with one result for each call
// of the batch that was stopped: the session's where details has how the call
// stood, with that in its detail, else the call's own.
func (m *moment) checkResults(stood []session.CallStatus, details map[session.CallStatus]string) {
	m.t.Helper()
	items := m.state.Items[len(m.state.Items)-len(stood):]
	for i, status := range stood {
		it, detail := items[i], details[status]
		if it.Role != session.RoleTool || int(it.Call) != i || (it.Code == session.CodeCancelled) != (detail != "") || !strings.Contains(it.Detail.String(), detail) {
			m.t.Errorf("event %d: call %d was %s, its result is %+v", m.seq, i, status, it)
		}
	}
	if before := m.state.Items[len(m.state.Items)-len(stood)-1]; before.Role == session.RoleTool && len(stood) > 0 {
		m.t.Errorf("event %d: there are more results than %d calls", m.seq, len(stood))
	}
}

// checkAfter checks that what is said late, or once more, changes nothing but
// the head, and that the next run works, on the whole transcript.
func (m *moment) checkAfter() {
	m.t.Helper()
	before := beyondHead(m.t, m.state)
	for _, e := range m.rest {
		_, _ = m.tell(e.door, e.typ, e.data) // rejected, or a repeat
		if after := beyondHead(m.t, m.state); !bytes.Equal(after, before) || len(m.state.Withdrawals()) > 0 {
			m.t.Fatalf("event %d: %s of %s changed more than the head", m.seq, e.typ, e.settles)
		}
	}
	m.in(session.TypeRunRequested, map[string]any{"input": text("next")})
	if items := itemsOf(m.t, m.generation("r2t1").Items); m.asked() != "r2t1" || len(items) != len(m.state.Items) || items[len(items)-1].Seq != m.seq {
		m.t.Errorf("event %d: the next run asks %q with %d of %d items", m.seq, m.asked(), len(items), len(m.state.Items))
	}
	m.answered("r2t1")
	if end := m.state.Last; end.Number != 2 || end.Lifecycle != session.Completed {
		m.t.Errorf("event %d: the next run is %v", m.seq, end)
	}
}

// beyondHead returns a state's bytes without its head.
func beyondHead(t testing.TB, s *session.State) []byte {
	t.Helper()
	s.Bytes() // makes the hashes that are owed
	r := s.Record
	r.Seq, r.Count, r.Chain, r.Leaf, r.NoticeN = 0, 0, codec.Hash{}, codec.Hash{}, 0
	b, err := codec.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
