package client_test

// The same submission is one run, however many programs request it, however
// often, and whatever the outcome of the first.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// submit requests a run with a submission.
func (w *world) submit(text string, o client.RunOptions) uint64 {
	w.t.Helper()
	o.Submission = cmp.Or(o.Submission, "once")
	seq, err := w.Run(w.ctx, "s1", text, o)
	bustest.OK(w.t, err)
	return seq
}

// theOne checks that the request at seq belongs to run 1, with this answer.
func (w *world) theOne(what string, seq, from uint64, each func(client.Notice)) {
	w.t.Helper()
	end, err := w.End(w.ctx, "s1", seq, from, each)
	if err != nil || end.Run != 1 || end.Output == nil || end.Output.Text != "hello" {
		w.t.Errorf("%s: got %+v (%v), want run 1 with hello", what, end, err)
	}
}

func TestRepeatedSubmissionReattaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first := w.submit("hi", client.RunOptions{})
	second := w.submit("hi", client.RunOptions{})
	for _, seq := range []uint64{first, second} {
		if run, err := w.RunOf(w.ctx, "s1", seq); err != nil || run != 1 {
			t.Errorf("the run of %d: got %d (%v), want 1", seq, run, err)
		}
	}
	from, err := w.LastNotice(w.ctx)
	bustest.OK(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.theOne("while it runs", second, from, func(client.Notice) {})
	}()
	w.answer("s1", 1, "hello")
	<-ended
	from, err = w.LastNotice(w.ctx)
	bustest.OK(t, err)
	w.theOne("when it has ended", w.submit("hi", client.RunOptions{}), from+1, func(n client.Notice) { t.Errorf("a notice: %s", n.Type) })
	var refused *client.RejectedError
	if _, err := w.End(w.ctx, "s1", w.submit("other", client.RunOptions{}), from+1, nil); !errors.As(err, &refused) || refused.Code != session.RejectDuplicateSubmission {
		t.Errorf("other content: got %v", err)
	}

	// Long after: other runs, snapshots, no notice that is kept, a closed session.
	for run := 2; run <= 9; run++ {
		seq := w.ask("s1", "more")
		w.answer("s1", run, "more")
		w.end("s1", seq)
	}
	w.forgetNotices()
	w.theOne("long after", w.submit("hi", client.RunOptions{}), 0, nil)
	w.theOne("of the first request", first, 0, nil)
	if _, err := w.CloseSession(w.ctx, "s1", ""); err != nil {
		t.Fatal(err)
	}
	w.theOne("in a closed session", w.submit("hi", client.RunOptions{}), 0, nil)
	if v, err := w.View(w.ctx, "s1"); err != nil || v.Last.Number != 9 {
		t.Errorf("the session has run %+v last (%v), want 9: nothing ran twice", v.Last, err)
	}
}

// forgetNotices removes all kept notices, as their age limit does.
func (w *world) forgetNotices() {
	w.t.Helper()
	nc, _ := testbus.JS(w.t, w.node)
	answer, err := nc.RequestWithContext(w.ctx, "$JS.API.STREAM.PURGE."+w.bus.Names().NoticesStream(), nil)
	if err != nil || !strings.Contains(string(answer.Data), `"success":true`) {
		w.t.Fatalf("purge: %v %s", err, answer.Data)
	}
}

// The submission steered a run.
func TestRepeatedSubmissionThatSteeredIsThatRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	w.ask("s1", "hi")
	steer := client.RunOptions{WhenBusy: session.BusySteer}
	first := w.submit("more", steer)
	second := w.submit("more", steer)
	seq, err := w.Steer(w.ctx, "s1", "and more", client.ControlOptions{})
	bustest.OK(t, err)
	w.answer("s1", 1, "wait")
	w.say(session.DoorLLM, "s1", session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": map[string]any{"text": "hello"}})
	for _, seq := range []uint64{first, second, seq, w.submit("more", steer)} {
		w.theOne(fmt.Sprintf("the request at %d", seq), seq, 0, nil)
	}
	if v, err := w.View(w.ctx, "s1"); err != nil || v.Items != 5 {
		t.Errorf("the transcript has %d items (%v), want 5: hi, wait, more, and more, hello", v.Items, err)
	}
}

