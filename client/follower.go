package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
)

// Follower follows one run of a session with the rights of a client. It
// receives notices, progress and deltas, asks for views, and reads no stream.
// It subscribes when it is made, so make it before you ask for the run.
//
//   - The text of a turn is shown as it arrives, in order and once. Text that
//     was missed is shown when TurnSettled or RunFinished brings it: at most
//     session.ProgressTextMax bytes of any turn but the last.
//   - A notice that is published again, as after a takeover, is passed on once.
//   - After a lost connection, tool lines and the text of earlier turns may be
//     missing. The end then comes from the view, without the answer.
//
// Call Close when done.
type Follower struct {
	c     *Client
	sid   string
	stop  context.CancelFunc
	inbox inbox[received]

	watch   Watch
	run     uint32 // 0: not known yet
	seq     uint64 // of the request
	name    string // its submission
	latestN uint64 // number of the latest notice that was passed on
	settled []string
	words   showing
	answer  answered
	over    time.Time // since then views show the run as over, and no notice came
	behind  int       // views that were older than the request
}

// answered is the latest turn that was answered.
type answered struct {
	seq   uint64 // of its settlement
	text  string
	whole bool
}

// ErrEndedBefore is returned if a request repeated the submission of a run that
// has already ended. Its outcome is in the log, where End reads it.
var ErrEndedBefore = errors.New("the submission was asked before, and its run has ended")

// endedUnseen is the detail of an end that only the view showed.
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

// A follower asks for the view to find the run of a steer or a repeat, and an
// end that it missed: often at first, then less often.
const (
	viewSoon  = 300 * time.Millisecond
	viewsSoon = 5
	viewEvery = 2 * time.Second
)

// Watch are the functions that a Follower calls, one at a time.
type Watch struct {
	Run    func(run uint32) // once, when it is known which run it is
	Notice func(Notice)     // for every notice and every progress of the session
	Shown  func(Shown)      // for what the run's models say
}

// End waits for the end of the run that the request at seq, with this
// submission or none, asked for, and calls w's functions meanwhile.
//
// It fails with a *RejectedError if the session refused the request, with a
// *QuarantinedError if it stopped, and with ErrEndedBefore. When ctx ends, the
// run goes on. An answer that no notice holds, such as a blob, is in Output as
// RunFinished names it, or missing.
func (f *Follower) End(ctx context.Context, seq uint64, submission string, w Watch) (end RunEnd, err error) {
	f.seq, f.name, f.watch = seq, submission, w
	var looking sync.WaitGroup
	defer looking.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	views := make(chan session.View)
	looking.Go(func() { f.views(inner, views) })
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
			over, err = f.look(v)
		case <-ctx.Done():
			return RunEnd{}, ctx.Err()
		}
		for _, s := range f.words.out {
			w.Shown(s)
		}
		f.words.out = nil
		switch {
		case err != nil:
			return RunEnd{}, err
		case over != nil:
			return *over, nil
		}
	}
}

// views asks for the view until ctx ends.
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

