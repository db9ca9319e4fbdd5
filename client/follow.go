package client

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// Notice is a session-actor's notice about a session. A session's notices are
// numbered from 1.
type Notice struct {
	N       uint64          `json:"n"`
	Type    string          `json:"type"`
	Session string          `json:"session"`
	Seq     uint64          `json:"seq"` // in the log, of its event
	At      int64           `json:"at"`  // session clock, Unix ms
	Data    json.RawMessage `json:"data"`

	StreamSeq uint64 `json:"-"` // in the stream of notices: follow from the next one on
}

// Body returns Data decoded by Type, as a value: one of session.SessionOpened,
// RunPlaced (of RunQueued and RunStarted), RunFinished, EventRejected,
// ToolRejected, CallsPlanned, ApprovalRequested, BudgetExceeded,
// SessionQuarantined, WorkspaceStaged, WorkspaceApplied, WorkspaceFailed,
// WorkspaceGone and WorkspaceDisplaced, or of TurnSettled and CallSettled, which are progress. It is nil
// for a type that this release does not know, and for data that does not fit its
// type.
func (n Notice) Body() any {
	switch n.Type {
	case session.NoticeSessionOpened:
		return bodyOf[session.SessionOpened](n)
	case session.NoticeRunQueued, session.NoticeRunStarted:
		return bodyOf[session.RunPlaced](n)
	case session.NoticeRunFinished:
		return bodyOf[session.RunFinished](n)
	case session.NoticeEventRejected:
		return bodyOf[session.EventRejected](n)
	case session.NoticeToolRejected:
		return bodyOf[session.ToolRejected](n)
	case session.NoticeCallsPlanned:
		return bodyOf[session.CallsPlanned](n)
	case session.NoticeApprovalRequested:
		return bodyOf[session.ApprovalRequested](n)
	case session.NoticeBudgetExceeded:
		return bodyOf[session.BudgetExceeded](n)
	case session.ProgressTurnSettled:
		return bodyOf[session.TurnSettled](n)
	case session.ProgressCallSettled:
		return bodyOf[session.CallSettled](n)
	case session.NoticeSessionQuarantined:
		return bodyOf[session.SessionQuarantined](n)
	case session.NoticeWorkspaceStaged:
		return bodyOf[session.WorkspaceStaged](n)
	case session.NoticeWorkspaceApplied:
		return bodyOf[session.WorkspaceApplied](n)
	case session.NoticeWorkspaceFailed:
		return bodyOf[session.WorkspaceFailed](n)
	case session.NoticeWorkspaceGone:
		return bodyOf[session.WorkspaceGone](n)
	case session.NoticeWorkspaceDisplaced:
		return bodyOf[session.WorkspaceDisplaced](n)
	}
	return nil
}

func bodyOf[T any](n Notice) any {
	var body T
	if json.Unmarshal(n.Data, &body) != nil {
		return nil
	}
	return body
}

// LastNotice returns the sequence of the newest notice of any session. Later
// notices have greater sequences.
func (c *Client) LastNotice(ctx context.Context) (uint64, error) { return c.bus.LastNotice(ctx) }

// Notices yields a session's notices (those of all sessions if sid is empty) from
// a sequence of their stream on, and then new ones as they arrive, until ctx ends
// or the reader stops; when ctx ends, it yields the error of ctx last. Repeats
// are left out.
func (c *Client) Notices(ctx context.Context, sid string, from uint64) iter.Seq2[Notice, error] {
	return parsed(c.bus.FollowNotices(ctx, sid, from))
}

// NoticesKept yields the notices of a session (those of all sessions if sid is
// empty) with sequences of their stream from from to to, as far as they are kept,
// and ends. Repeats are left out.
func (c *Client) NoticesKept(ctx context.Context, sid string, from, to uint64) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		if to > 0 && from <= to {
			parsed(c.bus.ReadNotices(ctx, sid, from, to))(yield)
		}
	}
}

// parsed yields decoded notices, without repeats.
func parsed(notices iter.Seq2[journal.Notice, error]) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		latest := map[string]uint64{}
		for raw, err := range notices {
			if err != nil {
				yield(Notice{}, err)
				return
			}
			n := Notice{StreamSeq: raw.Seq}
			if err := json.Unmarshal(raw.Payload, &n); err != nil {
				continue // published by another program
			}
			n.Session = raw.Session
			if n.N != 0 && n.N <= latest[n.Session] {
				continue
			}
			if n.N != 0 {
				latest[n.Session] = n.N
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// Events yields a session's events (those of all sessions if sid is empty) from a
// sequence of the log on, and then new ones as they arrive, until ctx ends or the
// reader stops; when ctx ends, it yields the error of ctx last.
func (c *Client) Events(ctx context.Context, sid string, from uint64) iter.Seq2[session.Event, error] {
	return c.bus.FollowEvents(ctx, sid, from)
}

// Read yields a session's events with sequences of the log from from to to, in
// order, and ends. 0 as from is the first event, 0 as to the newest one at the
// call. An error ends it; a session without events in the range yields none.
func (c *Client) Read(ctx context.Context, sid string, from, to uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		if to == 0 {
			var err error
			if to, err = c.bus.LastSeq(ctx); err != nil {
				yield(session.Event{}, err)
				return
			}
		}
		if to == 0 || from > to {
			return
		}
		c.bus.ReadSession(ctx, sid, from, to, true)(yield)
	}
}

// LastEvent returns the sequence of the log's newest event.
func (c *Client) LastEvent(ctx context.Context) (uint64, error) { return c.bus.LastSeq(ctx) }

// Delta is a piece of a model's streamed text. A new Start of the same Effect makes
// earlier deltas void.
type Delta struct {
	Effect string `json:"effect"`
	Start  string `json:"start"`
	N      uint64 `json:"n"` // from 0, in one start
	Text   string `json:"text"`
}

// Live calls fn with the deltas of a session as they arrive, until ctx ends.
// Deltas are not stored: text that was missed is in the log when the turn has
// ended. A Viewer combines both.
func (c *Client) Live(ctx context.Context, sid string, fn func(Delta)) error {
	return c.bus.SubscribeLive(ctx, sid, func(_ string, payload []byte) {
		var d Delta
		if json.Unmarshal(payload, &d) == nil {
			fn(d)
		}
	})
}
