package host

// A world in memory, which keeps the contract of internal/bus as far as a lane
// relies on it: names take one message, reads that are not the leader's may
// end early, and a write may fail before or after it was stored.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
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
	lost      uint64          // events up to here were removed from the log's end and replaced
	log       []session.Event // ascending
	lagging   uint64          // reads that are not the leader's end here; 0: nowhere
	effects   map[string][]byte
	claims    map[string]bool
	notices   map[string][]notice // by session, in the order of their storing
	snapshots map[string][]byte
	stops     map[string][]byte
	blobs     map[codec.Ref][]byte
	calls     map[call]int
	cancels   int
}

// memory is a world: a connection to a depot.
type memory struct {
	*depot
	plan func(call) outcome // decides what becomes of a call; nil: all work
	dead bool               // the process was killed: nothing is stored any more
	asks int                // largest effect that is taken, in bytes; 0: any

	// onSnapshot is called with the session and sequence of each snapshot
	// that is to be stored; nil: nobody is.
	onSnapshot func(sid string, seq uint64)
}

type notice struct {
	n    uint64
	data []byte
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{depot: &depot{
		t: t, effects: map[string][]byte{}, claims: map[string]bool{}, notices: map[string][]notice{},
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

// do carries out a call as planned; store is its effect.
func (m *memory) do(ctx context.Context, c call, store func() error) error {
	m.mu.Lock()
	m.calls[c]++
	m.mu.Unlock()
	become := works
	if m.plan != nil {
		become = m.plan(c)
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
	return func(yield func(session.Event, error) bool) {
		var events []session.Event
		err := m.do(ctx, call{op: "ReadSession", sid: sid, who: fmt.Sprintf("%d-%d", from, to)}, func() error {
			for _, e := range m.log {
				if e.Session == sid && e.Seq >= from && (to == 0 || e.Seq <= to) && (leader || m.lagging == 0 || e.Seq < m.lagging) {
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

func (m *memory) LastSeq(ctx context.Context) (seq uint64, err error) {
	err = m.do(ctx, call{op: "LastSeq"}, func() error {
		if n := len(m.log); n > 0 {
			seq = m.log[n-1].Seq
		}
		return nil
	})
	return seq, err
}

func (m *memory) AskAll(ctx context.Context, sid string, effects []session.Effect) error {
	for _, e := range effects {
		if m.asks > 0 && len(e.Payload) > m.asks {
			return fmt.Errorf("ask: %w", &bus.MaxPayloadError{Subject: e.Name, Bytes: len(e.Payload), Limit: m.asks})
		}
		err := m.do(ctx, call{op: "Ask", sid: sid, who: e.Name}, func() error {
			name := sid + " " + e.Name
			stored, taken := m.effects[name]
			if taken && !bytes.Equal(stored, e.Payload) {
				return fmt.Errorf("ask: %w", &bus.ViolationError{Subject: name, Stored: stored, Wanted: e.Payload})
			}
			m.wantDescribed(e)
			m.effects[name] = bytes.Clone(e.Payload)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Withdraw(ctx context.Context, sid, effect string) (won bool, holder []byte, err error) {
	err = m.do(ctx, call{op: "Withdraw", sid: sid, who: effect}, func() error {
		m.claims[sid+" "+effect] = true
		return nil
	})
	return err == nil, nil, err
}

func (m *memory) PublishCancel(ctx context.Context, sid string, _ []byte) error {
	return m.do(ctx, call{op: "PublishCancel", sid: sid}, func() error {
		m.cancels++
		return nil
	})
}

func (m *memory) Notify(ctx context.Context, sid string, n uint64, payload []byte) error {
	if len(payload) > session.EventBytesMax {
		return &bus.MaxPayloadError{Subject: "out " + sid, Bytes: len(payload), Limit: session.EventBytesMax}
	}
	return m.do(ctx, call{op: "Notify", sid: sid, who: fmt.Sprint(n)}, func() error {
		m.notices[sid] = append(m.notices[sid], notice{n, bytes.Clone(payload)})
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
	if m.onSnapshot != nil {
		m.onSnapshot(sid, seq)
	}
	return m.do(ctx, call{op: "PutSnapshot", sid: sid}, func() error {
		m.snapshots[sid] = bytes.Clone(data)
		return nil
	})
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

func (m *memory) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	return ref, m.do(ctx, call{op: "PutBlob"}, func() error {
		m.blobs[ref] = bytes.Clone(content)
		return nil
	})
}

// release ends a quarantine.
func (d *depot) release(sid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.stops, sid)
}

// said returns the numbers of a session's notices in the order of their first
// storing.
func (d *depot) said(sid string) (numbers []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[uint64]bool{}
	for _, have := range d.notices[sid] {
		if have.n == 0 || !seen[have.n] {
			numbers = append(numbers, have.n)
		}
		seen[have.n] = true
	}
	return numbers
}

// upTo returns 1 to n.
func upTo(n uint64) (numbers []uint64) {
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// asked returns the names of the effects that are stored for a session.
func (d *depot) asked(sid string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.effects {
		if of, effect, _ := strings.Cut(name, " "); of == sid {
			names = append(names, effect)
		}
	}
	slices.Sort(names)
	return names
}

// history returns a session's events up to a sequence.
func (d *depot) history(sid string, to uint64) []session.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var events []session.Event
	for _, e := range d.log {
		if e.Session == sid && e.Seq <= to {
			events = append(events, e)
		}
	}
	return events
}

// owed is what the fold of one event wants stored.
type owed struct {
	seq       uint64
	effects   []session.Effect
	withdrawn []string
	notices   []uint64
}

// oracle folds a history and keeps what every event owes.
type oracle struct {
	state    *session.State
	owed     []owed
	rejected error // why the latest event had no effect
}

func newOracle(sid string) *oracle { return &oracle{state: session.New(builtin(), sid)} }

// fold folds the next event.
func (o *oracle) fold(e session.Event) {
	before := o.state.NoticeN
	was := map[string]bool{}
	for _, effect := range o.state.Open() {
		was[effect.Name] = true
	}
	_, o.rejected = o.state.Evolve(e)
	one := owed{seq: e.Seq, effects: o.state.OpenExcept(func(name string) bool { return was[name] })}
	for _, w := range o.state.Withdrawals() {
		if w.Claimed {
			one.withdrawn = append(one.withdrawn, w.Name)
		}
	}
	for n := before + 1; n <= o.state.NoticeN; n++ {
		one.notices = append(one.notices, n)
	}
	o.owed = append(o.owed, one)
}

// judge folds a session's events up to a sequence.
func (d *depot) judge(sid string, to uint64) *oracle {
	o := newOracle(sid)
	for _, e := range d.history(sid, to) {
		o.fold(e)
	}
	return o
}

// missing returns what of a session's outputs up to a sequence isn't stored.
func (d *depot) missing(sid string, to uint64) []string {
	return d.unstored(sid, d.judge(sid, to).owed)
}

// unstored returns what of these outputs isn't stored.
func (d *depot) unstored(sid string, all []owed) (missing []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := map[uint64]bool{}
	for _, have := range d.notices[sid] {
		said[have.n] = true
	}
	for _, one := range all {
		for _, effect := range one.effects {
			if stored, found := d.effects[sid+" "+effect.Name]; !found {
				missing = append(missing, effect.Name)
			} else if !bytes.Equal(stored, effect.Payload) {
				missing = append(missing, effect.Name+" has other bytes")
			}
		}
		for _, name := range one.withdrawn {
			if !d.claims[sid+" "+name] {
				missing = append(missing, "withdrawal of "+name)
			}
		}
		for _, n := range one.notices {
			if !said[n] {
				missing = append(missing, fmt.Sprintf("notice %d", n))
			}
		}
	}
	return missing
}

// checkSnapshots fails the test if a snapshot is of a state that isn't stored,
// or isn't what its events fold to.
func (d *depot) checkSnapshots(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	all := maps.Clone(d.snapshots)
	d.mu.Unlock()
	for sid, data := range all {
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			t.Fatal(err)
		}
		if missing := d.missing(sid, snap.Seq); len(missing) > 0 {
			t.Errorf("the snapshot of %s at %d is of a state that is not stored: %v", sid, snap.Seq, missing)
		}
		if got := d.judge(sid, snap.Seq).state.Hash(); got != snap.Hash {
			t.Errorf("the snapshot of %s at %d has the hash %s, its events fold to %s", sid, snap.Seq, snap.Hash, got)
		}
	}
}

// builtin returns the built-in install record, parsed once for all tests.
var builtin = sync.OnceValue(func() *session.Install {
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		panic(err)
	}
	return install
})
