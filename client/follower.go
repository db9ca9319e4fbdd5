package client

import (
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
	view  func(ctx context.Context, sid string) (session.View, error)
	stop  context.CancelFunc
	inbox inbox

	awaited
	watch   Watch
	name    string // the request's submission
	numbers numbers
	settled []string
	words   showing
	order   ordered
	answer  answered

	all    bool       // runs of the session are followed, and not one: see Shown
	unseen uint32     // the latest run whose end was not heard of, in time
	latest uint64     // sequence of the latest event that was heard of
	heard  []received // that are not handled yet

	missing bool      // a message may be missing
	since   time.Time // that, or the last view since then; zero: nothing is missing
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
	f := &Follower{c: c, sid: sid, view: c.View, stop: stop, inbox: newInbox(), numbers: numbers{}}
	lost := func() { f.inbox.put(received{}) }
	if err := c.bus.FollowSession(own, sid, lost, f.putNotice, f.putDelta); err != nil {
		stop()
		return nil, err
	}
	return f, nil
}

// Close ends the subscription. End must have returned.
func (f *Follower) Close() { f.stop() }

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
	views := make(chan *session.View, 1) // the answer to the open request; nil: there is none
	timer := time.NewTimer(viewEvery)
	defer timer.Stop()
	for requested := false; ; {
		var over *RunEnd
		select {
		case <-f.inbox.came:
			over, err = f.handleAll()
		case <-timer.C:
			requested, f.missing = true, false
			requesting.Go(func() { views <- f.requestView(inner) })
		case v := <-views:
			requested, f.since = false, time.Now()
			if f.missing = f.missing || v == nil; v != nil {
				over, err = f.applyView(*v)
			}
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
		if !requested {
			timer.Reset(f.untilView(time.Now()))
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

// handleAll processes the received messages, up to an end of the run.
func (f *Follower) handleAll() (end *RunEnd, err error) {
	f.heard = append(f.heard, f.inbox.take()...)
	for len(f.heard) > 0 && end == nil && err == nil {
		if end = f.displaced(f.heard[0]); end == nil {
			h := f.heard[0]
			f.heard = f.heard[1:]
			end, err = f.handle(h)
		}
	}
	if len(f.heard) > 0 {
		f.inbox.wake()
	}
	return end, err
}

// handle processes a received message. end is the end of the run, if it ended.
func (f *Follower) handle(h received) (end *RunEnd, err error) {
	switch {
	case h.delta != nil:
		f.delta(*h.delta)
		return nil, nil
	case h.notice == nil:
		f.missed()
		return nil, nil
	}
	n, body := *h.notice, h.notice.Body()
	isNew, missed := f.numbers.next(&n)
	if missed {
		f.missed()
	}
	if !isNew {
		return nil, nil
	}
	before := f.run
	finished, err := f.hear(body)
	if f.latest = max(f.latest, n.Seq); f.all {
		f.hearAll(n.Type, body)
		err = nil // a quarantine may be released
	}
	if isRepeat(err) {
		err = fmt.Errorf("%w: %w", errRepeated, err)
	}
	if f.run != before {
		f.placed()
	}
	switch d := body.(type) {
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
	if finished != nil {
		f.release(true)
	}
	f.pass(n, body)
	switch _, isTurn := body.(session.TurnSettled); {
	case finished != nil:
		return f.finish(*finished, n.Seq), nil
	case isTurn:
		f.release(false)
		f.next()
	}
	return nil, err
}

func (f *Follower) setRun(run uint32) {
	if f.run != 0 {
		return
	}
	f.run = run
	f.placed()
}

// placed reports the run, whose number is known now, and shows its text.
func (f *Follower) placed() {
	f.watch.Run(f.run)
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

// putNotice adds the notices of a message, or the lines of a session's progress, to
// the inbox.
func (f *Follower) putNotice(payload []byte) {
	for _, n := range noticesIn(f.sid, payload) {
		f.inbox.put(received{notice: &n})
	}
}

func (f *Follower) putDelta(payload []byte) {
	var d Delta
	if json.Unmarshal(payload, &d) == nil {
		f.inbox.put(received{delta: &d})
	}
}
