package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
)

// Follower follows one run of a session with the permissions of a client. It
// receives notices, progress and deltas, requests views, and reads no stream. It
// subscribes when it is created, so create it before you request the run.
//
//   - The text of a turn is shown as it arrives, in order and once. Text that was
//     missed is shown when TurnSettled or RunFinished has it: at most
//     session.ProgressTextMax bytes of any turn except the last.
//   - A notice about a call comes after the text of the call's turn, and before the
//     text of the next turn.
//   - A notice that is published again, as after a takeover, is passed on once.
//   - After a lost connection, tool lines and the text of earlier turns may be
//     missing. The end then comes from the view, without the answer.
//
// The caller must call Close.
type Follower struct {
	c     *Client
	sid   string
	stop  context.CancelFunc
	inbox inbox[received]

	watch   Watch
	run     uint32 // 0: not known yet
	seq     uint64 // of the request
	name    string // its submission
	latestN uint64 // number of the last notice passed on
	settled []string
	words   showing
	order   ordered
	answer  answered
	over    time.Time // since when views show the run as ended, without a notice of it
}

type answered struct {
	seq   uint64 // of its settlement
	text  string
	whole bool
}

// ErrEndedBefore is returned if a request repeated that of a run that has already
// ended, and this user may not read its outcome, which is in the log.
var ErrEndedBefore = errors.New("the request was made before, and its run has ended; its outcome is in the log, which this user may not read")

// errRepeated says that a request repeats another one, whose run may have ended.
var errRepeated = errors.New("the request repeats another one")

// endedUnseen is the detail of an end that only a view showed.
const endedUnseen = "the connection was lost when the run ended"

// Follow returns a follower of a session, which may be new. ctx is for this
// call.
func (c *Client) Follow(ctx context.Context, sid string) (*Follower, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &Follower{c: c, sid: sid, stop: stop, inbox: newInbox[received]()}
	if err := c.bus.FollowSession(own, sid, f.putNotice, f.putDelta); err != nil {
		stop()
		return nil, err
	}
	return f, nil
}

// Close ends the subscription. End must have returned.
func (f *Follower) Close() { f.stop() }

// A follower requests views to find the run of a steer or a repeat, and an end
// that it missed: often at first, then less often.
const (
	viewSoon  = 300 * time.Millisecond
	viewsSoon = 5
	viewEvery = 2 * time.Second
)

// Watch holds the functions that a Follower calls, one at a time. Those that are nil
// are not called.
type Watch struct {
	Run    func(run uint32) // once, when the run's number is known
	Notice func(Notice)     // for every notice and progress of the session
	Shown  func(Shown)      // for the text of the run's models
}

// End waits for the end of the run that the request at seq, with this submission or
// none, became or steered, and calls w's functions meanwhile.
//
// It fails with a *RejectedError if the session refused the request, with a
// *QuarantinedError if the session is quarantined. If the request repeats one of a
// run that has ended, with its submission or its id, End returns that end, which it
// reads from the log; it fails with ErrEndedBefore if the user may not do that. When
// ctx ends, the run goes on. An answer that no notice holds, such as a blob, is in
// Output as in RunFinished, or missing.
func (f *Follower) End(ctx context.Context, seq uint64, submission string, w Watch) (end RunEnd, err error) {
	f.seq, f.name, f.watch = seq, submission, w.complete()
	defer func() {
		if errors.Is(err, errRepeated) {
			end, err = f.repeated(ctx, err)
		}
	}()
	var requesting sync.WaitGroup
	defer requesting.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	views := make(chan session.View)
	requesting.Go(func() { f.views(inner, views) })
	for {
		var over *RunEnd
		select {
		case <-f.inbox.came:
			for _, h := range f.inbox.take() {
				if over, err = f.handle(h); over != nil || err != nil {
					break
				}
			}
		case v := <-views:
			over, err = f.applyView(v)
		case <-ctx.Done():
			return RunEnd{}, ctx.Err()
		}
		f.flush()
		switch {
		case err != nil:
			return RunEnd{}, err
		case over != nil:
			return *over, nil
		}
	}
}

