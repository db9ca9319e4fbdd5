package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

// ReadSession yields the events of a session with sequences from from to to (0: no
// end), in order, without gaps. A few events cost the server a few lookups, wherever
// they are in the log. With leader it yields every event that was acknowledged before
// the call; without, it ends early if the replica lags. An error ends it. The first event
// of an erased session is its tombstone, as soon as the deletion has begun; ErrErased means
// that it began during the read.
func (j *Journal) ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error] {
	return j.sinceErasure(ctx, sid, from, to, j.withRedacted(ctx, part{sid: sid, from: from, to: to}, j.events(sid, func(filter string) iter.Seq2[stored, error] {
		return j.read(ctx, j.names.LogStream(), filter, from, to, leader)
	})))
}

// ReadNext yields at most n events of a session with sequences from from to to, in
// order, without gaps. Each is one request, so the server does not search the log after
// the last one. Any replica answers; it ends early if the replica lags.
func (j *Journal) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return j.sinceErasure(ctx, sid, from, to, j.withRedacted(ctx, part{sid: sid, from: from, to: to, most: n, some: true}, j.events(sid, func(filter string) iter.Seq2[stored, error] {
		return j.readNext(ctx, j.names.LogStream(), filter, from, to, int(min(n, math.MaxInt)))
	})))
}

// NextOf is ReadNext for the events of a session through one door, without an end.
func (j *Journal) NextOf(ctx context.Context, door session.Door, sid string, from, n uint64) iter.Seq2[session.Event, error] {
	return j.withRedacted(ctx, part{sid: sid, door: door, from: from, most: n, some: true}, j.events(sid, func(string) iter.Seq2[stored, error] {
		filter, err := j.names.Stored(door, sid)
		if err != nil {
			return func(yield func(stored, error) bool) { yield(stored{}, err) }
		}
		return j.readNext(ctx, j.names.LogStream(), filter, from, 0, int(min(n, math.MaxInt)))
	}))
}

