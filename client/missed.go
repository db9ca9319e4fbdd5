package client

import (
	"context"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
)

// A follower requests the view only if a message may be missing: until its request
// is placed in a run, after a gap in the numbers of notices or a lost connection,
// and after a silence. A view costs a session-actor several reads.
const (
	viewEvery = 300 * time.Millisecond // while one may be missing
	viewQuiet = 30 * time.Second       // of silence: no gap shows that the last message is lost
)

// untilView returns how long to wait for messages before the next view.
func (f *Follower) untilView(now time.Time) time.Duration {
	isPlaced := f.run != 0 || f.all || !f.over.IsZero()
	if isPlaced && !f.missing && !f.isHolding() {
		f.since = time.Time{}
		if !f.over.IsZero() {
			return f.over.Add(f.endWithin()).Sub(now)
		}
		return viewQuiet
	}
	if f.since.IsZero() {
		f.since = now
	}
	return f.since.Add(viewEvery).Sub(now)
}

// missed notes that messages may be missing.
func (f *Follower) missed() {
	if f.missing = true; f.all {
		f.words.out = append(f.words.out, Shown{Kind: ShownMissed})
	}
}

func (f *Follower) requestView(ctx context.Context) *session.View {
	v, err := f.view(ctx, f.sid)
	if err != nil {
		return nil
	}
	return &v
}

// applyView reads the run's number from a view, and whether the run has ended.
func (f *Follower) applyView(v session.View) (*RunEnd, error) {
	f.viewed()
	f.latest = max(f.latest, v.Seq)
	stopped := v.Quarantined
	if f.all {
		stopped = nil // it may be released, and go on
	}
	switch {
	case stopped != nil && (stopped.Seq <= f.seq || v.Seq == 0):
		return nil, &QuarantinedError{Reason: stopped.Reason}
	case v.Seq < f.seq:
		f.missing = true
		return nil, nil
	}
	runs := v.Queue
	if v.Run != nil {
		runs = append([]session.ViewRun{*v.Run}, runs...)
	}
	at := slices.IndexFunc(runs, func(r session.ViewRun) bool {
		if f.run != 0 {
			return r.Number == f.run
		}
		return r.Seq == f.seq || f.name != "" && r.Submission == f.name || slices.Contains(r.Steers, f.seq)
	})
	if at < 0 && f.run == 0 && v.Run != nil && slices.ContainsFunc(v.Transcript, func(it session.Item) bool { return it.Seq == f.seq && it.Role == session.RoleUser }) {
		at = 0 // a steer that a turn has applied
	}
	switch {
	case at >= 0 && stopped != nil:
		return nil, &QuarantinedError{Reason: v.Quarantined.Reason}
	case at >= 0:
		f.over = time.Time{}
		f.setRun(runs[at].Number)
		return nil, nil
	case f.all && f.run == 0:
		if v.Run != nil && v.Run.Number != f.unseen {
			f.setRun(v.Run.Number)
		}
		return nil, nil
	}
	if f.over.IsZero() {
		f.over = time.Now()
	}
	switch {
	case time.Since(f.over) < f.endWithin():
		return nil, nil
	case f.run == 0:
		return nil, errRepeated // the request repeats that of a run that has ended
	}
	end := f.endUnseen()
	if v.Last != nil && v.Last.Number == f.run {
		end.Lifecycle, end.Code, end.FinishReason, end.OverBudget = v.Last.Lifecycle, v.Last.Code, v.Last.FinishReason, v.Last.OverBudget
		if v.Last.Detail != "" {
			end.Detail = v.Last.Detail.String()
		}
	}
	return end, nil
}

// A view may be newer than the notices, which a session-actor publishes after it
// has stored them. These limit how long a follower waits for notices.
const (
	placedWithin   = time.Second
	finishedWithin = 30 * time.Second
	toldWithin     = 3 * time.Second // if all runs are followed: the next one does not wait
)

// endWithin returns how long to wait for the notice of an end that a view shows.
func (f *Follower) endWithin() time.Duration {
	switch {
	case f.run == 0 && f.name != "":
		return placedWithin
	case f.all:
		return toldWithin
	}
	return finishedWithin
}
