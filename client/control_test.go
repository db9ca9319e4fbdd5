package client_test

// Controls of runs: each is published, and its outcome is returned.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// took returns the view after a request, which the session must accept.
func (w *world) took(sid string) func(seq uint64, err error) session.View {
	return func(seq uint64, err error) session.View {
		w.t.Helper()
		bustest.OK(w.t, err)
		v, err := w.Taken(w.ctx, sid, seq)
		if err != nil {
			w.t.Fatalf("event %d: %v", seq, err)
		}
		return v
	}
}

// refuses checks that the session refuses a request, and that the notice has the
// same reason.
func (w *world) refuses(sid string, code session.Rejection) func(seq uint64, err error) {
	return func(seq uint64, err error) {
		w.t.Helper()
		bustest.OK(w.t, err)
		var refused *client.RejectedError
		if _, err := w.Taken(w.ctx, sid, seq); !errors.As(err, &refused) || refused.Code != code {
			w.t.Fatalf("event %d: got %v, want %s", seq, err, code)
		}
		for n, err := range w.Notices(w.ctx, sid, 0) {
			bustest.OK(w.t, err)
			if d, ok := n.Body().(session.EventRejected); ok && d.Seq == seq {
				if d.Code != code || d.Detail != refused.Detail {
					w.t.Errorf("event %d: the notice says %s: %s, the fold %s: %s", seq, d.Code, d.Detail, code, refused.Detail)
				}
				return
			}
		}
	}
}

func TestRunIsControlled(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	c, took := w.Client, w.took("s1")
	operator := client.ControlOptions{Operator: true, Reason: "a test"}
	if v := took(w.Run(w.ctx, "s1", "one", client.RunOptions{})); v.Run == nil || v.Run.Number != 1 || v.WaitsFor != "model" {
		t.Errorf("run: got %+v", v.Run)
	}
	if v := took(c.Pause(w.ctx, "s1", client.ControlOptions{Run: 1, Reason: "a test"})); v.Lifecycle != session.Paused {
		t.Errorf("pause: got %s", v.Lifecycle)
	}
	w.refuses("s1", session.RejectIllegalTransition)(c.Pause(w.ctx, "s1", client.ControlOptions{}))
	if v := took(c.Resume(w.ctx, "s1", &session.Budget{Tokens: 9}, client.ControlOptions{})); v.Lifecycle != session.Running || v.Run.Budget == nil || v.Run.Budget.Tokens != 9 {
		t.Errorf("resume: got %s with %+v", v.Lifecycle, v.Run.Budget)
	}
	if v := took(c.Steer(w.ctx, "s1", "and then?", client.ControlOptions{})); len(v.Run.Steers) != 1 {
		t.Errorf("steer: got %+v", v.Run)
	}
	took(w.Run(w.ctx, "s1", "two", client.RunOptions{}))
	if v := took(c.EditRun(w.ctx, "s1", "2", client.ControlOptions{Run: 2})); len(v.Queue) != 1 || v.Queue[0].Seq != v.Seq {
		t.Errorf("edit: got %+v", v.Queue)
	} else if input, err := c.Input(w.ctx, v.Queue[0].Seq); err != nil || input.Text != "2" {
		t.Errorf("its input: got %+v (%v)", input, err)
	}
	w.refuses("s1", session.RejectStale)(c.EditRun(w.ctx, "s1", "3", client.ControlOptions{Run: 3}))
	took(w.Run(w.ctx, "s1", "three", client.RunOptions{}))
	if v := took(c.Cancel(w.ctx, "s1", client.ControlOptions{Run: 3})); len(v.Queue) != 1 || v.Run.Number != 1 {
		t.Errorf("cancel of a queued run: got %+v", v.Queue)
	}
	if v := took(c.Cancel(w.ctx, "s1", operator)); v.Run == nil || v.Run.Number != 2 || v.Last.Lifecycle != session.Cancelled || v.Last.Detail != "a test" {
		t.Errorf("cancel: got %+v after %+v", v.Run, v.Last)
	}
	if v := took(c.Interrupt(w.ctx, "s1", operator)); v.Lifecycle != session.Interrupting {
		t.Errorf("interrupt: got %s", v.Lifecycle)
	}
	w.answer("s1", 2, "2")
	if v := took(c.CloseSession(w.ctx, "s1", "")); v.Status != "closed" || v.Last.Lifecycle != session.Interrupted {
		t.Errorf("close: got %s after %+v", v.Status, v.Last)
	}
	w.refuses("s1", session.RejectSessionClosed)(c.Steer(w.ctx, "s1", "hi", client.ControlOptions{}))
	if r := w.replay("s1", 0); !r.Identical() {
		t.Errorf("replay: %q", r.Differences)
	}
}

func TestRunOfExplicitCompletionEndsOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	explicit := client.RunOptions{Config: []byte(`{"provider":"p","model":"m","completion":"explicit"}`)}
	ask := func(text string) uint64 {
		t.Helper()
		seq, err := w.Run(w.ctx, "s1", text, explicit)
		bustest.OK(t, err)
		return seq
	}
	first := ask("one")
	w.answer("s1", 1, "1")
	w.took("s1")(w.CompleteRun(w.ctx, "s1", client.ControlOptions{Reason: "good"}))
	if end := w.end("s1", first); end.Lifecycle != session.Completed || end.Detail != "good" || end.Output == nil || end.Output.Text != "1" {
		t.Errorf("completed: got %+v, want the answer from before", end)
	}
	second := ask("two")
	w.refuses("s1", session.RejectIllegalTransition)(w.FailRun(w.ctx, "s1", "bad", client.ControlOptions{}))
	w.answer("s1", 2, "2")
	w.took("s1")(w.FailRun(w.ctx, "s1", "bad", client.ControlOptions{Run: 2, Reason: "why"}))
	if end := w.end("s1", second); end.Lifecycle != session.Failed || end.Code != "bad" || end.Detail != "why" {
		t.Errorf("failed: got %+v", end)
	}
}

// The outcome of an event is the same with a snapshot before, at, or after it.
func TestTakenWithSnapshotBeforeAndAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seqs []uint64
	want := map[uint64]string{}
	sent := func(seq uint64, err error) {
		t.Helper()
		bustest.OK(t, err)
		seqs = append(seqs, seq)
	}
	sent(w.Run(w.ctx, "s1", "hi", client.RunOptions{}))
	sent(w.Pause(w.ctx, "s1", client.ControlOptions{}))
	sent(w.Pause(w.ctx, "s1", client.ControlOptions{}))
	sent(w.Resume(w.ctx, "s1", nil, client.ControlOptions{}))
	tell := func(seq uint64) string {
		v, err := w.Taken(w.ctx, "s1", seq)
		return fmt.Sprint(v.Count, v.Lifecycle, err)
	}
	for _, seq := range seqs {
		want[seq] = tell(seq)
	}
	if got := want[seqs[2]]; !strings.Contains(got, "illegal_transition: a run that is paused takes no pause") {
		t.Errorf("the second pause: got %s", got)
	}
	for _, at := range seqs {
		snap := w.replay("s1", at).State.Snapshot()
		bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", snap.Seq, snap.Bytes()))
		for _, seq := range seqs {
			if got := tell(seq); got != want[seq] {
				t.Errorf("event %d with a snapshot at %d: got %s, want %s", seq, at, got, want[seq])
			}
		}
	}
	bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", seqs[3]+1, []byte("no snapshot")))
	if got := tell(seqs[3]); got != want[seqs[3]] {
		t.Errorf("with a broken snapshot: got %s, want %s", got, want[seqs[3]])
	}
	other := w.ask("s2", "hi")
	for _, seq := range []uint64{other, other + 7} {
		if _, err := w.Taken(w.ctx, "s1", seq); !errors.Is(err, client.ErrNoSession) {
			t.Errorf("event %d: got %v, want that it is not there", seq, err)
		}
		if _, err := w.RunOf(w.ctx, "s1", seq); !errors.Is(err, client.ErrNoSession) {
			t.Errorf("the run of event %d: got %v, want that it is not there", seq, err)
		}
	}
	if _, err := w.RunOf(w.ctx, "s1", seqs[3]); err == nil || !strings.Contains(err.Error(), "requests no run") {
		t.Errorf("the run of a resume: got %v", err)
	}
}

