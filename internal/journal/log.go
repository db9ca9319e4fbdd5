package journal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nats-io/nuid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Publish appends an event to the log and returns its sequence. id is sent in the
// Nats-Msg-Id, after the session's: publishing the same event again within the
// stream's duplicate window stores nothing and returns the sequence of the first. It
// may be empty for settlements, which effect names distinguish.
//
// A payload over session.EventBytesMax is a *MaxPayloadError before anything is sent.
// If another event of the session has the id, nothing is stored and the error is ErrIDTaken. If no
// acknowledgement arrived before ctx ended, the error wraps ErrUnknownOutcome; calling
// again with the same id is safe.
func (j *Journal) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error) {
	subject, err := j.names.Log(door, sid)
	if err != nil {
		return 0, err
	}
	w := &write{subject: subject, data: payload, headers: []string{subjects.HeaderMsgID, subjects.EventID(sid, cmp.Or(id, nuid.Next()))}}
	if err := j.check(w, session.EventBytesMax); err != nil {
		return 0, fmt.Errorf("publish to %s: %w", subject, err)
	}
	j.streams.Identify(ctx)
	if err := j.logs.commitOne(ctx, w); err != nil {
		return 0, fmt.Errorf("publish to %s: %w", subject, err)
	}
	if w.duplicate && id != "" {
		stored, err := j.names.Stored(door, sid)
		if err != nil {
			return 0, err
		}
		held, err := j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: w.seq})
		if err != nil {
			return 0, fmt.Errorf("publish to %s: compare with event %d: %w", subject, w.seq, err)
		}
		if held.subject != stored || j.conn.IsForeign(held.header) || !bytes.Equal(held.data, payload) {
			return 0, fmt.Errorf("publish to %s: id %q: %w (event %d on %s)", subject, id, ErrIDTaken, w.seq, held.subject)
		}
	}
	return w.seq, nil
}

// PublishAfter appends an event that must be the session's next one: its last one, through
// any door, is at sequence after. Otherwise nothing is stored and the error is
// ErrOvertaken, also if an earlier call stored this event and its answer was lost.
func (j *Journal) PublishAfter(ctx context.Context, door session.Door, sid string, payload []byte, after uint64) (uint64, error) {
	subject, err := j.names.Log(door, sid)
	if err != nil {
		return 0, err
	}
	all, err := j.names.Session(sid)
	if err != nil {
		return 0, err
	}
	w := &write{subject: subject, data: payload, alone: true, headers: []string{
		subjects.HeaderExpectLastSubject, strconv.FormatUint(after, 10), subjects.HeaderExpectLastOn, all,
	}}
	if err = j.check(w, session.EventBytesMax); err == nil {
		j.streams.Identify(ctx)
		err = j.logs.commitOne(ctx, w)
	}
	if natsio.IsConflict(err) {
		err = ErrOvertaken
	}
	if err != nil {
		return 0, fmt.Errorf("publish to %s after event %d: %w", subject, after, err)
	}
	return w.seq, nil
}

// PublishInstall appends an install record and returns its sequence. With onlyIfNone
// it does so only if the log has none; otherwise stored is false, and seq is the
// sequence of the newest record.
func (j *Journal) PublishInstall(ctx context.Context, payload []byte, onlyIfNone bool) (seq uint64, stored bool, err error) {
	var w *write
	after := uint64(0)
	for { // again while the newest record is another system's, and none is of this log
		w, err = j.publishInstall(ctx, payload, onlyIfNone, after)
		if err != nil || !w.foreign {
			break
		}
		if e, found, err := j.InstallBefore(ctx, math.MaxUint64); err != nil || found {
			return e.Seq, false, err
		}
		after = w.seq
	}
	if err != nil {
		return 0, false, fmt.Errorf("publish the install record: %w", err)
	}
	if !onlyIfNone {
		return w.seq, true, nil
	}
	newest, _, err := j.InstallBefore(ctx, math.MaxUint64)
	if err != nil {
		return 0, false, fmt.Errorf("publish the install record: %w", err)
	}
	return newest.Seq, w.existing == nil || bytes.Equal(w.existing, payload), nil
}

// publishInstall publishes an install record; with fenced, only if the newest one is at
// sequence after (0: there is none).
func (j *Journal) publishInstall(ctx context.Context, payload []byte, fenced bool, after uint64) (w *write, err error) {
	w = &write{subject: j.names.Install(), data: payload, fenced: fenced, after: after}
	if !fenced {
		w.headers = []string{subjects.HeaderMsgID, nuid.Next()}
	}
	if err = j.check(w, session.EventBytesMax); err == nil {
		err = j.logs.commitOne(ctx, w)
	}
	return w, err
}

