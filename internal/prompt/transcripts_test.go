package prompt

// The cache of events from one turn to the next: a turn reads only new events.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

// longSession adds n items of a session, inputs and answers in turn.
func longSession(t *testing.T, l *fakeLog, sid string, n int) (items []session.Item) {
	t.Helper()
	for i := range n {
		if i%2 == 0 {
			seq := l.say(t, session.DoorIn, sid, session.TypeRunRequested, session.RunRequested{Input: *text(fmt.Sprint("question ", i))})
			items = append(items, session.Item{Role: session.RoleUser, Seq: seq})
			continue
		}
		seq := l.say(t, session.DoorLLM, sid, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("r%dt1", i/2+1), Status: "ok", Text: text(fmt.Sprint("answer ", i)),
		})
		items = append(items, session.Item{Role: session.RoleAssistant, Seq: seq})
	}
	return items
}

func TestTurnReadsOnlyNewEvents(t *testing.T) {
	t.Parallel()
	l := newLog()
	r := New(l)
	items := longSession(t, l, "s1", 1000)
	for _, turn := range []struct {
		name string
		to   int
		want []int // events in each request
	}{
		{"cold", 990, append(slices.Repeat([]int{eventsAtOnce}, 990/eventsAtOnce), 990%eventsAtOnce)},
		{"again", 990, nil},
		{"the next turn", 992, []int{2}},
		{"the last one", 1000, []int{8}},
	} {
		l.requests = nil
		g := generation("r500t1", items[:turn.to]...)
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%s: %v, %v", turn.name, fault, err)
		}
		if len(request.Messages) != turn.to || !slices.Equal(l.requests, turn.want) {
			t.Errorf("%s: %d messages, requests for %v events, want %v", turn.name, len(request.Messages), l.requests, turn.want)
		}
	}
}
