package session_test

// The head, the ids, and events that are too large or come from nowhere.

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// An event that is too large is refused with the limit in its detail, and the
// session goes on.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	input := func(content any) any {
		return map[string]any{"input": content, "config": map[string]any{"provider": "p", "model": "m"}}
	}
	deep := map[string]any{"text": "a"}
	for range 20 {
		deep = map[string]any{"parts": []any{deep}}
	}
	tooDeep := deep
	for range 20 {
		tooDeep = map[string]any{"parts": []any{tooDeep}}
	}
	largeParts := make([]any, session.PartsMax+1)
	for i := range largeParts {
		largeParts[i] = map[string]any{"text": long("a", 1000)}
	}
	manyParts := make([]any, session.PartsMax+1)
	for i := range manyParts {
		manyParts[i] = map[string]any{"text": "a"}
	}
	for name, c := range map[string]struct {
		data   any
		want   error
		detail string
	}{
		"300 KiB of inline text": {input(map[string]any{"text": strings.Repeat("x", 300<<10)}), session.RejectLimitExceeded, "input.text: at most 262144 bytes: store it as a blob"},
		"256 KiB":                {input(map[string]any{"text": strings.Repeat("x", session.TextBytesMax)}), nil, ""},
		"an event over 768 KiB":  {input(map[string]any{"text": strings.Repeat("x", session.EventBytesMax)}), session.RejectLimitExceeded, "an event is at most 786432 bytes, this one has "},
		"64 parts":               {input(map[string]any{"parts": manyParts[1:]}), nil, ""},
		"65 parts":               {input(map[string]any{"parts": manyParts}), session.RejectLimitExceeded, "input.parts: at most 64"},
		"64 large parts":         {input(map[string]any{"parts": largeParts[1:]}), nil, ""},
		"65 large parts":         {input(map[string]any{"parts": largeParts}), session.RejectLimitExceeded, "input.parts: at most 64 in all"},
		"65 large ones inside":   {input(map[string]any{"parts": []any{map[string]any{"parts": largeParts[1:]}}}), session.RejectLimitExceeded, "input.parts: at most 64 in all"},
		"parts of another kind":  {input(map[string]any{"parts": long("x", 10_000)}), session.RejectInvalidData, "data: codec: this is text where an array should be"},
		"parts that are texts":   {input(map[string]any{"parts": []any{long("x", 10_000)}}), session.RejectInvalidData, "data: codec: this is text where a map should be"},
		"parts inside parts":     {input(deep), nil, ""},
		"parts without an end":   {input(tooDeep), session.RejectUndecodable, "codec: more than 64 containers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTold(t)
			door, payload := say(session.DoorIn, session.TypeRunRequested, c.data)
			notices, err := w.fold(door, payload)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want == nil {
				return
			}
			said := notices[len(notices)-1].Data.(session.EventRejected)
			if !strings.HasPrefix(said.Detail, c.detail) {
				t.Errorf("got %q, want %q", said.Detail, c.detail)
			}
			w.run(nil)
		})
	}
}

// The session refuses the ids of the last 128 accepted events with an id, and
// remembers no more.
func TestIDs(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	say := func(i int) error {
		_, err := w.fold(session.DoorCtl, fmt.Appendf(nil, `{"id":"i%d","type":"FactsSet","data":{"facts":{}}}`, i))
		return err
	}
	for i := range session.IDsMax + 1 {
		if err := say(i); err != nil {
			t.Fatalf("id %d: %v", i, err)
		}
		w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{}})) // without an id
	}
	for _, i := range []int{1, 2, session.IDsMax / 2, session.IDsMax} {
		if err := say(i); !errors.Is(err, session.RejectDuplicateEvent) {
			t.Errorf("id %d again: got %v, want %v", i, err, session.RejectDuplicateEvent)
		}
	}
	if err := say(0); err != nil {
		t.Errorf("the id before the last 128: got %v, want it to be forgotten", err)
	}
	if err := say(1); err != nil {
		t.Errorf("the id that this one pushed out: got %v, want it to be forgotten", err)
	}
	if got := len(w.state.IDs); got != session.IDsMax {
		t.Errorf("%d ids are remembered, want %d", got, session.IDsMax)
	}
}

// A repeated request or settlement is accepted without a notice, and changes only
// the head.
func TestRepeatsChangeNothing(t *testing.T) {
	t.Parallel()
	w := ready(t)
	request := map[string]any{"input": map[string]any{"text": "x"}, "submission": "s", "config": map[string]any{"provider": "p", "model": "m"}}
	w.must(w.tell(session.DoorIn, session.TypeRunRequested, request))
	w.must(w.fold(session.DoorCtl, []byte(`{"id":"i1","type":"FactsSet","data":{"facts":{"a":"b"}}}`)))
	calls := map[string]any{"effect": "r1t1", "calls": append(made(2, "stat", `{"path":"a"}`), made(1, "shell", `{"command":"a"}`)...)}
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, calls))
	result := map[string]any{"effect": "r1t1c1", "status": "failed", "host_session": map[string]any{"status": "closed"}}
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, result))
	for typ, data := range map[string]any{
		session.TypeRunRequested: request, session.TypeToolCallsObserved: calls, session.TypeToolCallSettled: result,
	} {
		door := map[string]session.Door{
			session.TypeRunRequested: session.DoorIn, session.TypeToolCallsObserved: session.DoorLLM, session.TypeToolCallSettled: session.DoorTool,
		}[typ]
		was := w.state.Record
		before := w.state.Bytes()
		notices, err := w.tell(door, typ, data)
		if err != nil || len(notices) > 0 || len(w.state.Withdrawals()) > 0 {
			t.Errorf("%s again: got %v, and %d notices", typ, err, len(notices))
		}
		again := w.state.Record
		again.Seq, again.Count, again.Chain, again.Leaf = was.Seq, was.Count, was.Chain, was.Leaf
		if after, err := codec.Marshal(&again); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s again: more than the head changed: %v", typ, err)
		}
	}
}