// events yields the messages of read, for the filter of a session, as events.
func (j *Journal) events(sid string, read func(filter string) iter.Seq2[stored, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		filter, err := j.names.Session(sid)
		if err != nil {
			yield(session.Event{}, err)
			return
		}
		for m, err := range read(filter) {
			var e session.Event
			if err == nil {
				e, err = j.event(m)
			}
			if errors.Is(err, errForeign) {
				continue
			}
			if err != nil {
				yield(session.Event{}, fmt.Errorf("read session %s: %w", sid, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Hole is a range of sequences, both ends included, at which a stream has no message. A
// hole in the log is a loss, unless the ledger of erased messages explains it.
type Hole struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Scanned is what ReadAll found in the log besides events.
type Scanned struct {
	Skipped int      // messages that are no events: their subject has no valid session name
	Foreign int      // messages of another system
	Holes   []Hole   // in order, that the ledger of erased messages does not explain
	Erased  []string // sessions whose deletion began during the read: some of their events were not read
}

// ReadAll calls fn for every event of the log from sequence from to the last one at
// the time of the call, from one goroutine. It is for reading the whole log: the server
// pushes messages as fast as fn accepts them. An error of fn ends it and is returned
// unchanged.
func (j *Journal) ReadAll(ctx context.Context, from uint64, fn func(session.Event) error) (s Scanned, err error) {
	begin, _, err := j.tombstones(ctx)
	if err != nil {
		return s, err
	}
	redacted, err := j.redacted.all(ctx, j)
	if err != nil {
		return s, err
	}
	give := func(e session.Event) error {
		if e.Seq < begin[e.Session] {
			return nil // it will be deleted
		}
		return fn(e)
	}
	before, next := redacted, max(from, 1)
	last, err := j.scan(ctx, j.names.LogStream(), next, func(m stored) error {
		if m.seq > next {
			s.Holes = append(s.Holes, Hole{next, m.seq - 1})
		}
		next = m.seq + 1
		for len(redacted) > 0 && redacted[0].Seq <= m.seq {
			r := redacted[0]
			if redacted = redacted[1:]; r.Seq < from {
				continue
			}
			e, err := r.event()
			if err == nil {
				err = give(e)
			}
			if err != nil || r.Seq == m.seq { // it is being erased
				return err
			}
		}
		e, err := j.event(m)
		switch {
		case errors.Is(err, errForeign):
			s.Foreign++
			return nil
		case err != nil:
			s.Skipped++
			j.conn.Log.Warn("event_skipped", "seq", m.seq, "subject", m.subject, "error", err.Error())
			return nil
		}
		return give(e)
	})
	if err != nil {
		return s, err
	}
	if last >= next {
		s.Holes = append(s.Holes, Hole{next, last})
	}
	now, explained, err := j.tombstones(ctx)
	for sid, seq := range now {
		if seq > begin[sid] {
			s.Erased = append(s.Erased, sid)
		}
	}
	if err == nil {
		redacted, err = j.redacted.all(ctx, j)
	}
	for _, r := range redacted {
		if !slices.Contains(before, r) {
			s.Erased = append(s.Erased, r.sid)
		}
	}
	slices.Sort(s.Erased)
	s.Erased, s.Holes = slices.Compact(s.Erased), unexplained(s.Holes, explained)
	return s, err
}

// LogMissing returns how many sequences up to the log's last one have no event, without
// those that the ledger of erased messages explains: each is a lost one. A snapshot may be
// from before the loss, and then does not match the log.
func (j *Journal) LogMissing(ctx context.Context) (missing uint64, err error) {
	state, err := j.state(ctx, j.names.LogStream(), "")
	if err != nil {
		return 0, err
	}
	missing, _, err = j.lost(ctx, state)
	return missing, err
}

// CountEvents returns the number of a session's events in the log. It is 0 if the count
// proves nothing: the log has lost events, or does not have the event at have yet, or the
// session's events are being deleted.
//
// The server maintains this number. To find the end of a session by reading, it loads
// all blocks of the log between the session's last event and the log's.
func (j *Journal) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	filter, err := j.names.Session(sid)
	if err != nil {
		return 0, err
	}
	state, err := j.state(ctx, j.names.LogStream(), filter)
	if err != nil {
		return 0, fmt.Errorf("count the events of %s: %w", sid, err)
	}
	lost, open, err := j.lost(ctx, state)
	if err != nil || lost > 0 || state.LastSeq < have || open != nil && open.Session == sid {
		return 0, err
	}
	for _, one := range state.Subjects {
		n += one
	}
	redacted, err := j.redacted.count(ctx, j, sid, state.LastSeq-min(state.LastSeq, state.Msgs))
	return n + redacted, err
}

// EventAt returns the event at a sequence. If there is no message, the error is
// ErrNotFound; a message that is no event is another error.
func (j *Journal) EventAt(ctx context.Context, seq uint64) (session.Event, error) {
	events, err := j.EventsAt(ctx, []uint64{seq})
	if err != nil {
		return session.Event{}, err
	}
	return events[0], nil
}

// EventsAt returns the events at these sequences, in their order. It reads from any
// replica, and from the leader if the replica does not have the event. If one of the
// events does not exist, the error is ErrNotFound and names it.
func (j *Journal) EventsAt(ctx context.Context, seqs []uint64) ([]session.Event, error) {
	found, requests := make([]stored, len(seqs)), make([][]byte, len(seqs))
	for i, seq := range seqs {
		requests[i] = getRequest{Seq: seq}.body()
	}
	err := j.directEach(ctx, j.names.LogStream(), requests, func(i int, msg *nats.Msg) error {
		if m, end, err := parseDirect(msg); err == nil && !end {
			found[i] = m
		}
		return nil
	})
	if err != nil { // the leader answers instead
		j.conn.Log.Debug("direct_read_failed", "error", err.Error())
	}
	events := make([]session.Event, len(seqs))
	for i, m := range found {
		if m.seq == 0 {
			m, err = j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: max(seqs[i], 1)})
			if errors.Is(err, natsio.ErrNotFound) {
				if events[i], err = j.redacted.at(ctx, j, seqs[i]); err == nil {
					continue
				}
			}
			if err != nil {
				return nil, fmt.Errorf("read event %d: %w", seqs[i], err)
			}
		}
		if m.seq != seqs[i] {
			return nil, fmt.Errorf("read event %d: %w", seqs[i], natsio.ErrNotFound)
		}
		if events[i], err = j.event(m); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// FirstSeqs returns the sequence of each session's first event, in their order; 0:
// there is none. Any replica answers each of the requests. One that lags may return 0,
// but never a later event than the first.
func (j *Journal) FirstSeqs(ctx context.Context, sids []string) ([]uint64, error) {
	filters, requests := make([]string, len(sids)), make([][]byte, len(sids))
	for i, sid := range sids {
		var err error
		if filters[i], err = j.names.Session(sid); err != nil {
			return nil, err
		}
		requests[i] = getRequest{Seq: 1, NextFor: filters[i]}.body()
	}
	var hidden []int
	seqs := make([]uint64, len(sids))
	err := j.directEach(ctx, j.names.LogStream(), requests, func(i int, msg *nats.Msg) (err error) {
		if seqs[i], err = directSeq(msg); errors.Is(err, errHidden) {
			hidden = append(hidden, i)
			return nil
		}
		return err
	})
	for _, i := range hidden {
		var m stored
		if err == nil {
			m, err = j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: 1, NextFor: filters[i]})
			seqs[i] = m.seq
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look for the first events of %d sessions: %w", len(sids), natsio.Typed(err))
	}
	return seqs, nil
}

// InstallBefore returns the newest install record with a sequence below seq, or else
// the oldest one: the record that a session pins whose first event is at seq. found is
// false if the log has none. The result is exact, since the leader confirms it.
func (j *Journal) InstallBefore(ctx context.Context, seq uint64) (e session.Event, found bool, err error) {
	m, err := j.installBefore(ctx, seq)
	for at := seq; err == nil && j.conn.IsForeign(m.header); {
		if m.seq < at {
			at = m.seq
			m, err = j.installBefore(ctx, at)
			continue
		}
		// No record below seq is of this log: the oldest one is later.
		m, err = j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: m.seq + 1, NextFor: j.names.Install()})
		at = 0
	}
	if errors.Is(err, natsio.ErrNotFound) {
		return session.Event{}, false, nil
	}
	if err != nil {
		return session.Event{}, false, fmt.Errorf("find the install record before event %d: %w", seq, err)
	}
	e, err = j.event(m)
	return e, err == nil, err
}

// replicaTimeout is how long installBefore waits for a replica before it asks the
// leader.
const replicaTimeout = 2 * time.Second

func (j *Journal) installBefore(ctx context.Context, seq uint64) (stored, error) {
	log, install := j.names.LogStream(), j.names.Install()
	best, err := j.leaderGet(ctx, log, getRequest{LastFor: install})
	if err != nil || best.seq < seq {
		return best, err
	}
	// The newest is too new. A replica finds the one before seq in one step, but it may
	// lag; the leader's records from there on lead to the right one.
	best = stored{}
	if seq > 1 {
		short, cancel := context.WithTimeout(ctx, replicaTimeout)
		for m, err := range j.lasts(short, log, []string{install}, seq-1) {
			if err == nil {
				best = m
			}
		}
		cancel()
	}
	if best.seq == 0 {
		if best, err = j.leaderGet(ctx, log, getRequest{Seq: 1, NextFor: install}); err != nil {
			return stored{}, err
		}
	}
	for best.seq < seq {
		next, err := j.leaderGet(ctx, log, getRequest{Seq: best.seq + 1, NextFor: install})
		if err != nil && !errors.Is(err, natsio.ErrNotFound) {
			return stored{}, err
		}
		if err != nil || next.seq >= seq {
			break
		}
		best = next
	}
	return best, nil
}

// TraceParentAt returns the trace context of the event at a sequence, empty if it has
// none.
func (j *Journal) TraceParentAt(ctx context.Context, seq uint64) (string, error) {
	m, err := j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: max(seq, 1)})
	if errors.Is(err, natsio.ErrNotFound) { // its text was removed, and with it its headers
		_, err = j.redacted.at(ctx, j, seq)
	}
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", seq, err)
	}
	return natsio.TraceParentOf(m.header), nil
}
