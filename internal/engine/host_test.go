package engine_test

// From a request to its answer; a host that takes over after a drain, a kill,
// a restart of the server; what stops one session and nobody else.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

func TestRunFromRequestToAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{})
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	w.publish(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "open_session", "arguments": "{}"}},
	})
	w.asked(session.ClassTool, "host", "s1", "r1t1c0")
	w.publish(session.DoorTool, "s1", session.TypeToolCallSettled, map[string]any{
		"effect": "r1t1c0", "status": "succeeded", "host_session": map[string]any{"id": "h", "status": "ready"},
	})
	w.asked(session.ClassLLM, "openai", "s1", "r1t2")
	w.answer("s1", "r1t2", "done")
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted RunFinished"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	view := w.view("s1")
	if want := w.folded("s1").Hash().String(); view.Hash != want || view.Lifecycle != session.Completed {
		t.Errorf("view: %s %s, want completed %s", view.Lifecycle, view.Hash, want)
	}
}

func TestAnotherHostGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.host(engine.Options{SnapshotEach: 2})
	const sessions = 12
	for i := range sessions {
		sid := fmt.Sprintf("s%d", i)
		w.run(sid, "hi")
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
	}
	first.stop(w)
	// What arrives meanwhile waits in the log.
	for i := range sessions {
		w.answer(fmt.Sprintf("s%d", i), "r1t1", "done")
	}
	w.host(engine.Options{SnapshotEach: 2})
	for i := range sessions {
		if got, want := w.notices(fmt.Sprintf("s%d", i), 3), "SessionOpened RunStarted RunFinished"; got != want {
			t.Errorf("s%d: got %q, want %q", i, got, want)
		}
	}
}

func TestKilledHostLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.host(engine.Options{})
	w.run("s1", "one")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	first.bus.Close() // its lanes are not handed over: the pins run out
	w.answer("s1", "r1t1", "1")
	w.run("s1", "two")
	w.host(engine.Options{})
	w.asked(session.ClassLLM, "openai", "s1", "r2t1")
	if got, want := w.notices("s1", 4), "SessionOpened RunStarted RunFinished RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
}

func TestUndecodableEventIsRejectedAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{})
	if _, err := w.bus.Publish(w.ctx, session.DoorIn, "s1", []byte("{\"type\": \xff"), ""); err != nil {
		t.Fatal(err)
	}
	w.run("s1", "hi")
	if got, want := w.notices("s1", 3), "SessionOpened EventRejected RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
}

func TestOtherBytesUnderANameQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forged := session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "openai", Payload: []byte{0x80}}
	if err := errors.Join(w.bus.Store(w.ctx, []journal.Output{{Session: "s1", Effect: &forged}})...); err != nil {
		t.Fatal(err)
	}
	w.host(engine.Options{})
	w.run("s1", "hi")
	w.run("s2", "hi") // another session of the same host goes on
	w.asked(session.ClassLLM, "openai", "s2", "r1t1")
	bustest.Until(t, "a quarantine", func() bool {
		_, found, err := w.bus.GetQuarantine(w.ctx, "s1")
		return err == nil && found
	})
	if got := w.notices("s1", 1); got != session.NoticeSessionQuarantined {
		t.Errorf("notices: got %q", got)
	}
	body, _, err := w.bus.GetQuarantine(w.ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"expected the 1 bytes that are stored, of the hash " + codec.Sum(forged.Payload).String(),
		", of the hash " + codec.Sum(w.folded("s1").Open()[0].Payload).String() + ": the session folded differently",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the reason is %s, which does not tell %q", body, want)
		}
	}
}

