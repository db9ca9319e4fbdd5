package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// runStatus is the run of a request, and its end if it has ended.
type runStatus struct {
	run     uint32
	placed  bool                 // the event at seq requested it, and is the first about it
	ended   *session.RunFinished // nil: the run has not ended
	endedAt uint64               // sequence of the event that ended it
}

// history is the folded part of a session's history. Concurrent callers that look
// for runs of one session share a history, so that a thousand repeats of a
// submission read the log once.
type history struct {
	to     uint64 // sequence to fold up to; 0: the newest
	state  *session.State
	ends   map[uint32]runStatus // of the runs that ended in the folded part
	placed map[uint32]uint64    // sequences of the first events about runs, in the folded part

	turn  chan struct{} // a mutex: holds one while a caller reads or folds it
	users int           // callers that share it; guarded by the client's lock
}

func newHistory(to uint64) *history {
	return &history{to: to, ends: map[uint32]runStatus{}, placed: map[uint32]uint64{}, turn: make(chan struct{}, 1)}
}

// enter locks the session's history, which other callers may share. Unless it
// fails, the caller must call leave.
func (c *Client) enter(ctx context.Context, sid string) (h *history, leave func(), err error) {
	c.mu.Lock()
	if h = c.histories[sid]; h == nil {
		h = newHistory(0)
		c.histories[sid] = h
	}
	h.users++
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(c.histories, sid)
		}
	}
	select {
	case h.turn <- struct{}{}:
		return h, func() { <-h.turn; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, nil, ctx.Err()
	}
}

// advance folds a history up to its end, and calls each with every event until
// it returns false.
func (c *Client) advance(ctx context.Context, sid string, h *history, each func(*foldedEvent) bool) error {
	state, err := c.refold(ctx, sid, h.state, h.to, func(t *foldedEvent) bool {
		for _, n := range t.notices {
			switch d := n.Data.(type) {
			case session.RunFinished:
				h.ends[d.Run] = runStatus{run: d.Run, ended: &d, endedAt: t.Seq}
			case session.RunPlaced:
				if h.placed[d.Run] == 0 {
					h.placed[d.Run] = t.Seq
				}
			}
		}
		return each(t)
	})
	h.state = state
	if err != nil {
		h.state = nil // the fold may have stopped within an event
	}
	return err
}

// runStatus folds the session to find the run of the event at seq, and its end
// if it has ended.
func (c *Client) runStatus(ctx context.Context, sid string, seq uint64) (p runStatus, err error) {
	stopped, err := c.quarantineAfter(ctx, sid, seq)
	if err != nil {
		return p, err
	}
	var h *history
	if stopped.Seq != 0 {
		h = newHistory(stopped.Seq - 1)
	} else {
		var leave func()
		if h, leave, err = c.enter(ctx, sid); err != nil {
			return p, err
		}
		defer leave()
	}
	run, h, err := c.runAt(ctx, sid, seq, h)
	if isRepeat(err) {
		first, wrong := c.repeated(ctx, sid, seq)
		switch {
		case wrong != nil:
			return p, wrong
		case first > 0:
			run, h, err = c.runAt(ctx, sid, first, newHistory(h.to))
		}
	}
	if err != nil {
		return runStatus{run: run}, err
	}
	p, ended := h.ends[run]
	p.placed = h.placed[run] == seq
	switch {
	case ended:
		return p, nil
	case isLive(h.state, run) && stopped.Seq != 0:
		return runStatus{run: run}, &QuarantinedError{Reason: stopped.Reason}
	case isLive(h.state, run):
		return runStatus{run: run, placed: p.placed}, nil
	}
	return c.endedBefore(ctx, sid, run, h.to)
}

// endedBefore returns the end of a run that ended before a snapshot. It folds the session
// from its first event.
func (c *Client) endedBefore(ctx context.Context, sid string, run uint32, to uint64) (p runStatus, err error) {
	h, ended := newHistory(to), false
	err = c.advance(ctx, sid, h, func(*foldedEvent) bool {
		p, ended = h.ends[run]
		return !ended
	})
	if err == nil && !ended {
		err = fmt.Errorf("run %d of %s is neither active nor ended", run, sid)
	}
	return p, err
}

