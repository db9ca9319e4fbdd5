package client_test

// A definition is set, named in requests, and refused when the session has another.

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// define sets a definition of s1, and returns its hash.
func (w *world) define(config, registry string) string {
	w.t.Helper()
	w.took("s1")(w.SetRegistry(w.ctx, "s1", json.RawMessage(registry), ""))
	w.took("s1")(w.Configure(w.ctx, "s1", json.RawMessage(config), ""))
	hash, err := client.DefinitionOf(json.RawMessage(config), json.RawMessage(registry))
	bustest.OK(w.t, err)
	return hash.String()
}

func TestRequestForAnotherDefinitionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	none, err := w.Definition(w.ctx, "s1")
	if err != nil || !none.IsZero() {
		t.Errorf("of no session: got %s (%v), want zero", none, err)
	}
	first := w.define(`{"provider":"p","model":"m"}`, `{"tools":[]}`)
	if got, err := w.Definition(w.ctx, "s1"); err != nil || got.String() != first {
		t.Errorf("got %s (%v), want %s", got, err, first)
	}
	w.submit("hi", client.RunOptions{Agent: first})
	w.answer("s1", 1, "hello")
	second := w.define(`{"provider":"p","model":"m","system":"Be brief."}`, `{"tools":[]}`)
	var refused *client.RejectedError
	seq, err := w.Run(w.ctx, "s1", "ho", client.RunOptions{Agent: first})
	bustest.OK(t, err)
	if _, err := w.RunOf(w.ctx, "s1", seq); !errors.As(err, &refused) || refused.Code != session.RejectAgentChanged {
		t.Errorf("for the first definition: got %v, want agent_changed", err)
	}
	w.theOne("the same submission for another definition", w.submit("hi", client.RunOptions{Agent: second}), 0, nil)

	// A snapshot that has folded the repeat.
	repeat := w.submit("hi", client.RunOptions{Agent: first})
	snap := w.replay("s1", 0).State.Snapshot()
	bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", snap.Seq, snap.Bytes()))
	if run, err := w.RunOf(w.ctx, "s1", repeat); err != nil || run != 1 {
		t.Errorf("the repeat: got run %d (%v), want 1", run, err)
	}
}

func TestDefinitionsThatNoSessionAcceptsAreErrors(t *testing.T) {
	t.Parallel()
	for _, of := range [][2]string{
		{`{"provider":"p"}`, `{"tools":[]}`},
		{`{"provider":"p","model":"m","tool_choice":"gone"}`, `{"tools":[]}`},
		{`{"provider":"p","model":"m","colour":"red"}`, `{"tools":[]}`},
		{`{"provider":"p","model":"m"}`, `{"tools":[{"tool_id":"a"}]}`},
		{`{`, `{"tools":[]}`}, {`{}`, `[`},
	} {
		if got, err := client.DefinitionOf(json.RawMessage(of[0]), json.RawMessage(of[1])); err == nil {
			t.Errorf("%s and %s: got %s, want an error", of[0], of[1], got)
		}
	}
}

func TestFactsAreSetAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	one, two := "1", "2"
	w.took("s1")(w.SetFacts(w.ctx, "s1", map[string]*string{"b": &two, "a": &one}, ""))
	w.took("s1")(w.SetFacts(w.ctx, "s1", map[string]*string{"b": nil}, ""))
	w.refuses("s1", session.RejectUnknownProfile)(w.SelectProfile(w.ctx, "s1", "nobody", ""))
	v, err := w.View(w.ctx, "s1")
	if err != nil || len(v.Facts) != 1 || v.Facts[0].Name != "a" || v.Facts[0].Value != "1" {
		t.Errorf("got %+v (%v), want a=1", v.Facts, err)
	}
}

// Placed and Began return where a run began: at its request, or at that which it
// repeats.
func TestBeginOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first := w.submit("hi", client.RunOptions{})
	second := w.ask("s1", "queued")
	steered, err := w.Steer(w.ctx, "s1", "more", client.ControlOptions{Run: 1})
	bustest.OK(t, err)
	repeat := w.submit("hi", client.RunOptions{})
	for _, c := range []struct {
		seq, began uint64
		run        uint32
	}{{first, first, 1}, {second, second, 2}, {steered, first, 1}, {repeat, first, 1}} {
		run, began, err := w.Placed(w.ctx, "s1", c.seq)
		if err != nil || run != c.run || began != c.began {
			t.Errorf("event %d: got run %d from %d (%v), want %d from %d", c.seq, run, began, err, c.run, c.began)
		}
	}
	if _, err := w.Began(w.ctx, "s1", 3); !errors.Is(err, client.ErrNoRun) {
		t.Errorf("run 3: got %v, want %v", err, client.ErrNoRun)
	}
}

// An EventViewer shows each event between the steps of the text.
func TestEventViewerShowsEventsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	v, err := w.EventViewer(w.ctx, "s1")
	bustest.OK(t, err)
	defer v.Close()
	seq := w.ask("s1", "hi")
	w.stored("s1", "r1t1")
	answered := w.answer("s1", 1, "hello")
	var got []string
	for s, err := range v.Shown(w.ctx, seq) {
		bustest.OK(t, err)
		line := string(s.Kind) + " " + s.Text
		if s.Event != nil {
			line += s.Event.Notices[len(s.Event.Notices)-1].Type
		}
		got = append(got, line)
		if s.Kind == client.ShownEnd {
			break
		}
	}
	want := []string{"event RunStarted", "text hello", "done ", "event RunFinished", "end "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; answered at %d", got, want, answered)
	}
}
