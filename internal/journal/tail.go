package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// CountEvents returns how many events a session has, which is the number of
// those that the log has at have or before, and of what came later. 0: the leader
// does not tell; the log misses some that it had, or does not have that one yet.
//
// The server keeps this number. To find the end of a session by reading, it loads
// all blocks of the log between the session's last event and the log's.
func (j *Journal) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	filter, err := j.names.Session(sid)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(struct {
		Subjects string `json:"subjects_filter"`
	}{filter})
	if err != nil {
		return 0, err
	}
	subject := j.conn.API + "STREAM.INFO." + j.names.LogStream()
	err = j.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		answer, err := j.conn.NC.RequestWithContext(ctx, subject, body)
		if err == nil {
			n, err = parseCount(answer.Data, have)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count the events of %s: %w", sid, err)
	}
	return n, nil
}

// parseCount adds up what a stream has on the subjects that were asked for, if it
// has all that it ever had, and the message at have. The server looks at the
// stream first and at the subjects then.
func parseCount(data []byte, have uint64) (n uint64, err error) {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
		State struct {
			Msgs     uint64            `json:"messages"`
			LastSeq  uint64            `json:"last_seq"`
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return 0, fmt.Errorf("the answer of JetStream does not parse: %w", err)
	}
	if answer.Error != nil {
		return 0, answer.Error
	}
	if s := answer.State; s.Msgs != s.LastSeq || s.LastSeq < have {
		return 0, nil
	}
	for _, one := range answer.State.Subjects {
		n += one
	}
	return n, nil
}

// LastSeqOf returns the sequence of the last event that came through a session's
// door, 0 if none did. The leader tells.
func (j *Journal) LastSeqOf(ctx context.Context, door session.Door, sid string) (uint64, error) {
	e, _, err := j.LastOf(ctx, door, sid)
	return e.Seq, err
}

// LeaderEventAt is EventAt, and the leader answers. To the server it is a request
// like others: while it loads a block of the log for it, what this connection
// says else is heard, which it is not while a direct read waits for one.
func (j *Journal) LeaderEventAt(ctx context.Context, seq uint64) (session.Event, error) {
	m, err := j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: max(seq, 1)})
	if err != nil {
		return session.Event{}, fmt.Errorf("read event %d: %w", seq, err)
	}
	return j.event(m)
}

// ReadNext yields at most n events of a session with sequences from from to to,
// in order, none left out. Each is asked for alone, so that nothing is looked at
// behind the last one. Any replica answers; one that is behind ends early.
func (j *Journal) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return j.events(sid, func(filter string, yield func(stored, error) bool) {
		j.oneByOne(ctx, filter, from, to, n, yield)
	})
}

// oneByOne yields at most n messages of the log, and reports whether it may go on
// behind them: false is after an error, if the reader has enough, and if the
// replica has no more.
func (j *Journal) oneByOne(ctx context.Context, filter string, from, to, n uint64, yield func(stored, error) bool) bool {
	goOn := true
	r := reading{
		journal: j, stream: j.names.LogStream(), filter: filter, next: max(from, 1), to: to,
		alone: int(min(n, math.MaxInt)), known: true,
		yield: func(m stored, err error) bool {
			goOn = yield(m, err) && err == nil
			return goOn
		},
	}
	for r.alone > 0 && r.next <= to && !r.ended {
		if !r.direct(ctx) || !r.more && r.alone > 0 && !r.ended {
			return false
		}
	}
	return goOn
}

// events yields as events what read finds by the filter of a session.
func (j *Journal) events(sid string, read func(filter string, yield func(stored, error) bool)) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		filter, err := j.names.Session(sid)
		if err != nil {
			yield(session.Event{}, err)
			return
		}
		read(filter, func(m stored, err error) bool {
			var e session.Event
			if err == nil {
				e, err = j.event(m)
			}
			if err != nil {
				yield(session.Event{}, fmt.Errorf("read session %s: %w", sid, err))
				return false
			}
			return yield(e, nil)
		})
	}
}

