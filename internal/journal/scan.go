package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// ScanEffects calls fn for every effect that the effects stream holds at the time of
// the call, without claims, in the order in which they were published. An error of fn
// ends it and is returned unchanged.
func (j *Journal) ScanEffects(ctx context.Context, fn func(StoredEffect) error) error {
	_, err := j.scan(ctx, j.names.EffectsStream(), 1, func(m stored) error {
		name, err := j.names.ParseEffect(m.subject)
		if err != nil {
			return nil //nolint:nilerr // a claim, or a subject that names no effect
		}
		return fn(StoredEffect{Name: name, Seq: m.seq, Time: m.time, Payload: m.data})
	})
	return err
}

// Kept is one entry of the snapshots' bucket.
type Kept struct {
	Session     string
	Snapshot    []byte // nil if it is a blob, which GetSnapshot reads
	Quarantined bool   // the entry is a quarantine, not a snapshot
}

// ScanSnapshots calls fn for every snapshot and every quarantine in the bucket at the
// time of the call. An error of fn ends it and is returned unchanged.
func (j *Journal) ScanSnapshots(ctx context.Context, fn func(Kept) error) error {
	prefix := j.names.SnapshotsSubject("")
	_, err := j.scan(ctx, j.names.SnapshotsStream(), 1, func(m stored) error {
		key, ours := strings.CutPrefix(m.subject, prefix)
		if !ours || m.deleted() {
			return nil
		}
		if sid, ok := subjects.ParseQuarantineKey(key); ok {
			return fn(Kept{Session: sid, Quarantined: true})
		}
		sid, ok := subjects.ParseSnapshotKey(key)
		if !ok {
			return nil
		}
		if _, isRef := parseSnapshotRef(m.data); isRef {
			return fn(Kept{Session: sid})
		}
		return fn(Kept{Session: sid, Snapshot: m.data})
	})
	return err
}

// scan calls fn for every message of a stream from sequence from to the last one at the
// time of the call, in order and without a gap. It returns the sequence of that last one.
// The server pushes messages, at twice the speed of reading by requests. If it stops,
// because it restarted or this user may not create a consumer, the rest is read by
// requests.
func (j *Journal) scan(ctx context.Context, stream string, from uint64, fn func(stored) error) (last uint64, err error) {
	state, err := j.state(ctx, stream, "")
	if err != nil {
		return 0, err
	}
	s := &scanning{journal: j, stream: stream, next: from, to: state.LastSeq, fn: fn}
	if err := s.push(ctx); err != nil && s.failed == nil {
		j.conn.Log.Debug("scan_interrupted", "stream", stream, "seq", s.next, "error", err.Error())
	}
	if s.failed == nil && s.next <= s.to {
		for m, err := range j.read(ctx, stream, ">", s.next, s.to, true) {
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", stream, err)
			}
			if s.failed = fn(m); s.failed != nil {
				break
			}
		}
	}
	return s.to, s.failed
}

// headerStalled is a heartbeat's header with the subject on which the server waits for
// a flow control response.
const headerStalled = "Nats-Consumer-Stalled"

const (
	scanHeartbeat = time.Second      // interval of heartbeats while the server pushes nothing
	scanSilence   = 5 * time.Second  // after which the server counts as gone
	scanInactive  = 30 * time.Second // after which the server deletes the consumer of a scan that died
	// scanRoom is more messages than fit into 32 MiB, which the server pushes before it
	// waits for flow control. If they do not fit, some are lost, and the rest is read by
	// requests.
	scanRoom = 1 << 17
)

type scanning struct {
	journal *Journal
	stream  string
	next    uint64 // sequence to continue from
	to      uint64
	fn      func(stored) error
	failed  error  // of fn
	taken   uint64 // consumer sequence of the last message
}

// push receives pushed messages until the server has no more, a message is lost, or fn
// fails.
func (s *scanning) push(ctx context.Context) error {
	conn := s.journal.conn
	inbox, msgs := conn.NC.NewInbox(), make(chan *nats.Msg, scanRoom)
	sub, err := conn.NC.ChanSubscribe(inbox, msgs)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	cfg := jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.next,
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, Replicas: 1, MemoryStorage: true,
		FlowControl: true, IdleHeartbeat: scanHeartbeat, InactiveThreshold: scanInactive,
	}
	var consumer jetstream.PushConsumer
	err = conn.Attempt(ctx, "", func(ctx context.Context) (err error) {
		consumer, err = conn.JS.CreatePushConsumer(ctx, s.stream, cfg)
		return err
	})
	if err != nil {
		return err
	}
	info := consumer.CachedInfo()
	defer s.journal.deleteConsumer(ctx, s.stream, info.Name)
	silence := time.NewTimer(scanSilence)
	defer silence.Stop()
	for more := info.NumPending > 0 || info.Delivered.Consumer > 0; more && s.next <= s.to; {
		select {
		case m := <-msgs:
			if more, err = s.receive(m); err != nil {
				return err
			}
			silence.Reset(scanSilence)
		case <-silence.C:
			return errors.New("the server pushes nothing")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// receive handles one message of the server; more is false after the last one. The
// reply subject identifies a message of the stream, since a publisher may set any header.
func (s *scanning) receive(m *nats.Msg) (more bool, err error) {
	if at, ok := natsio.ReadAckReply(m); ok {
		if at.ConsumerSeq != s.taken+1 {
			return false, errBrokenBatch
		}
		if at.Seq > s.to {
			return false, nil
		}
		s.taken, s.next = at.ConsumerSeq, at.Seq+1
		s.failed = s.fn(stored{subject: m.Subject, seq: at.Seq, time: at.Time.UnixMilli(), header: m.Header, data: m.Data})
		return at.Pending > 0, s.failed
	}
	if m.Reply != "" { // a flow control request
		return true, m.Respond(nil)
	}
	if stalled := m.Header.Get(headerStalled); stalled != "" {
		return true, s.journal.conn.NC.Publish(stalled, nil)
	}
	return false, nil // a heartbeat: the server has no more to push, or its messages were lost
}