// handle handles a received message. end is the end of the run, if it ended.
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
			f.found(d.Run)
		}
	case session.TurnSettled:
		if a, ok := parseAsking(d.Effect); ok && a.run == f.run {
			f.turn(a, d, n.Seq)
		}
	case session.CallSettled:
		if slices.Contains(f.settled, d.Effect) {
			return nil, nil
		}
		f.settled = append(f.settled, d.Effect)
	}
	f.watch.Notice(n)
	switch d := n.Body().(type) {
	case session.EventRejected:
		if d.Seq == f.seq {
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

// found takes note of which run it is.
func (f *Follower) found(run uint32) {
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
	var first asking
	for _, d := range f.words.early {
		if a, ok := parseAsking(d.Effect); ok && (first == asking{} || a.compare(first) < 0) {
			first = a
		}
	}
	if !f.words.open && first != (asking{}) {
		f.words.asked(first)
	}
}

// delta takes a delta. One of a later attempt than the open one waits: the end
// of that one is still on its way.
func (f *Follower) delta(d Delta) {
	a, ok := parseAsking(d.Effect)
	if !ok || f.run != 0 && a.run != f.run {
		return
	}
	f.words.delta(d)
	if f.run != 0 {
		f.next()
	}
}

// turn takes in that an attempt at a turn of the run has ended.
func (f *Follower) turn(a asking, d session.TurnSettled, seq uint64) {
	switch order := a.compare(f.words.at); {
	case order < 0, order == 0 && !f.words.open:
		return // said again
	case order > 0:
		f.words.open = false // the end of that one was not heard
		f.words.asked(a)
	}
	if d.Code != "" {
		f.words.failed(d.Code, seq)
		f.next()
		return
	}
	text, whole := d.Text, d.TextBytes == 0
	if shown := f.words.shown.String(); !whole && strings.HasPrefix(shown, text) {
		text, whole = shown, int64(len(shown)) == d.TextBytes
	}
	f.answer = answered{seq, text, whole}
	f.words.done(text, seq)
	f.next()
}

// finish takes in the end of the run.
func (f *Follower) finish(d session.RunFinished, seq uint64) *RunEnd {
	end := runEndOf(d)
	switch {
	case d.Output != nil && d.Output.Text != "" && f.answer.seq != seq: // else its turn was heard to end
		if !f.words.open {
			f.words.asked(asking{d.Run, f.words.at.turn + 1, 1})
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

// look reads a view: the run's number, and whether the run lasts.
func (f *Follower) look(v session.View) (*RunEnd, error) {
	if v.Seq < f.seq { // a view is of the whole log, but of a session that stopped
		if f.behind++; f.behind < behindMax {
			return nil, nil
		}
		return nil, &QuarantinedError{Reason: "it stopped before this request"}
	}
	runs := v.Queue
	if v.Run != nil {
		runs = append([]session.ViewRun{*v.Run}, runs...)
	}
	if f.run == 0 {
		for _, r := range runs {
			if r.Seq == f.seq || f.name != "" && r.Submission == f.name || slices.Contains(r.Steers, f.seq) {
				f.found(r.Number)
				return nil, nil
			}
		}
		taken := slices.ContainsFunc(v.Transcript, func(it session.ViewItem) bool { return it.Seq == f.seq && it.Role == session.RoleUser })
		if v.Run != nil && taken { // a steer that a turn has taken
			f.found(v.Run.Number)
			return nil, nil
		}
	}
	if f.run != 0 && slices.ContainsFunc(runs, func(r session.ViewRun) bool { return r.Number == f.run }) {
		f.over = time.Time{}
		return nil, nil
	}
	if f.over.IsZero() {
		f.over = time.Now()
	}
	switch waited := time.Since(f.over); {
	case f.run == 0 && f.name != "" && waited >= placedWithin:
		return nil, ErrEndedBefore
	case f.run == 0, waited < finishedWithin:
		return nil, nil
	}
	end := &RunEnd{Run: f.run, Lifecycle: session.Completed, Detail: endedUnseen}
	if v.Last != nil && v.Last.Number == f.run {
		end.Lifecycle, end.Code, end.OverBudget = v.Last.Lifecycle, v.Last.Code, v.Last.OverBudget
		if v.Last.Detail != "" {
			end.Detail = v.Last.Detail
		}
	}
	return end, nil
}

// A view may be newer than the notices, which arrive when a session-actor has
// stored them. These limit how long a follower waits for them.
const (
	behindMax      = 5 // views
	placedWithin   = time.Second
	finishedWithin = 30 * time.Second
)

// received is one received message: a delta, or a notice or progress.
type received struct {
	delta  *Delta
	notice *Notice
}

// putNotice takes a notice, or the progress of a session: a line each.
func (f *Follower) putNotice(payload []byte) {
	for line := range bytes.Lines(payload) {
		var n Notice
		if json.Unmarshal(line, &n) != nil {
			return // published by somebody else under that name
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
