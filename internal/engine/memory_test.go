package engine

// A world in memory, which keeps the contract of internal/journal as far as a lane
// relies on it: names take one message, reads that are not the leader's may
// end early, and a write may fail before or after it was stored.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// outcome is what becomes of one call.
type outcome int

const (
	works     outcome = iota
	fails             // nothing is stored
	failsLate         // it is stored, and the answer is lost
	hangs             // until the caller gives up
)

var errFlaky = errors.New("the network is gone")

// call is one call of a world's method.
type call struct {
	op  string // the method's name
	sid string
	who string // the effect, the notice's number
}

// depot is what a world in memory stores.
type depot struct {
	t         *testing.T
	mu        sync.Mutex
	lost      uint64               // events up to here were removed from the log's end and replaced
	log       []session.Event      // ascending
	lagging   uint64               // reads that are not the leader's end here; 0: nowhere
	effects   map[string][]byte    // also wakes that have fired
	timers    map[string]scheduled // wakes
	forgotten map[string][]byte    // effects that were stored
	withdrawn map[string]bool      // effects that no bridge may start any more
	cancelled map[string]bool      // effects that a cancel message named
	notices   map[string][]notice  // by session, in the order of their storing
	snapshots map[string][]byte
	listed    []journal.SnapshotAt // in the order of their putting
	puts      uint64               // snapshots put
	stops     map[string][]byte
	guard     []byte // of the one lane
	guardRev  uint64
	blobs     map[codec.Ref][]byte
	calls     map[call]int
	progress  []string // in the order of its publishing
}

// memory is a world: a connection to a depot.
type memory struct {
	*depot
	plan    func(call) outcome // decides what becomes of a call; nil: all work
	dead    bool               // the process was killed: nothing is stored any more
	awaited []string           // wakes that were stored for somebody who waits
	asks    int                // largest effect that is taken, in bytes; 0: any
	inline  bool               // BeginStore starts no goroutine

	// onProgress is called with the session and the event of what is said about
	// a run; nil: nobody is.
	onProgress func(sid string, seq uint64)
}

// scheduled is the message schedule of a wake.
type scheduled struct {
	at      int64 // Unix ms
	payload []byte
}

type notice struct {
	n    uint64
	data []byte
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{depot: &depot{
		t: t, effects: map[string][]byte{}, timers: map[string]scheduled{}, forgotten: map[string][]byte{}, withdrawn: map[string]bool{}, cancelled: map[string]bool{}, notices: map[string][]notice{},
		snapshots: map[string][]byte{}, stops: map[string][]byte{}, blobs: map[codec.Ref][]byte{}, calls: map[call]int{},
	}}
	m.append(session.DoorInstall, "", session.BuiltinInstall())
	return m
}

// append stores an event and returns it.
func (d *depot) append(door session.Door, sid string, payload []byte) session.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	seq := d.lost + 1
	if n := len(d.log); n > 0 && d.log[n-1].Seq >= seq {
		seq = d.log[n-1].Seq + 1
	}
	e := session.Event{Session: sid, Door: door, Seq: seq, Time: time.Now().UnixMilli(), Payload: payload}
	d.log = append(d.log, e)
	return e
}

// lose takes the events from seq on out of the log, as a power loss does.
func (d *depot) lose(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = slices.DeleteFunc(d.log, func(e session.Event) bool { return e.Seq >= seq })
}

// planned changes what becomes of calls from now on.
func (m *memory) planned(plan func(call) outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = plan
}

// count returns how often a call was made.
func (m *memory) count(c call) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[c]
}

// forgetCalls counts calls from now on.
func (m *memory) forgetCalls() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.calls)
}

// do carries out a call as planned; store is its effect.
func (m *memory) do(ctx context.Context, c call, store func() error) error {
	m.mu.Lock()
	m.calls[c]++
	plan := m.plan
	m.mu.Unlock()
	become := works
	if plan != nil {
		become = plan(c)
	}
	switch become {
	case fails:
		return errFlaky
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errFlaky
	}
	err := store()
	if become == failsLate {
		return errFlaky
	}
	return err
}