// The notices of a quarantine and of its release say what the notice before said.
func TestQuarantineAndReleaseKeepTheSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	host := w.begin(engine.Options{})
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	w.answer("s1", "r1t1", "hello")
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted RunFinished"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	host.stop(w)
	forged := session.Effect{Name: "r2t1", Class: session.ClassLLM, Target: "openai", Payload: []byte{0x80}}
	bustest.OK(t, errors.Join(w.bus.Store(w.ctx, []journal.Output{{Session: "s1", Effect: &forged}})...))
	w.run("s1", "again")
	want := session.Summary{Lifecycle: session.Completed, WaitsFor: "nobody", Run: 1, Provider: "openai", Model: "m", Text: "hello"}
	for n, err := range w.bus.LastNotices(w.ctx, []string{"s1"}, 0) {
		bustest.OK(t, err)
		if got, ok := n.Summary(); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("before: got %+v, want %+v", got, want)
		}
	}
	w.host(engine.Options{})
	last := func(what string, quarantined bool) {
		t.Helper()
		want.Quarantined = quarantined
		var got session.Summary
		bustest.Until(t, what, func() bool {
			var err error
			got, err = w.bus.LastSummary(w.ctx, "s1")
			return err == nil && got.Quarantined == quarantined
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	last("the quarantine", true)
	bustest.Until(t, "the quarantine is stored", func() bool {
		_, found, err := w.bus.GetQuarantine(w.ctx, "s1")
		return err == nil && found
	})
	// It goes on behind the log's end: none of its events is folded.
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", []byte(`{"seq":1000,"reason":"a test","released":true}`)))
	last("the release", false)
}

func TestAReleasedSessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := []byte(`{"seq":2,"reason":"a test"}`)
	if err := w.bus.PutQuarantine(w.ctx, "s1", body); err != nil {
		t.Fatal(err)
	}
	w.host(engine.Options{})
	w.run("s1", "one")
	w.run("s9", "a sign that the lane goes on") // of the same lane
	if subjects.Lane(subjects.Partition("s1")) != subjects.Lane(subjects.Partition("s9")) {
		t.Fatal("s1 and s9 are of two lanes: choose others")
	}
	if got, want := w.notices("s9", 2), "SessionOpened RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	if err := w.bus.PutQuarantine(w.ctx, "s1", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted SessionReleased"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
}

// A lane on which no event arrives has no owner, and views are still answered.
func TestAViewNeedsNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.host(engine.Options{})
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	first.stop(w)
	w.host(engine.Options{})
	if v := w.view("s1"); v.WaitsFor != "model" {
		t.Errorf("view: it waits for %q, want the model", v.WaitsFor)
	}
	_, err := w.bus.RequestView(w.ctx, "nobody")
	if err == nil || !strings.Contains(err.Error(), "no event of this session") {
		t.Errorf("view of a session without events: got %v", err)
	}
}

func TestManyViewsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{})
	w.host(engine.Options{})
	const sessions = 100
	for i := range sessions {
		w.run(fmt.Sprintf("s%d", i), "hi")
	}
	w.view("s0")
	views := make(chan error, sessions)
	for i := range sessions {
		go func() {
			_, err := w.bus.RequestView(w.ctx, fmt.Sprintf("s%d", i))
			views <- err
		}()
	}
	for range sessions {
		if err := <-views; err != nil {
			t.Error(err)
		}
	}
}

func TestAServerRestartIsNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{})
	w.run("s1", "one")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	w.node.Stop()
	w.node.Start()
	w.answer("s1", "r1t1", "1")
	w.run("s1", "two")
	w.asked(session.ClassLLM, "openai", "s1", "r2t1")
	if got, want := w.notices("s1", 4), "SessionOpened RunStarted RunFinished RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	if v, want := w.view("s1"), w.folded("s1").Hash().String(); v.Hash != want {
		t.Errorf("view: got %s, want %s", v.Hash, want)
	}
}

func TestUnknownRulesEndTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.begin(engine.Options{})
	w.run("old", "hi")
	w.asked(session.ClassLLM, "openai", "old", "r1t1")
	if _, _, err := w.bus.PublishInstall(w.ctx, []byte(`{"v":1,"rules":2,"tools":[]}`), false); err != nil {
		t.Fatal(err)
	}
	w.run("fresh", "hi")
	select {
	case err := <-r.done:
		if err == nil || !strings.Contains(err.Error(), "rules 2") || !strings.Contains(err.Error(), "upgrade") {
			t.Errorf("host: got %v, want an error that tells the rules and what to do", err)
		}
	case <-w.ctx.Done():
		t.Error("host does not end")
	}
	if got := w.folded("old").NoticeN; got != 2 {
		t.Errorf("the old session said %d notices, want 2", got)
	}
}

// A drain ends in time, whatever hangs.
func TestADrainWithoutAServerEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.begin(engine.Options{DrainFor: 300 * time.Millisecond})
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	w.node.Stop()
	r.cancel()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	select {
	case err := <-r.done: // it may tell that it could not say good-bye
		t.Logf("host: %v", err)
	case <-ctx.Done():
		t.Error("host does not end")
	}
	w.node.Start() // for what the test has open
}