// LastSeq returns the sequence of the log's last event from the leader, 0 if there is
// none.
func (j *Journal) LastSeq(ctx context.Context) (uint64, error) {
	state, err := j.state(ctx, j.names.LogStream(), "")
	return state.LastSeq, err
}

// LastOf returns the last event of a session through one door, from the leader; found
// is false if there is none, or if the last one is of another system.
func (j *Journal) LastOf(ctx context.Context, door session.Door, sid string) (e session.Event, found bool, err error) {
	subject, err := j.names.Stored(door, sid)
	if err != nil {
		return session.Event{}, false, err
	}
	return j.lastEvent(ctx, subject)
}

// LastEventOf is LastOf for any door.
func (j *Journal) LastEventOf(ctx context.Context, sid string) (e session.Event, found bool, err error) {
	filter, err := j.names.Session(sid)
	if err != nil {
		return session.Event{}, false, err
	}
	return j.lastEvent(ctx, filter)
}

func (j *Journal) lastEvent(ctx context.Context, filter string) (e session.Event, found bool, err error) {
	m, err := j.lastOn(ctx, j.names.LogStream(), filter)
	if err != nil {
		return session.Event{}, false, fmt.Errorf("read the last event on %s: %w", filter, err)
	}
	if m.seq == 0 || j.conn.IsForeign(m.header) {
		return session.Event{}, false, nil
	}
	e, err = j.event(m)
	return e, err == nil, err
}

// SessionNames returns the sorted names of the sessions of one partition of the log.
// The server walks all subjects of that partition.
func (j *Journal) SessionNames(ctx context.Context, partition int) ([]string, error) {
	all, err := j.SessionsIn(ctx, partition)
	return slices.Sorted(maps.Keys(all)), err
}

// InLog is how many events the log has of a session.
type InLog struct {
	Events uint64
	Wakes  uint64 // of them, through the door wake
}

// IsDeleted reports whether the log has the tombstone of the session and nothing else. No
// other session begins with a wake.
func (s InLog) IsDeleted() bool { return s.Events == 1 && s.Wakes == 1 }

// SessionsIn returns the sessions of one partition of the log. The server walks all
// subjects of that partition.
func (j *Journal) SessionsIn(ctx context.Context, partition int) (map[string]InLog, error) {
	state, err := j.state(ctx, j.names.LogStream(), j.names.LaneFilters(partition, subjects.Partitions)[0])
	if err != nil {
		return nil, fmt.Errorf("list the sessions of partition %d: %w", partition, err)
	}
	all := map[string]InLog{}
	for stored, n := range state.Subjects {
		if door, sid, err := j.names.ParseStored(stored); err == nil && sid != "" {
			of := all[sid]
			of.Events += n
			if door == session.DoorWake {
				of.Wakes += n
			}
			all[sid] = of
		}
	}
	return all, nil
}

// Nameless returns subjects of the log that name no session, sorted, and the number of
// their events, which nobody folds. The server walks all subjects of the log.
func (j *Journal) Nameless(ctx context.Context) (nameless []string, events uint64, err error) {
	for partition := range Partitions {
		state, err := j.state(ctx, j.names.LogStream(), j.names.LaneFilters(partition, subjects.Partitions)[0])
		if err != nil {
			return nil, 0, fmt.Errorf("list the subjects of partition %d: %w", partition, err)
		}
		for stored, n := range state.Subjects {
			if _, _, err := j.names.ParseStored(stored); err != nil {
				nameless, events = append(nameless, stored), events+n
			}
		}
	}
	slices.Sort(nameless)
	return nameless, events, nil
}

// foreignLook is at how many of the newest events ForeignEvents looks.
const foreignLook = 32

// ForeignEvents describes the newest events if some of them are of other systems:
// these were stored here, and nobody folds them. It is empty if there are none.
func (j *Journal) ForeignEvents(ctx context.Context) (found string, err error) {
	name := j.names.LogStream()
	state, err := j.state(ctx, name, "")
	if err != nil {
		return "", err
	}
	var last stored
	events := 0
	for m, err := range j.read(ctx, name, ">", state.LastSeq-min(state.LastSeq, foreignLook)+1, state.LastSeq, true) {
		if err != nil {
			return "", fmt.Errorf("read the newest events: %w", err)
		}
		if j.conn.IsForeign(m.header) {
			last, events = m, events+1
		}
	}
	if events == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of the newest %d events of %s name another log, the last one on %s the log %s: nobody folds them; another system was joined with this one, or a publisher set the header %s",
		events, min(state.LastSeq, foreignLook), name, last.subject, natsio.Printable(last.header.Get(subjects.HeaderLog)), subjects.HeaderLog), nil
}

// Partitions is the number of the log's partitions.
const Partitions = subjects.Partitions