// How a stretch of the log is read from several places at once: from how many,
// and how much is held of it before the first of it is passed on.
const (
	stretchParts  = 8
	stretchEvents = 256
	stretchBytes  = 4 << 20
)

// ReadStretch yields the events of a session with sequences from from to to, in
// order, none left out; at to it must have one. It reads from several places of
// the stretch at once: one event after the other, each would take a round trip.
// Any replica answers; one that is behind ends early.
func (j *Journal) ReadStretch(ctx context.Context, sid string, from, to uint64) iter.Seq2[session.Event, error] {
	return j.events(sid, func(filter string, yield func(stored, error) bool) {
		parts := stretch(max(from, 1), to)
		subject := j.directSubject(j.names.LogStream())
		err := j.conn.Repeat(ctx, subject, func(ctx context.Context) error { return j.readParts(ctx, subject, filter, parts) })
		if err != nil {
			yield(stored{}, err)
			return
		}
		for _, p := range parts {
			for _, m := range p.found {
				if !yield(m, nil) {
					return
				}
			}
			// Those for which there was no room follow, and what is behind a hidden one.
			if p.short || !j.oneByOne(ctx, filter, p.next, p.end, math.MaxUint64, yield) {
				return
			}
		}
	})
}

// part is a part of a stretch.
type part struct {
	next, end uint64   // what is still to be read
	found     []stored // before next
	short     bool     // the replica has nothing from next on: it is behind
	hidden    bool     // what is next is read alone: errHidden
}

// stretch divides a stretch of the log into parts.
func stretch(from, to uint64) (parts []*part) {
	if from > to {
		return nil
	}
	n := min(to-from+1, stretchParts)
	for i := range n {
		parts = append(parts, &part{next: from + (to-from+1)*i/n, end: from + (to-from+1)*(i+1)/n - 1})
	}
	return parts
}

// take takes an answer to a read of the next event of a part.
func (p *part) take(msg *nats.Msg) (bytes int, err error) {
	m, _, err := parseDirect(msg)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		p.short = true
		return 0, nil
	case errors.Is(err, errHidden):
		p.hidden = true
		return 0, nil
	case err != nil:
		return 0, err
	case m.seq > p.end:
		p.next = p.end + 1
		return 0, nil
	}
	p.found, p.next = append(p.found, m), m.seq+1
	return len(m.data), nil
}

// readParts reads all parts side by side, as far as there is room for what is
// found. Called again, it goes on.
func (j *Journal) readParts(ctx context.Context, subject, filter string, parts []*part) error {
	inbox, msgs, done, err := j.conn.Await(2 * len(parts))
	if err != nil {
		return err
	}
	defer done()
	asked, events, bytes := 0, 0, 0
	ask := func(i int) error {
		p := parts[i]
		if p.short || p.hidden || p.next > p.end || events >= stretchEvents || bytes >= stretchBytes {
			return nil
		}
		asked++
		body, err := json.Marshal(getRequest{Seq: p.next, NextFor: filter})
		if err != nil {
			return err
		}
		return j.conn.NC.PublishRequest(subject, inbox+"."+strconv.Itoa(i), body)
	}
	for i := range parts {
		if err := ask(i); err != nil {
			return err
		}
	}
	for ; asked > 0; asked-- {
		var msg *nats.Msg
		select {
		case msg = <-msgs:
		case <-ctx.Done():
			return ctx.Err()
		}
		i, err := strconv.Atoi(msg.Subject[len(inbox)+1:])
		if err != nil || i < 0 || i >= len(parts) {
			return fmt.Errorf("an answer on %s, which nobody asked for", msg.Subject)
		}
		n, err := parts[i].take(msg)
		if err != nil {
			return err
		}
		events, bytes = events+1, bytes+n
		if err := ask(i); err != nil {
			return err
		}
	}
	return nil
}