func (m *memory) InstallBefore(ctx context.Context, seq uint64) (e session.Event, found bool, err error) {
	err = m.do(ctx, call{op: "InstallBefore"}, func() error {
		for _, have := range m.log {
			if have.Session == "" && (!found || have.Seq < seq) {
				e, found = have, true
			}
		}
		return nil
	})
	return e, found, err
}

func (m *memory) ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error] {
	return m.read(ctx, call{op: "ReadSession", sid: sid, who: fmt.Sprintf("%d-%d", from, to)}, from, to, 0, leader)
}

func (m *memory) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	if n == 0 {
		return func(func(session.Event, error) bool) {}
	}
	return m.read(ctx, call{op: "ReadNext", sid: sid, who: fmt.Sprint(n)}, from, to, n, false)
}

// read yields at most most events (0: all) from from to to (0: no end).
func (m *memory) read(ctx context.Context, c call, from, to, most uint64, leader bool) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var events []session.Event
		err := m.do(ctx, c, func() error {
			for _, e := range m.log {
				if e.Session == c.sid && e.Seq >= from && (to == 0 || e.Seq <= to) && (leader || m.lagging == 0 || e.Seq < m.lagging) && (most == 0 || uint64(len(events)) < most) {
					events = append(events, e)
				}
			}
			return nil
		})
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

func (m *memory) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	err = m.do(ctx, call{op: "CountEvents", sid: sid}, func() error {
		if last := m.log[len(m.log)-1].Seq; last < have || last > uint64(len(m.log)) {
			return nil // it does not tell
		}
		for _, e := range m.log {
			if e.Session == sid {
				n++
			}
		}
		return nil
	})
	return n, err
}

func (m *memory) NewestOutputs(ctx context.Context) (newest [3]journal.Newest, err error) {
	return newest, m.do(ctx, call{op: "NewestOutputs"}, func() error { return nil })
}

func (m *memory) Probe(ctx context.Context) (errs [4]error) {
	for i, op := range []string{"Ask", "Notify", "Wake", "PutQuarantine"} {
		errs[i] = m.do(ctx, call{op: op, who: "probe"}, func() error { return nil })
	}
	return errs
}

func (m *memory) LastSeq(ctx context.Context) (seq uint64, err error) {
	err = m.do(ctx, call{op: "LastSeq"}, func() error {
		if n := len(m.log); n > 0 {
			seq = m.log[n-1].Seq
		}
		return nil
	})
	return seq, err
}

func (m *memory) BeginStore(ctx context.Context, outputs []journal.Output, then func(errs []error)) {
	if m.inline {
		then(m.Store(ctx, outputs))
		return
	}
	go func() { then(m.Store(ctx, outputs)) }()
}

func (m *memory) Store(ctx context.Context, outputs []journal.Output) []error {
	errs, failed := make([]error, len(outputs)), map[string]int{}
	for stage := range 3 { // effects and withdrawals, notices, wakes: nothing waits for a wake
		for i, o := range outputs {
			first, some := failed[o.Session]
			wake := o.Effect != nil && o.Effect.Class == session.ClassWake
			switch {
			case (stage == 1) != (o.Notice != nil) || (stage == 2) != wake:
				continue
			case o.Effect != nil:
				errs[i] = m.ask(ctx, o.Session, *o.Effect)
				if o.Awaited {
					m.mu.Lock()
					m.awaited = append(m.awaited, o.Session+" "+o.Effect.Name)
					m.mu.Unlock()
				}
			case o.Withdraw != nil:
				errs[i] = m.withdraw(ctx, o.Session, o.Withdraw.Name)
			case some && first < i:
				errs[i] = errFlaky // not tried
			default:
				errs[i] = m.notify(ctx, o.Session, o.N, o.Notice)
			}
			if errs[i] != nil && (!some || i < first) {
				failed[o.Session] = i
			}
		}
	}
	return errs
}