// The session's clock is the greatest time of an event or a wake so far, whatever
// the publisher's clock says.
func TestClock(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	at := func(ms int64, want int64) {
		t.Helper()
		w.time = ms
		w.must(w.fold(session.DoorCtl, []byte(`{"at":9000000000,"type":"FactsSet","data":{"facts":{}}}`)))
		if got := w.state.Clock; got != want {
			t.Errorf("after an event at %d the clock is %d, want %d", ms, got, want)
		}
	}
	at(1000, 1000)
	at(5000, 5000)
	at(4000, 5000)
	w.run(map[string]any{"deadlines_ms": map[string]any{"turn": 1000}})
	if e := w.open("r1t1"); e.Deadline != 6000 || e.StartBy != 5500 {
		t.Errorf("deadline %d, start by %d, want 6000 and 5500", e.Deadline, e.StartBy)
	}
	w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": "w1"}))
	if got := w.state.Clock; got != 6000 || w.state.Last.Code != session.CodeDeadlineExceeded {
		t.Errorf("after a wake the clock is %d, the run ended %+v", got, w.state.Last)
	}
	at(5900, 6000)
	at(7000, 7000)
}

// A clock of zero never means "never".
func TestFirstMillisecond(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.time = 0
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
	w.run(nil)
	w.calls("r1t1", made(2, "stat", `{"path":"a"}`))
	w.settled("r1t1c0")
	w.settled("r1t1c0") // a repeat is a no-op
}

// The chain covers every event with its sequence, door and time, including rejected
// ones.
func TestChain(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	history := demoHistory(t)
	history = append(history, session.Event{Session: "demo", Door: session.DoorIn, Seq: 99, Time: 2_000_000, Payload: []byte("nonsense")})
	fold := func(change func(e *session.Event)) *session.State {
		s := session.New(install, "demo")
		for i, e := range history {
			if i == 4 && change != nil {
				change(&e)
			}
			_, _ = s.Evolve(e)
		}
		return s
	}
	want := fold(nil)
	if want.Count != uint64(len(history)) || want.Seq != 99 || want.Leaf != session.LeafOf(history[len(history)-1]) {
		t.Errorf("the head is %d events, at %d", want.Count, want.Seq)
	}
	if got := fold(nil); got.Chain != want.Chain {
		t.Error("folded again, the chain is another")
	}
	for name, change := range map[string]func(e *session.Event){
		"sequence": func(e *session.Event) { e.Seq += 100 },
		"time":     func(e *session.Event) { e.Time++ },
		"door":     func(e *session.Event) { e.Door = session.DoorCtl },
		"payload":  func(e *session.Event) { e.Payload = append(slices.Clone(e.Payload), 0) },
	} {
		if got := fold(change); got.Chain == want.Chain {
			t.Errorf("with another %s the chain is the same", name)
		}
	}
}

// The same events give the same bytes and notices, again and again, on many
// threads, under one shared record.
func TestFoldIsDeterministic(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	for name, c := range map[string]struct {
		history []session.Event
		repeats int
	}{
		"the demo":      {demoHistory(t), 1000},
		"all scenarios": {mixedHistory(t), 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := foldedText(install, c.history)
			workers := 2 * runtime.GOMAXPROCS(0)
			differ := make([]int, workers)
			var all sync.WaitGroup
			for i := range workers {
				all.Go(func() {
					for range max(1, c.repeats/workers) {
						if foldedText(install, c.history) != want {
							differ[i]++
						}
					}
				})
			}
			all.Wait()
			for _, n := range differ {
				if n > 0 {
					t.Errorf("%d of %d folds left something else", n, c.repeats/workers)
				}
			}
		})
	}
}

// mixedHistory is the demo's, with runs that queue, refused events, refused
// calls, groups, wakes and repeats between.
func mixedHistory(t testing.TB) []session.Event {
	t.Helper()
	events, _ := eventsOfScenarios(t)
	history := demoHistory(t)
	for _, e := range events {
		n := uint64(len(history))
		history = append(history, session.Event{Session: "s1", Door: e.Door, Seq: n + 2, Time: 1_000_000 + int64(n)*1000, Payload: e.Payload})
	}
	return history
}

// foldedText is all that a fold leaves, after every event.
func foldedText(install *session.Install, history []session.Event) string {
	s := session.New(install, "s1")
	var text strings.Builder
	for _, e := range history {
		notices, err := s.Evolve(e)
		fmt.Fprintln(&text, s.Chain, err, s.Withdrawals())
		for _, n := range notices {
			text.Write(n.JSON())
		}
	}
	for _, e := range s.Open() {
		text.Write(e.Payload)
	}
	text.Write(s.Bytes())
	return text.String()
}