// A cancelled run lists the steers that it drops.
func TestInterruptedRunKeepsItsSteersAndCancelledRunDropsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	hi := w.ask("s1", "hi")
	steered, err := w.Steer(w.ctx, "s1", "more", client.ControlOptions{})
	bustest.OK(t, err)
	w.took("s1")(w.Cancel(w.ctx, "s1", client.ControlOptions{}))
	if end := w.end("s1", hi); end.Lifecycle != session.Cancelled || !slices.Equal(end.Untaken, []uint64{steered}) {
		t.Errorf("cancelled: got %+v, want the steer at %d untaken", end, steered)
	}
	next := w.submit("two", client.RunOptions{})
	busy := w.submit("now", client.RunOptions{WhenBusy: session.BusyInterrupt, Submission: "other"})
	w.answer("s1", 2, "late")
	w.answer("s1", 3, "3")
	if end := w.end("s1", next); end.Run != 2 || end.Lifecycle != session.Interrupted {
		t.Errorf("interrupted: got %+v", end)
	}
	if end := w.end("s1", busy); end.Run != 3 || end.Output.Text != "3" {
		t.Errorf("the one that interrupted: got %+v", end)
	}
}

// The policy accepts some fields of a config only from operators, also in a repeat.
func TestRepeatThroughWrongDoorIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	o := client.RunOptions{Roles: []string{"editor"}, Operator: true}
	w.submit("hi", o)
	w.answer("s1", 1, "hello")
	w.theOne("the operator's", w.submit("hi", o), 0, nil)
	o.Operator = false
	denied := w.submit("hi", o)
	other := w.submit("other", client.RunOptions{})
	snap := w.replay("s1", other).State.Snapshot() // which has folded both
	bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", snap.Seq, snap.Bytes()))
	var refused *client.RejectedError
	if _, err := w.End(w.ctx, "s1", denied, 0, nil); !errors.As(err, &refused) || refused.Code != session.RejectNotPermitted {
		t.Errorf("got %v, want not_permitted", err)
	}
	if _, err := w.End(w.ctx, "s1", other, 0, nil); !errors.As(err, &refused) || refused.Code != session.RejectDuplicateSubmission {
		t.Errorf("other content: got %v, want duplicate_submission", err)
	}
}

// A thousand programs make the same request at once.
func TestThousandRepeatsGetOneRun(t *testing.T) {
	t.Parallel()
	const programs, connections = 1000, 20
	w := newWorld(t).host()
	clients := make([]*client.Client, connections)
	for i := range clients {
		c, err := client.Connect(w.ctx, client.Options{URL: w.node.URL(), Name: fmt.Sprintf("test-%d", i)})
		bustest.OK(t, err)
		t.Cleanup(c.Close)
		clients[i] = c
	}
	ends, seqs, failures := make([]client.RunEnd, programs), make([]uint64, programs), make([]error, programs)
	var asking sync.WaitGroup
	begin := make(chan struct{})
	from, err := w.LastNotice(w.ctx)
	bustest.OK(t, err)
	ask := func(ctx context.Context, c *client.Client, i int) (err error) {
		<-begin
		if seqs[i], err = c.Run(ctx, "s1", "hi", client.RunOptions{Submission: "once"}); err != nil {
			return err
		}
		ends[i], err = c.End(ctx, "s1", seqs[i], from+1, nil)
		return err
	}
	for i := range programs {
		asking.Go(func() { failures[i] = ask(w.ctx, clients[i%connections], i) })
	}
	close(begin)
	w.stored("s1", "r1t1")
	w.answer("s1", 1, "hello")
	asking.Wait()
	bustest.OK(t, errors.Join(failures...))
	for i, end := range ends {
		if end.Run != 1 || end.Lifecycle != session.Completed || end.Output == nil || end.Output.Text != "hello" {
			t.Errorf("program %d: got %+v, want run 1 completed with hello", i, end)
		}
	}
	slices.Sort(seqs)
	if got := len(slices.Compact(seqs)); got != programs {
		t.Errorf("%d requests are in the log, want %d", got, programs)
	}
	r := w.replay("s1", 0)
	if r.State.Runs != 1 || r.Events != programs+1 || r.Rejected != 0 || !r.Identical() {
		t.Errorf("the session has %d runs of %d events, %d of them refused, %q; want 1 of %d", r.State.Runs, r.Events, r.Rejected, r.Differences, programs+1)
	}
}