func (m *memory) ask(ctx context.Context, sid string, e session.Effect) error {
	if m.asks > 0 && len(e.Payload) > m.asks {
		return fmt.Errorf("ask: %w", &natsio.MaxPayloadError{Subject: e.Name, Bytes: len(e.Payload), Limit: m.asks})
	}
	return m.do(ctx, call{op: "Ask", sid: sid, who: e.Name}, func() error {
		name := sid + " " + e.Name
		stored, taken := m.effects[name]
		if e.Class == session.ClassWake {
			m.timers[name] = scheduled{e.Deadline, bytes.Clone(e.Payload)}
			taken = false
		}
		if taken && !bytes.Equal(stored, e.Payload) {
			return fmt.Errorf("ask: %w", &journal.ViolationError{Subject: name, Stored: stored, Wanted: e.Payload})
		}
		m.wantDescribed(e)
		m.effects[name] = bytes.Clone(e.Payload)
		return nil
	})
}

// unschedule takes a wake away that is settled.
func (d *depot) unschedule(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.timers, name)
}

func (m *memory) withdraw(ctx context.Context, sid, effect string) error {
	return m.do(ctx, call{op: "Withdraw", sid: sid, who: effect}, func() error {
		m.withdrawn[sid+" "+effect] = true
		return nil
	})
}

func (m *memory) PublishProgress(sid string, payload []byte) error {
	for line := range bytes.Lines(payload) {
		var n struct {
			Type string
			Seq  uint64
			Data struct{ Effect string }
		}
		if err := json.Unmarshal(line, &n); err != nil || n.Data.Effect == "" {
			m.t.Errorf("progress of %s says %q (%v)", sid, payload, err)
		}
		if m.onProgress != nil {
			m.onProgress(sid, n.Seq)
		}
		m.mu.Lock()
		m.progress = append(m.progress, sid+" "+n.Type+" "+n.Data.Effect)
		m.mu.Unlock()
	}
	return nil
}

func (m *memory) PublishCancel(ctx context.Context, sid string, payload []byte) error {
	var body struct{ Effects []string }
	if err := json.Unmarshal(payload, &body); err != nil || len(body.Effects) == 0 {
		m.t.Errorf("a cancel of %s says %q (%v)", sid, payload, err)
	}
	return m.do(ctx, call{op: "PublishCancel", sid: sid}, func() error {
		for _, name := range body.Effects {
			m.cancelled[sid+" "+name] = true
		}
		return nil
	})
}

func (m *memory) Publish(ctx context.Context, door session.Door, sid string, payload []byte, _ string) (seq uint64, err error) {
	stored := false
	err = m.do(ctx, call{op: "Publish", sid: sid, who: string(door)}, func() error {
		stored = true
		return nil
	})
	if stored {
		seq = m.append(door, sid, payload).Seq
	}
	return seq, err
}

func (m *memory) PublishAfter(ctx context.Context, door session.Door, sid string, payload []byte, after uint64) (seq uint64, err error) {
	for e, err := range m.ReadSession(ctx, sid, after+1, 0, true) {
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("event %d is later: %w", e.Seq, journal.ErrOvertaken)
	}
	return m.Publish(ctx, door, sid, payload, "")
}

func (m *memory) notify(ctx context.Context, sid string, n uint64, payload []byte) error {
	if len(payload) > session.EventBytesMax {
		return &natsio.MaxPayloadError{Subject: "out " + sid, Bytes: len(payload), Limit: session.EventBytesMax}
	}
	return m.do(ctx, call{op: "Notify", sid: sid, who: fmt.Sprint(n)}, func() error {
		lines := bytes.Split(payload, []byte("\n"))
		for i, line := range lines {
			m.notices[sid] = append(m.notices[sid], notice{n - uint64(len(lines)-1-i), bytes.Clone(line)})
		}
		return nil
	})
}

func (m *memory) GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error) {
	err = m.do(ctx, call{op: "GetSnapshot", sid: sid}, func() error {
		data, found = m.snapshots[sid]
		return nil
	})
	return data, found, err
}

