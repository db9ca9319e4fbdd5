package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Notice is what a session-actor says about a session, numbered from 1.
type Notice struct {
	N       uint64          `json:"n"`
	Type    string          `json:"type"`
	Session string          `json:"session"`
	Seq     uint64          `json:"seq"` // in the log, of the event that it is about
	At      int64           `json:"at"`  // session clock, Unix ms
	Data    json.RawMessage `json:"data"`

	StreamSeq uint64 `json:"-"` // in the stream of notices: follow from the next one on
}

// LastNotice returns the sequence of the newest notice of any session: what is
// said from now on comes after it.
func (c *Client) LastNotice(ctx context.Context) (uint64, error) { return c.bus.LastNotice(ctx) }

// Notices yields a session's notices (those of all sessions if sid is empty)
// from a sequence of their stream on, then as they come, until ctx ends or the
// reader stops; the last thing yielded when ctx ends is its error. Repeats are
// left out.
func (c *Client) Notices(ctx context.Context, sid string, from uint64) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		said := map[string]uint64{}
		for raw, err := range c.bus.FollowNotices(ctx, sid, from) {
			if err != nil {
				yield(Notice{}, err)
				return
			}
			n := Notice{StreamSeq: raw.Seq}
			if err := json.Unmarshal(raw.Payload, &n); err != nil {
				continue // published by somebody else under that name
			}
			n.Session = raw.Session
			if n.N != 0 && n.N <= said[n.Session] {
				continue
			}
			if n.N != 0 {
				said[n.Session] = n.N
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// Events yields a session's events (those of all sessions if sid is empty)
// from a sequence of the log on, then as they come, until ctx ends or the
// reader stops; the last thing yielded when ctx ends is its error.
func (c *Client) Events(ctx context.Context, sid string, from uint64) iter.Seq2[session.Event, error] {
	return c.bus.FollowEvents(ctx, sid, from)
}

// LastEvent returns the sequence of the log's newest event.
func (c *Client) LastEvent(ctx context.Context) (uint64, error) { return c.bus.LastSeq(ctx) }

// Delta is a piece of a model's words while they come. A new Start of the same
// Effect begins again: what came before is void.
type Delta struct {
	Effect string `json:"effect"`
	Start  string `json:"start"`
	N      uint64 `json:"n"` // from 0, in one start
	Text   string `json:"text"`
}

// Live calls fn with the deltas of a session until ctx ends. They are not
// kept anywhere: what is said while nobody listens is in the log when the turn
// has ended.
func (c *Client) Live(ctx context.Context, sid string, fn func(Delta)) error {
	return c.bus.SubscribeLive(ctx, sid, func(_ string, payload []byte) {
		var d Delta
		if json.Unmarshal(payload, &d) == nil {
			fn(d)
		}
	})
}

// RunEnd is how a run ended.
type RunEnd struct {
	Run       uint32
	Lifecycle session.Lifecycle
	Code      string           // of a failure
	Detail    string           // of a failure, for people
	Output    *session.Content // what the model answered; nil: nothing
	Usage     session.UsageTotal
}

// RejectedError says that the session could not do what was asked.
type RejectedError struct {
	Code   session.Rejection
	Detail string
}

func (e *RejectedError) Error() string {
	if e.Detail == "" {
		return "rejected: " + string(e.Code)
	}
	return fmt.Sprintf("rejected: %s: %s", e.Code, e.Detail)
}

// QuarantinedError says that the session stopped, at a fault that would do
// harm: its events are kept, and an operator must look at it.
type QuarantinedError struct{ Reason string }

func (e *QuarantinedError) Error() string { return "the session is quarantined: " + e.Reason }

// End waits for the end of the run that the event at seq asked for, reading
// notices from a sequence of their stream on: one that was current before the
// request. each, if not nil, is called for every notice on the way.
//
// It fails with a *RejectedError if the session refused the request, and with
// a *QuarantinedError if it stopped. A request that repeats an earlier one, by
// its submission or by its id, says nothing: give the sequences from before the
// first one, or end ctx.
func (c *Client) End(ctx context.Context, sid string, seq, from uint64, each func(Notice)) (RunEnd, error) {
	run := uint32(0)
	for n, err := range c.Notices(ctx, sid, from) {
		if err != nil {
			return RunEnd{}, err
		}
		if each != nil {
			each(n)
		}
		switch n.Type {
		case session.NoticeRunQueued, session.NoticeRunStarted:
			var d session.RunPlaced
			if json.Unmarshal(n.Data, &d) == nil && d.Seq == seq {
				run = d.Run
			}
		case session.NoticeEventRejected:
			var d session.EventRejected
			if json.Unmarshal(n.Data, &d) == nil && d.Seq == seq {
				return RunEnd{}, &RejectedError{Code: d.Code, Detail: d.Detail}
			}
		case session.NoticeSessionQuarantined:
			var d session.SessionQuarantined
			if json.Unmarshal(n.Data, &d) == nil {
				return RunEnd{}, &QuarantinedError{Reason: d.Reason}
			}
		case session.NoticeRunFinished:
			var d session.RunFinished
			if json.Unmarshal(n.Data, &d) == nil && run != 0 && d.Run == run {
				return c.ended(ctx, d)
			}
		}
	}
	return RunEnd{}, fmt.Errorf("the notices of %s ended", sid)
}

// ended returns what a notice says, with the answer.
func (c *Client) ended(ctx context.Context, d session.RunFinished) (RunEnd, error) {
	end := RunEnd{Run: d.Run, Lifecycle: d.Lifecycle, Code: d.Code, Detail: d.Detail, Output: d.Output, Usage: d.Usage}
	if d.OutputSeq == 0 {
		return end, nil
	}
	// It was too large for the notice; the event that settled the turn has it.
	e, err := c.bus.EventAt(ctx, d.OutputSeq)
	if err != nil {
		return end, fmt.Errorf("read the answer of run %d: %w", d.Run, err)
	}
	if end.Output, err = textOf(e); err != nil {
		return end, fmt.Errorf("read the answer of run %d at %d: %w", d.Run, d.OutputSeq, err)
	}
	return end, nil
}

// textOf returns the text of a settled turn.
func textOf(e session.Event) (*session.Content, error) {
	canonical, err := codec.Canonicalize(e.Payload)
	if err != nil {
		return nil, err
	}
	var env session.Envelope
	if err := codec.Decode(canonical, &env); err != nil {
		return nil, err
	}
	var b session.GenerationSettled
	if err := codec.Decode(env.Data, &b); err != nil {
		return nil, err
	}
	return b.Text, nil
}