// complete returns w without functions that are nil.
func (w Watch) complete() Watch {
	if w.Run == nil {
		w.Run = func(uint32) {}
	}
	if w.Notice == nil {
		w.Notice = func(Notice) {}
	}
	if w.Shown == nil {
		w.Shown = func(Shown) {}
	}
	return w
}

func (f *Follower) views(ctx context.Context, views chan<- session.View) {
	for n := 0; ctx.Err() == nil; n++ {
		if v, err := f.c.View(ctx, f.sid); err == nil {
			select {
			case views <- v:
			case <-ctx.Done():
			}
		}
		wait := viewSoon
		if n >= viewsSoon {
			wait = viewEvery
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// handle processes a received message. end is the end of the run, if it ended.
func (f *Follower) handle(h received) (end *RunEnd, err error) {
	if h.delta != nil {
		f.delta(*h.delta)
		return nil, nil
	}
	n := *h.notice
	if n.N != 0 && n.N <= f.latestN {
		return nil, nil
	}
	f.latestN = max(f.latestN, n.N)
	switch d := n.Body().(type) {
	case session.RunPlaced:
		if d.Seq == f.seq {
			f.setRun(d.Run)
		}
	case session.TurnSettled:
		if a, ok := parseAttempt(d.Effect); ok && a.run == f.run {
			f.endAttempt(a, d, n.Seq)
		}
	case session.CallSettled:
		if slices.Contains(f.settled, d.Effect) {
			return nil, nil
		}
		f.settled = append(f.settled, d.Effect)
	}
	if d, over := n.Body().(session.RunFinished); over && d.Run == f.run {
		f.release(true)
	}
	f.pass(n)
	switch d := n.Body().(type) {
	case session.TurnSettled:
		f.release(false)
		f.next()
	case session.EventRejected:
		switch {
		case d.Seq == f.seq && d.Code == session.RejectDuplicateEvent:
			return nil, fmt.Errorf("%w: %w", errRepeated, &RejectedError{Code: d.Code, Detail: d.Detail})
		case d.Seq == f.seq:
			return nil, &RejectedError{Code: d.Code, Detail: d.Detail}
		}
	case session.SessionQuarantined:
		return nil, &QuarantinedError{Reason: d.Reason}
	case session.RunFinished:
		if f.run != 0 && d.Run == f.run {
			return f.finish(d, n.Seq), nil
		}
	}
	return nil, nil
}

func (f *Follower) setRun(run uint32) {
	if f.run != 0 {
		return
	}
	f.run = run
	f.watch.Run(run)
	early := f.words.early
	f.words.early, f.words.earlyBytes = nil, 0
	for _, d := range early {
		f.delta(d)
	}
}

// next continues with the run's earliest attempt that has deltas.
func (f *Follower) next() {
	var first turnAttempt
	for _, d := range f.words.early {
		if a, ok := parseAttempt(d.Effect); ok && (first == turnAttempt{} || a.compare(first) < 0) {
			first = a
		}
	}
	if !f.words.open && f.order.calls == 0 && first != (turnAttempt{}) {
		f.words.opened(first)
	}
}

// delta processes a delta. A delta of a later attempt than the open one waits for
// the end of that.
func (f *Follower) delta(d Delta) {
	a, ok := parseAttempt(d.Effect)
	if !ok || f.run != 0 && a.run != f.run {
		return
	}
	f.words.delta(d)
	if f.run != 0 {
		f.next()
	}
}

func (f *Follower) endAttempt(a turnAttempt, d session.TurnSettled, seq uint64) {
	switch order := a.compare(f.words.at); {
	case order < 0, order == 0 && !f.words.open:
		return // a repeat
	case order > 0:
		f.words.open = false // the end of the open one was missed
		f.words.opened(a)
	}
	if d.Code != "" {
		f.words.failed(d.Code, seq)
		return
	}
	text, whole := d.Text, d.TextBytes == 0
	if shown := f.words.shown.String(); !whole && strings.HasPrefix(shown, text) {
		text, whole = shown, int64(len(shown)) == d.TextBytes
	}
	f.answer = answered{seq, text, whole}
	f.words.done(text, seq)
	f.turnEnded(d.Calls)
}

func (f *Follower) finish(d session.RunFinished, seq uint64) *RunEnd {
	end := runEndOf(d)
	switch {
	case d.Output != nil && d.Output.Text != "" && f.answer.seq != seq: // the end of its turn was missed
		if !f.words.open {
			f.words.opened(turnAttempt{d.Run, f.words.at.turn + 1, 1})
		}
		f.words.done(d.Output.Text, seq)
	case f.words.open:
		f.words.failed(string(d.Lifecycle), seq)
	}
	if d.OutputSeq != 0 && d.OutputSeq == f.answer.seq && f.answer.whole {
		end.Output = &session.Content{Text: f.answer.text}
	}
	f.words.out = append(f.words.out, Shown{Kind: ShownEnd, Run: d.Run, Code: string(d.Lifecycle), Seq: seq})
	return &end
}

// applyView reads the run's number from a view, and whether the run has ended.
func (f *Follower) applyView(v session.View) (*RunEnd, error) {
	f.viewed()
	switch stopped := v.Quarantined; {
	case stopped != nil && (stopped.Seq <= f.seq || v.Seq == 0):
		return nil, &QuarantinedError{Reason: stopped.Reason}
	case v.Seq < f.seq:
		return nil, nil
	}
	runs := v.Queue
	if v.Run != nil {
		runs = append([]session.ViewRun{*v.Run}, runs...)
	}
	if f.run == 0 {
		for _, r := range runs {
			if r.Seq == f.seq || f.name != "" && r.Submission == f.name || slices.Contains(r.Steers, f.seq) {
				f.setRun(r.Number)
				return nil, nil
			}
		}
		taken := slices.ContainsFunc(v.Transcript, func(it session.ViewItem) bool { return it.Seq == f.seq && it.Role == session.RoleUser })
		if v.Run != nil && taken { // a steer that a turn has applied
			f.setRun(v.Run.Number)
			return nil, nil
		}
	}
	if f.run != 0 && slices.ContainsFunc(runs, func(r session.ViewRun) bool { return r.Number == f.run }) {
		f.over = time.Time{}
		if v.Quarantined != nil {
			return nil, &QuarantinedError{Reason: v.Quarantined.Reason}
		}
		return nil, nil
	}
	if f.over.IsZero() {
		f.over = time.Now()
	}
	switch waited := time.Since(f.over); {
	case f.run == 0 && f.name != "" && waited >= placedWithin, f.run == 0 && waited >= finishedWithin:
		return nil, errRepeated // the request repeats that of a run that has ended
	case f.run == 0, waited < finishedWithin:
		return nil, nil
	}
	end := &RunEnd{Run: f.run, Lifecycle: session.Completed, Detail: endedUnseen}
	if v.Last != nil && v.Last.Number == f.run {
		end.Lifecycle, end.Code, end.FinishReason, end.OverBudget = v.Last.Lifecycle, v.Last.Code, v.Last.FinishReason, v.Last.OverBudget
		if v.Last.Detail != "" {
			end.Detail = v.Last.Detail
		}
	}
	return end, nil
}

// A view may be newer than the notices, which a session-actor publishes after it
// has stored them. These limit how long a follower waits for notices.
const (
	placedWithin   = time.Second
	finishedWithin = 30 * time.Second
)

type received struct {
	delta  *Delta
	notice *Notice
}

// putNotice adds a notice, or the lines of a session's progress, to the inbox.
func (f *Follower) putNotice(payload []byte) {
	for line := range bytes.Lines(payload) {
		var n Notice
		if json.Unmarshal(line, &n) != nil {
			return // published by another program
		}
		f.inbox.put(received{notice: &n}, nil)
	}
}

func (f *Follower) putDelta(payload []byte) {
	var d Delta
	if json.Unmarshal(payload, &d) == nil {
		f.inbox.put(received{delta: &d}, &d)
	}
}