func (m *memory) PutSnapshot(ctx context.Context, sid string, seq uint64, data []byte) error {
	if missing := m.missing(sid, seq); len(missing) > 0 {
		m.t.Errorf("%s is snapshotted at %d, and not stored: %v", sid, seq, missing)
	}
	return m.do(ctx, call{op: "PutSnapshot", sid: sid}, func() error {
		m.puts++
		m.snapshots[sid] = bytes.Clone(data)
		m.listed = append(slices.DeleteFunc(m.listed, func(at journal.SnapshotAt) bool { return at.Session == sid }), journal.SnapshotAt{Session: sid, Seq: m.puts})
		return nil
	})
}

func (m *memory) ListSnapshots(ctx context.Context, from uint64) iter.Seq2[journal.SnapshotAt, error] {
	return func(yield func(journal.SnapshotAt, error) bool) {
		var all []journal.SnapshotAt
		err := m.do(ctx, call{op: "ListSnapshots"}, func() error {
			all = slices.Clone(m.listed)
			return nil
		})
		for _, at := range all {
			if at.Seq >= from && !yield(at, nil) {
				return
			}
		}
		if err != nil {
			yield(journal.SnapshotAt{}, err)
		}
	}
}

func (m *memory) GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error) {
	err = m.do(ctx, call{op: "GetQuarantine", sid: sid}, func() error {
		body, found = m.stops[sid]
		return nil
	})
	return body, found, err
}

func (m *memory) PutQuarantine(ctx context.Context, sid string, body []byte) error {
	return m.do(ctx, call{op: "PutQuarantine", sid: sid}, func() error {
		m.stops[sid] = bytes.Clone(body)
		return nil
	})
}

func (m *memory) Quarantined(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var all []string
		err := m.do(ctx, call{op: "Quarantined"}, func() error {
			all = slices.Sorted(maps.Keys(m.stops))
			return nil
		})
		for _, sid := range all {
			if !yield(sid, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func (m *memory) DeleteQuarantine(ctx context.Context, sid string, body []byte) error {
	return m.do(ctx, call{op: "DeleteQuarantine", sid: sid}, func() error {
		if now, found := m.stops[sid]; found && !bytes.Equal(now, body) {
			return journal.ErrOvertaken
		}
		delete(m.stops, sid)
		return nil
	})
}

func (m *memory) LaneNote(ctx context.Context, _ string) (note []byte, rev uint64, err error) {
	err = m.do(ctx, call{op: "Guard"}, func() error {
		note, rev = m.guard, m.guardRev
		return nil
	})
	return note, rev, err
}

func (m *memory) PutLaneNote(ctx context.Context, _ string, note []byte, after uint64) (rev uint64, err error) {
	err = m.do(ctx, call{op: "PutGuard"}, func() error {
		if after != m.guardRev {
			return journal.ErrOvertaken
		}
		m.guard, m.guardRev = bytes.Clone(note), m.guardRev+1
		rev = m.guardRev
		return nil
	})
	return rev, err
}

func (m *memory) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	return ref, m.do(ctx, call{op: "PutBlob"}, func() error {
		m.blobs[ref] = bytes.Clone(content)
		return nil
	})
}

func (m *memory) PutBlobs(ctx context.Context, contents [][]byte) error {
	for _, content := range contents {
		m.mu.Lock()
		_, there := m.blobs[codec.RefOf(content)]
		m.mu.Unlock()
		if !there {
			if _, err := m.PutBlob(ctx, content); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) SweepBlobs(ctx context.Context, _ time.Time) (n int, err error) {
	return 0, m.do(ctx, call{op: "SweepBlobs"}, func() error { return nil })
}

// release releases a session as people do.
func (d *depot) release(sid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := journal.ParseStop(d.stops[sid])
	stop.Released = true
	body, err := stop.Bytes()
	if err != nil {
		d.t.Error(err)
	}
	d.stops[sid] = body
}
