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
	viewSoon  = 300 * time.Millisecond
	viewsSoon = 5 // views at this interval, and then
	viewEvery = 2 * time.Second
	viewQuiet = 30 * time.Second // of silence: no gap shows that the last message is lost
)

// untilView returns how long to wait for messages before the next view.
func (f *Follower) untilView(now time.Time) time.Duration {
	isPlaced := f.run != 0 || !f.over.IsZero()
	if isPlaced && !f.missing && !f.isHolding() {
		f.since, f.views = time.Time{}, 0
		if !f.over.IsZero() {
			return f.over.Add(f.endWithin()).Sub(now)
		}
		return viewQuiet
	}
	if f.since.IsZero() {
		f.since = now
	}
	if f.views < viewsSoon {
		return f.since.Add(viewSoon).Sub(now)
	}
	return f.since.Add(viewEvery).Sub(now)
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
	switch stopped := v.Quarantined; {
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
	switch {
	case time.Since(f.over) < f.endWithin():
		return nil, nil
	case f.run == 0:
		return nil, errRepeated // the request repeats that of a run that has ended
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

// endWithin returns how long to wait for the notice of an end that a view shows.
func (f *Follower) endWithin() time.Duration {
	if f.run == 0 && f.name != "" {
		return placedWithin
	}
	return finishedWithin
}