// Taken reports the quarantine for events after the stop, and not for earlier ones.
func TestTakenOfQuarantinedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.ask("s1", "hi")
	w.answer("s1", 1, "hello")
	after := w.ask("s1", "more")
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, after)))
	var stopped *client.QuarantinedError
	if _, err := w.Taken(w.ctx, "s1", after); !errors.As(err, &stopped) || stopped.Reason != "a test" {
		t.Errorf("after it stopped: got %v", err)
	}
	if _, err := w.RunOf(w.ctx, "s1", after); !errors.As(err, &stopped) {
		t.Errorf("the run of what came after it stopped: got %v", err)
	}
	if _, err := w.Taken(w.ctx, "s1", before); err != nil {
		t.Errorf("before it stopped: got %v", err)
	}
	if end := w.end("s1", before); end.Run != 1 || end.Output.Text != "hello" {
		t.Errorf("the run that ended: got %+v", end)
	}
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s2", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, w.ask("s2", "hi")+1)))
	last, err := w.LastEvent(w.ctx)
	bustest.OK(t, err)
	if _, err := w.End(w.ctx, "s2", last, 0, nil); !errors.As(err, &stopped) {
		t.Errorf("a run that stands still: got %v", err)
	}
}

func TestInvalidControlsAreNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reason := client.ControlOptions{Reason: "why"}
	for want, ask := range map[string]func(context.Context) (uint64, error){
		"reason: belongs":  func(ctx context.Context) (uint64, error) { return w.Steer(ctx, "s1", "hi", reason) },
		"reason: belongs ": func(ctx context.Context) (uint64, error) { return w.EditRun(ctx, "s1", "hi", reason) },
		"by its number": func(ctx context.Context) (uint64, error) {
			return w.EditRun(ctx, "s1", "hi", client.ControlOptions{})
		},
		"UTF-8": func(ctx context.Context) (uint64, error) {
			return w.Steer(ctx, "s1", "\xff", client.ControlOptions{})
		},
		"files: belong": func(ctx context.Context) (uint64, error) {
			return w.Cancel(ctx, "s1", client.ControlOptions{Files: []client.File{{Name: "a.txt", Data: []byte("a")}}})
		},
		"file a.zip: by its content": func(ctx context.Context) (uint64, error) {
			return w.Steer(ctx, "s1", "hi", client.ControlOptions{Files: []client.File{{Name: "a.zip", Data: []byte("PK\x03\x04\xff")}}})
		},
		"at most 63 in one input": func(ctx context.Context) (uint64, error) {
			return w.EditRun(ctx, "s1", "hi", client.ControlOptions{Run: 2, Files: make([]client.File, client.FilesMax+1)})
		},
		"may change arguments": func(ctx context.Context) (uint64, error) {
			return w.Deny(ctx, client.Approval{Session: "s1"}, client.DecideOptions{Arguments: "{}"})
		},
	} {
		if _, err := ask(w.ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if last, err := w.LastEvent(w.ctx); err != nil || last != 1 {
		t.Errorf("the log ends at %d (%v), want 1: nothing is sent", last, err)
	}
}

// TestViewNowIsNeverBehindTheLog: the view has each event that is in the log, though no
// session-actor has read it.
func TestViewNowIsNeverBehindTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.ViewNow(w.ctx, "s1"); !errors.Is(err, client.ErrNoSession) {
		t.Errorf("a session without events: got %v, want ErrNoSession", err)
	}
	for n := uint32(1); n <= 3; n++ {
		if _, err := w.Run(w.ctx, "s1", "hi", client.RunOptions{}); err != nil {
			t.Fatal(err)
		}
		v, err := w.ViewNow(w.ctx, "s1")
		if err != nil || v.Run == nil || v.Run.Number != 1 || len(v.Queue) != int(n)-1 {
			t.Errorf("after request %d: got run %+v, a queue of %d (%v)", n, v.Run, len(v.Queue), err)
		}
	}
}
