package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
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
	Code      string
	Detail    string
	Output    *session.Content
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

// End waits for the end of the run that the event at seq asked for, reading
// notices from a sequence of their stream on: one that was current before the
// request. each, if not nil, is called for every notice on the way.
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
			return RunEnd{}, fmt.Errorf("the session is quarantined: %s", n.Data)
		case session.NoticeRunFinished:
			var d session.RunFinished
			if err := json.Unmarshal(n.Data, &d); err == nil && run != 0 && d.Run == run {
				return RunEnd{Run: d.Run, Lifecycle: d.Lifecycle, Code: d.Code, Detail: d.Detail, Output: d.Output, Usage: d.Usage}, nil
			}
		}
	}
	return RunEnd{}, fmt.Errorf("the notices of %s ended", sid)
}