// runAt returns the run of the event at seq, and the history in which it found
// the run, folded up to its end: h, or one from the session's first event if the
// event is older than h.
func (c *Client) runAt(ctx context.Context, sid string, seq uint64, h *history) (run uint32, _ *history, err error) {
	if h.state == nil {
		if h.state, err = c.snapshotBelow(ctx, sid, h.to); err != nil {
			return 0, h, err
		}
	}
	if h.state != nil && h.state.Seq >= seq {
		if run, err = c.repeats(ctx, h.state, seq); err != nil {
			return 0, h, err
		}
		if run == 0 {
			h = newHistory(h.to)
		}
	}
	found, refused := run != 0, error(nil)
	err = c.advance(ctx, sid, h, func(t *foldedEvent) bool {
		if t.Seq == seq && run == 0 {
			found = true
			run, refused = t.requestedRun()
		}
		return true
	})
	switch {
	case err != nil:
		err = fmt.Errorf("outcome of event %d: %w", seq, err)
	case refused != nil:
		err = refused
	case !found:
		err = errNotThere(sid, seq)
	}
	return run, h, err
}

func isLive(state *session.State, run uint32) bool {
	return state.Run != nil && state.Run.Number == run ||
		slices.ContainsFunc(state.Queue, func(r session.Run) bool { return r.Number == run })
}

// requestedRun returns the run that the event requested or steered.
func (t *foldedEvent) requestedRun() (uint32, error) {
	if refused := t.rejected(); refused != nil {
		return 0, refused
	}
	for _, n := range t.notices {
		if d, ok := n.Data.(session.RunPlaced); ok && d.Seq == t.Seq {
			return d.Run, nil
		}
	}
	env, err := envelopeOf(t.Event)
	if err != nil {
		return 0, err
	}
	switch env.Type {
	case session.TypeRunRequested:
		var b session.RunRequested
		if err := codec.Decode(env.Data, &b); err != nil {
			return 0, err
		}
		if s, taken := t.after.Submission(b.Submission); taken {
			return s.Run, nil
		}
		return t.active, nil
	case session.TypeSteerRequested:
		return t.active, nil
	}
	return 0, fmt.Errorf("event %d is a %s: it requests no run", t.Seq, env.Type)
}

// repeats returns the run of an already folded event at seq, if its submission
// alone determines the run; else 0.
func (c *Client) repeats(ctx context.Context, state *session.State, seq uint64) (uint32, error) {
	e, err := c.bus.EventAt(ctx, seq)
	if err != nil {
		return 0, err
	}
	if e.Session != state.Session {
		return 0, errNotThere(state.Session, seq)
	}
	if len(state.Submissions) > session.SubmissionsMax {
		return 0, nil // it may have forgotten the request, and remember a later one
	}
	var b session.RunRequested
	env, err := envelopeOf(e)
	if err != nil || env.Type != session.TypeRunRequested || codec.Decode(env.Data, &b) != nil {
		return 0, nil
	}
	if e.Door == session.DoorIn && (b.Config != nil || len(b.Roles) > 0) {
		return 0, nil // the policy may have refused it, also as a repeat
	}
	s, taken := state.Submission(b.Submission)
	if !taken || s.Content != b.Content(env.Data, e.Original) {
		return 0, nil
	}
	return s.Run, nil
}

// RunNow returns a run as it is now. Of one that has not ended it returns the lifecycle
// and 0; of one that has ended, that and the sequence of the event that ended it. It folds
// the log itself, and fails with ErrNoRun if there is no such run, and with ErrNoSession
// if there is no such session.
func (c *Client) RunNow(ctx context.Context, sid string, run uint32) (now session.Lifecycle, endedAt uint64, err error) {
	stopped, err := c.quarantineOf(ctx, sid)
	if err != nil {
		return "", 0, err
	}
	h := newHistory(max(stopped.Seq, 1) - 1)
	if stopped.Seq == 0 {
		var leave func()
		if h, leave, err = c.enter(ctx, sid); err != nil {
			return "", 0, err
		}
		defer leave()
	}
	if h.state == nil {
		if h.state, err = c.snapshotBelow(ctx, sid, h.to); err != nil {
			return "", 0, err
		}
	}
	if err := c.advance(ctx, sid, h, func(*foldedEvent) bool { return true }); err != nil {
		return "", 0, err
	}
	p, ended := h.ends[run]
	switch {
	case h.state == nil:
		return "", 0, fmt.Errorf("%w: %s", ErrNoSession, sid)
	case run == 0 || run > h.state.Runs:
		return "", 0, fmt.Errorf("%w: %d of session %s", ErrNoRun, run, sid)
	case ended:
		return p.ended.Lifecycle, p.endedAt, nil
	case h.state.Run != nil && h.state.Run.Number == run:
		return h.state.Run.Lifecycle, 0, nil
	case isLive(h.state, run):
		return session.Queued, 0, nil
	}
	if p, err = c.endedBefore(ctx, sid, run, h.to); err != nil {
		return "", 0, err
	}
	return p.ended.Lifecycle, p.endedAt, nil
}
