package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// noticeBytesMax bounds a message of notices. One may have a run's output as inline
// text.
const noticeBytesMax = session.NoticeBytesMax

// Notice is a stored message of notices about one event.
type Notice struct {
	Session string
	Seq     uint64 // in the stream of notices
	Time    int64  // Unix milliseconds
	Payload []byte // JSON, a notice a line
}

// Summary returns the summary of the last notice in the message; false: it has none.
func (n *Notice) Summary() (session.Summary, bool) {
	var last struct {
		Summary *session.Summary `json:"summary"`
	}
	if json.Unmarshal(lastLine(n.Payload), &last) != nil || last.Summary == nil {
		return session.Summary{}, false
	}
	return *last.Summary, true
}

func lastLine(payload []byte) []byte { return payload[bytes.LastIndexByte(payload, '\n')+1:] }

// Notify publishes a message whose last notice is the nth of a session. The same n
// again within the stream's duplicate window succeeds and stores nothing; readers drop
// later repeats by the notices' numbers. A message whose notice has no number, n 0, is a
// repeat of one with the same bytes.
func (j *Journal) Notify(ctx context.Context, sid string, n uint64, payload []byte) error {
	return errors.Join(j.Store(ctx, []Output{{Session: sid, Notice: payload, N: n}})...)
}

func (j *Journal) noticeWrite(sid string, n uint64, payload []byte) (*write, error) {
	subject, err := j.names.Out(sid)
	if err != nil {
		return nil, err
	}
	id := subjects.NoticeID(sid, n)
	if n == 0 {
		id = subjects.UnnumberedID(sid, codec.Digest(payload).String())
	}
	if log := j.conn.LogID(); log != "" {
		id += "." + log // another system may have a session of this name
	}
	w := &write{subject: subject, data: payload, order: sid, headers: []string{subjects.HeaderMsgID, id}}
	return w, j.check(w, noticeBytesMax)
}

// LastNoticesMax is the most sessions for one call of LastNotices. The server allows
// 1,024 subjects in a request.
const LastNoticesMax = 512

// NoticesKept returns the sequences of the first and last stored notice; last is less
// than first if there is none.
func (j *Journal) NoticesKept(ctx context.Context) (first, last uint64, err error) {
	state, err := j.state(ctx, j.names.NoticesStream(), "")
	return state.FirstSeq, state.LastSeq, err
}

// LastNotice returns the sequence of the last notice of any session, 0 if there is
// none. A reader that follows from the next sequence on gets every notice that is
// published after this call.
func (j *Journal) LastNotice(ctx context.Context) (uint64, error) {
	_, last, err := j.NoticesKept(ctx)
	return last, err
}

// LastSummary returns the summary in a session's last stored notice, from the leader. It
// is zero if none is stored, or the last one has no summary.
func (j *Journal) LastSummary(ctx context.Context, sid string) (session.Summary, error) {
	subject, err := j.names.Out(sid)
	if err != nil {
		return session.Summary{}, err
	}
	m, err := j.lastOn(ctx, j.names.NoticesStream(), subject)
	if err != nil {
		return session.Summary{}, fmt.Errorf("read the last notice of %s: %w", sid, err)
	}
	if j.conn.IsForeign(m.header) {
		return session.Summary{}, nil
	}
	n := Notice{Payload: m.data}
	last, _ := n.Summary()
	return last, nil
}

// ReadNotices yields the notices of a session (of all, if sid is empty) with sequences
// from from to to in their stream, in order. An error ends it.
func (j *Journal) ReadNotices(ctx context.Context, sid string, from, to uint64) iter.Seq2[Notice, error] {
	filter, err := ">", error(nil)
	if sid != "" {
		filter, err = j.names.Out(sid)
	}
	return j.noticesOf(err, j.read(ctx, j.names.NoticesStream(), filter, from, to, true))
}

// LastNotices yields the last notice of each of these sessions, at most
// LastNoticesMax, with a sequence of at most upTo (0: the newest), in the order of the
// stream. A session without one is left out. An error ends it.
func (j *Journal) LastNotices(ctx context.Context, sids []string, upTo uint64) iter.Seq2[Notice, error] {
	all := make([]string, len(sids))
	var failed error
	for i, sid := range sids {
		var err error
		if all[i], err = j.names.Out(sid); err != nil {
			failed = err
		}
	}
	return j.noticesOf(failed, j.lasts(ctx, j.names.NoticesStream(), all, upTo))
}

// FollowNotices yields the notices of a session (of all, if sid is empty) from a
// sequence of the notices' stream on, and then new ones, until ctx ends or the reader
// stops. From 0 on means all stored notices. It resumes after a lost connection. When
// ctx ends, it yields ctx's error last.
func (j *Journal) FollowNotices(ctx context.Context, sid string, from uint64) iter.Seq2[Notice, error] {
	filter, err := j.names.OutAll(), error(nil)
	if sid != "" {
		filter, err = j.names.Out(sid)
	}
	return j.noticesOf(err, j.follow(ctx, j.names.NoticesStream(), filter, from))
}

// noticesOf yields the messages of a read as notices, or only failed if it is not nil.
func (j *Journal) noticesOf(failed error, read iter.Seq2[stored, error]) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		if failed != nil {
			yield(Notice{}, failed)
			return
		}
		for m, err := range read {
			if err != nil {
				yield(Notice{}, fmt.Errorf("read notices: %w", err))
				return
			}
			sid, err := j.names.ParseOut(m.subject)
			if err != nil || j.conn.IsForeign(m.header) {
				continue // its subject has no valid session name
			}
			if !yield(Notice{Session: sid, Seq: m.seq, Time: m.time, Payload: m.data}, nil) {
				return
			}
		}
	}
}
