package client

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/internal/journal"
)

// Notice is a session-actor's notice about a session. A session's notices are
// numbered from 1; N is 0 for those that have no number.
type Notice struct {
	N       uint64          `json:"n"`
	Type    string          `json:"type"`
	Session string          `json:"session"`
	Seq     uint64          `json:"seq"` // in the log, of its event
	At      int64           `json:"at"`  // session clock, Unix ms
	Data    json.RawMessage `json:"data"`

	// Summary is what a list shows of the session: of the last notice about an event.
	Summary *session.Summary `json:"summary,omitempty"`

	// StreamSeq is a position in the stream of notices: a reader that follows from the
	// next one on misses none. A message may have several notices about one event; all
	// but the last come again then.
	StreamSeq uint64 `json:"-"`
}

// Body returns Data decoded by Type, as a value: one of session.SessionOpened,
// RunPlaced (of RunQueued and RunStarted), RunFinished, EventRejected,
// ToolRejected, CallsPlanned, ApprovalRequested, ReplyRequested, BudgetExceeded, ModelChanged, ContextCleared,
// ContextCut, LimitNear, ScheduleSkipped, SchedulePaused, SessionChanged, SessionQuarantined, SessionReleased,
// WorkspaceStaged, WorkspaceApplied, WorkspaceFailed, WorkspaceGone and
// WorkspaceDisplaced, or of TurnSettled and CallSettled, which are progress. It is
// nil for a type that this release does not know, and for data that does not fit
// its type.
func (n Notice) Body() any {
	if decode := bodies[n.Type]; decode != nil {
		return decode(n.Data)
	}
	return nil
}

// NoticeTypes returns the types of the notices that are stored, sorted. Those of progress
// are not among them.
func NoticeTypes() []string {
	all := slices.Sorted(maps.Keys(bodies))
	return slices.DeleteFunc(all, func(name string) bool {
		return name == session.ProgressTurnSettled || name == session.ProgressCallSettled
	})
}

var bodies = map[string]func(json.RawMessage) any{
	session.NoticeSessionOpened:      bodyOf[session.SessionOpened],
	session.NoticeRunQueued:          bodyOf[session.RunPlaced],
	session.NoticeRunStarted:         bodyOf[session.RunPlaced],
	session.NoticeRunFinished:        bodyOf[session.RunFinished],
	session.NoticeEventRejected:      bodyOf[session.EventRejected],
	session.NoticeToolRejected:       bodyOf[session.ToolRejected],
	session.NoticeCallsPlanned:       bodyOf[session.CallsPlanned],
	session.NoticeApprovalRequested:  bodyOf[session.ApprovalRequested],
	session.NoticeReplyRequested:     bodyOf[session.ReplyRequested],
	session.NoticeBudgetExceeded:     bodyOf[session.BudgetExceeded],
	session.NoticeModelChanged:       bodyOf[session.ModelChanged],
	session.NoticeContextCleared:     bodyOf[session.ContextCleared],
	session.NoticeContextCompacted:   bodyOf[session.ContextCompacted],
	session.NoticeContextCut:         bodyOf[session.ContextCut],
	session.NoticeScheduleSkipped:    bodyOf[session.ScheduleSkipped],
	session.NoticeSchedulePaused:     bodyOf[session.SchedulePaused],
	session.NoticeLimitNear:          bodyOf[session.LimitNear],
	session.NoticeSessionChanged:     bodyOf[session.SessionChanged],
	session.NoticeSessionQuarantined: bodyOf[session.SessionQuarantined],
	session.NoticeSessionReleased:    bodyOf[session.SessionReleased],
	spaces.NoticeWorkspaceStaged:     bodyOf[spaces.WorkspaceStaged],
	spaces.NoticeWorkspaceApplied:    bodyOf[spaces.WorkspaceApplied],
	spaces.NoticeWorkspaceFailed:     bodyOf[spaces.WorkspaceFailed],
	spaces.NoticeWorkspaceGone:       bodyOf[spaces.WorkspaceGone],
	spaces.NoticeWorkspaceDisplaced:  bodyOf[spaces.WorkspaceDisplaced],
	session.ProgressTurnSettled:      bodyOf[session.TurnSettled],
	session.ProgressCallSettled:      bodyOf[session.CallSettled],
}

func bodyOf[T any](data json.RawMessage) any {
	var body T
	if json.Unmarshal(data, &body) != nil {
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
func parsed(messages iter.Seq2[journal.Notice, error]) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		last := numbers{}
		for raw, err := range messages {
			if err != nil {
				yield(Notice{}, err)
				return
			}
			all := noticesIn(raw.Session, raw.Payload)
			for i, n := range all {
				if n.StreamSeq = raw.Seq; i < len(all)-1 {
					n.StreamSeq--
				}
				if isNew, _ := last.next(&n); isNew && !yield(n, nil) {
					return
				}
			}
		}
	}
}

// noticesIn returns the notices in a message of a session, one a line. It leaves out
// what another program published.
func noticesIn(sid string, payload []byte) (all []Notice) {
	for line := range bytes.Lines(payload) {
		var n Notice
		if json.Unmarshal(line, &n) == nil {
			n.Session = sid
			all = append(all, n)
		}
	}
	return all
}

// numbers holds the number of each session's last notice.
type numbers map[string]uint64

// next takes a session's next notice. It reports whether the notice is no repeat,
// and whether notices before it are missing.
func (l numbers) next(n *Notice) (isNew, missed bool) {
	last := l[n.Session]
	if n.N == 0 || n.N <= last {
		return n.N == 0, false
	}
	l[n.Session] = n.N
	return true, last > 0 && n.N > last+1
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

// Delta is a piece of a model's text, while the model answers: published on
// refold.live.<session>, not stored.
//
// A new Start of the same Effect makes earlier deltas void.
type Delta struct {
	Effect string `json:"effect" lim:"@generation"`
	// Per start of the effect. A later start begins again: discard the text of the earlier
	// one. A try after an answer that broke off is a start too.
	Start string `json:"start" pattern:"^[0-9A-HJKMNP-TV-Z]{26}$"`
	// Counts from 0 in each start, without gaps.
	N uint64 `json:"n"`
	// The text.
	Text string `json:"text" lim:"1..32768"`
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
