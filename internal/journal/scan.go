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

// ScanEffects calls fn for every effect that the effects stream holds when it
// is called, in the order in which they were asked, claims left out. An error
// of fn ends it and comes back as it is.
func (j *Journal) ScanEffects(ctx context.Context, fn func(StoredEffect) error) error {
	return j.scan(ctx, j.names.EffectsStream(), 1, func(m stored) error {
		name, err := j.names.ParseEffect(m.subject)
		if err != nil {
			return nil //nolint:nilerr // a claim, or what can be no effect of a session
		}
		return fn(StoredEffect{Name: name, Seq: m.seq, Time: m.time, Payload: m.data})
	}, nil)
}

// Kept is one entry of the snapshots' bucket.
type Kept struct {
	Session     string
	Snapshot    []byte // nil if it is a blob, which GetSnapshot reads
	Quarantined bool   // it says that the session is quarantined; there is no snapshot in it
}

// ScanSnapshots calls fn for every snapshot and every quarantine that the
// bucket holds when it is called. An error of fn ends it and comes back as it
// is.
func (j *Journal) ScanSnapshots(ctx context.Context, fn func(Kept) error) error {
	prefix := j.names.SnapshotsSubject("")
	return j.scan(ctx, j.names.SnapshotsStream(), 1, func(m stored) error {
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
	}, nil)
}

// scan calls fn for every message of a stream from sequence from on, up to the
// last that there is when it is called, in order and without a gap, and then
// ended (if not nil) with the sequence of that last one. What the server does
// not push, because it restarted or this user may create no consumer, is read
// by requests, which takes longer.
func (j *Journal) scan(ctx context.Context, stream string, from uint64, fn func(stored) error, ended func(last uint64)) error {
	last, err := j.lastSeq(ctx, stream)
	if err != nil {
		return fmt.Errorf("read %s: %w", stream, err)
	}
	s := &scanning{journal: j, stream: stream, next: max(from, 1), to: last, fn: fn}
	_ = s.push(ctx)
	if s.failed != nil {
		return s.failed
	}
	if s.next <= s.to {
		for m, err := range j.read(ctx, stream, ">", s.next, s.to, true) {
			if err != nil {
				return fmt.Errorf("read %s: %w", stream, err)
			}
			if err := fn(m); err != nil {
				return err
			}
		}
	}
	if ended != nil {
		ended(last)
	}
	return nil
}

// headerStalled names in a heartbeat the subject on which the server waits to
// hear that what it has sent is taken.
const headerStalled = "Nats-Consumer-Stalled"

// scanSilence is how long a scan waits for anything at all from the server,
// which says every scanHeartbeat that it is there.
const (
	scanSilence   = 5 * time.Second
	scanHeartbeat = time.Second
	scanInactive  = 30 * time.Second // after which the server forgets the consumer of a scan that died
)

// scanning is how far a scan has come.
type scanning struct {
	journal *Journal
	stream  string
	next    uint64 // sequence to go on from
	to      uint64
	fn      func(stored) error
	failed  error // of fn
	drained bool  // the server has nothing more to push
}

// push has the server push all of it, from where it stopped when something comes
// between, as long as that gets any further. The error is why it did not.
func (s *scanning) push(ctx context.Context) error {
	for s.next <= s.to && !s.drained {
		before := s.next
		err := s.pushed(ctx)
		if err != nil {
			s.journal.conn.Log.Debug("scan_interrupted", "stream", s.stream, "seq", s.next, "error", err.Error())
		}
		if s.failed != nil || err != nil && s.next == before {
			return err
		}
		if err == nil {
			return nil
		}
	}
	return nil
}

// config is of the consumer that pushes what is still to come.
func (s *scanning) config(inbox string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.next,
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, Replicas: 1, MemoryStorage: true,
		FlowControl: true, IdleHeartbeat: scanHeartbeat, InactiveThreshold: scanInactive,
	}
}

// pushed has the server push messages, until there are no more or something
// comes between.
func (s *scanning) pushed(ctx context.Context) error {
	inbox := s.journal.conn.NC.NewInbox()
	arrived, over := make(chan struct{}, 1), make(chan error, 1)
	var taken uint64
	done := false
	sub, err := s.journal.conn.NC.Subscribe(inbox, func(msg *nats.Msg) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		if done {
			return
		}
		end, err := s.take(msg, &taken)
		if err == nil {
			err = ctx.Err()
		}
		if end || err != nil {
			done = true
			over <- err
		}
	})
	if err != nil {
		return err
	}
	// What is under way is bounded by the server's flow control.
	_ = sub.SetPendingLimits(-1, -1)
	finished := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(finished) })
	empty := false
	defer func() {
		natsio.Unsubscribe(sub)
		<-finished // fn is called no more, and nobody else is at s
		s.drained = s.drained || empty
	}()
	var consumer jetstream.PushConsumer
	err = s.journal.conn.Attempt(ctx, "", func(ctx context.Context) (err error) {
		consumer, err = s.journal.conn.JS.CreatePushConsumer(ctx, s.stream, s.config(inbox))
		return err
	})
	if err != nil {
		return err
	}
	defer s.forget(ctx, consumer.CachedInfo().Name)
	if info := consumer.CachedInfo(); info.NumPending == 0 && info.Delivered.Consumer == 0 {
		empty = true
		return nil
	}
	silence := time.NewTimer(scanSilence)
	defer silence.Stop()
	for {
		select {
		case err := <-over:
			return err
		case <-arrived:
			silence.Reset(scanSilence)
		case <-silence.C:
			return errors.New("the server pushes nothing")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forget deletes the consumer of a scan. If it can't, the server does later.
func (s *scanning) forget(ctx context.Context, name string) {
	_ = s.journal.conn.Attempt(context.WithoutCancel(ctx), "", func(ctx context.Context) error {
		return s.journal.conn.JS.DeleteConsumer(ctx, s.stream, name)
	})
}

// take takes one message of the server; end is true after the last one. A
// message of the stream is known by its reply subject: a publisher may set any
// header.
func (s *scanning) take(msg *nats.Msg, taken *uint64) (end bool, err error) {
	if !strings.HasPrefix(msg.Reply, natsio.AckReplyPrefix) {
		return s.status(msg, *taken)
	}
	d, ok := natsio.ReadAckReply(msg)
	if !ok {
		return false, errBrokenBatch
	}
	if d.ConsumerSeq != *taken+1 {
		return false, errBrokenBatch
	}
	*taken = d.ConsumerSeq
	if d.Seq > s.to {
		s.drained = true
		return true, nil
	}
	s.next = d.Seq + 1
	m := stored{subject: msg.Subject, seq: d.Seq, time: d.Time.UnixMilli(), header: msg.Header, data: msg.Data}
	if s.failed = s.fn(m); s.failed != nil {
		return true, s.failed
	}
	s.drained = d.Pending == 0
	return s.drained || s.next > s.to, nil
}

// status hears what the server says besides: it waits until what it has sent is
// taken, or it has nothing to send.
func (s *scanning) status(msg *nats.Msg, taken uint64) (end bool, err error) {
	if msg.Reply != "" {
		return false, msg.Respond(nil)
	}
	if stalled := msg.Header.Get(headerStalled); stalled != "" {
		return false, s.journal.conn.NC.Publish(stalled, nil)
	}
	if sent, known := headerNumber(msg, natsio.HeaderLastConsumer); known && sent != taken {
		return false, errBrokenBatch
	}
	s.drained = true
	return true, nil
}
