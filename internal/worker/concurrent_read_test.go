package worker

// A model turn's transcript is read while its claim is in progress, and either may
// fail. Time is virtual.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/subjects"
)

// concurrentCase is a failure of the read or the claim, and the result in the end.
type concurrentCase struct {
	name   string
	unsure bool // nothing was read here before
	first  Claim
	second Claim
	beats  []string
	read   func(w *world, n int) error  // the nth read of the log; nil: all work
	gone   bool                         // the transcript is not in the log
	later  func(t *testing.T, w *world) // after 20 s

	settled []string
	started int
	acked   bool
	stands  [2]Claim // of the first two
}

var errNoRead = errors.New("the log does not answer")

// once fails the first read.
func once(_ *world, n int) error {
	if n == 1 {
		return errNoRead
	}
	return nil
}

// silence fails for about 10 s, for 8 s of which nobody hears us.
func silence(w *world, n int) error {
	if n == 1 {
		w.beat("me", false)
		time.AfterFunc(8*time.Second, func() { w.beat("me", true) })
	}
	if n <= 5 {
		return errNoRead
	}
	return nil
}

func never(*world, int) error { return errNoRead }

var concurrentCases = []concurrentCase{
	{name: "both work", settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: [2]Claim{byMe}},
	{name: "the read fails: ours, and later", read: once, settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: [2]Claim{byMe}},
	{name: "all reads fail: ours until it is late", read: never, settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: [2]Claim{byMe}},
	{name: "the first read of a bridge fails: not claimed", unsure: true, read: once, settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: [2]Claim{byMe}},
	{
		name: "a bridge that reads nothing claims nothing before it is late", unsure: true, read: never,
		settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: [2]Claim{withdrawn},
	},
	{
		// Another bridge may have found us gone while the turn was given back.
		name: "the read fails, nobody hears us, nobody took over: claimed again", read: silence, later: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: [2]Claim{byMe, byMe},
	},
	{
		name: "the read fails, nobody hears us, taken over", read: silence, second: byOther, beats: []string{"other"},
		later: isOpenAt(true, 9), stands: [2]Claim{byMe, byOther},
	},
	{name: "the read fails, withdrawn", read: never, first: withdrawn, acked: true, stands: [2]Claim{withdrawn}},
	{name: "the read fails, held", read: never, first: byOther, beats: []string{"other"}, stands: [2]Claim{byOther}},
	{name: "unreadable: ours to say so", gone: true, settled: []string{"r1t1 failed transcript_unreadable"}, acked: true, stands: [2]Claim{byMe}},
	{name: "unreadable, and unsure", gone: true, unsure: true, settled: []string{"r1t1 failed transcript_unreadable"}, acked: true, stands: [2]Claim{byMe}},
	{name: "unreadable, withdrawn", gone: true, first: withdrawn, acked: true, stands: [2]Claim{withdrawn}},
	{name: "unreadable, held: not ours to say", gone: true, first: byOther, beats: []string{"other"}, stands: [2]Claim{byOther}},
}

func TestTranscriptIsReadWhileClaiming(t *testing.T) {
	t.Parallel()
	for _, c := range concurrentCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.run)
		})
	}
}

func (c concurrentCase) run(t *testing.T) {
	w, q := newWorld(), newQueue()
	input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
	if c.gone {
		input += 7
	}
	name := func(n int) subjects.ClaimName { return turnClaim("r1t1", n) }
	for i, cl := range []Claim{c.first, c.second} {
		if cl != (Claim{}) {
			w.setClaim(name(i+1), cl)
		}
	}
	for _, other := range c.beats {
		w.beat(other, true)
	}
	reads := 0
	w.eventsLost = func() error {
		if reads++; c.read == nil {
			return nil
		}
		return c.read(w, reads)
	}
	var starts ledger
	b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: starts.model()})
	b.reads.Store(!c.unsure)
	q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
	pass(time.Second)
	if _, claimed := w.claimOf(name(1)); claimed == (c.unsure && c.read != nil) {
		t.Errorf("after a second it is claimed: %v", claimed)
	}
	pass(20 * time.Second)
	if c.later != nil {
		c.later(t, w)
	}
	pass(testStartBy + 20*time.Second)
	b.stop()
	synctest.Wait()

	w.wantSettled(t, c.settled...)
	if got := len(starts.all()); got != c.started {
		t.Errorf("started: got %d, want %d", got, c.started)
	}
	if acked, _ := q.counts(); (acked == 1) != c.acked {
		t.Errorf("acked: got %d, want %v", acked, c.acked)
	}
	for i, want := range c.stands {
		if got, _ := w.claimOf(name(i + 1)); got != want {
			t.Errorf("claim %d: got %+v, want %+v", i+1, got, want)
		}
	}
}

// Neither waits for the other: the log and the claims answer when both are asked.
func TestReadAndClaimRunConcurrently(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		reading, claiming := make(chan struct{}), make(chan struct{})
		w.claimLost = func(subjects.ClaimName) error {
			close(claiming)
			<-reading
			return nil
		}
		w.eventsLost = func() error {
			close(reading)
			<-claiming
			return nil
		}
		input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
			return executor.Answer{Text: "hello"}, nil
		})})
		b.reads.Store(true)
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
		pass(time.Second)
		b.stop()
		w.wantSettled(t, "r1t1 ok")
	})
}
