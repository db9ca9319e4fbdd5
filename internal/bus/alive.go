package bus

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// HeartbeatEvery is how often a daemon says that it is alive.
	HeartbeatEvery = 500 * time.Millisecond
	// GoneAfter is how long nothing must have been heard of an instance, while
	// listening, before it counts as gone.
	GoneAfter = 5 * time.Second
	// heartbeatsKept is how long silent instances are remembered.
	heartbeatsKept = 10 * time.Minute
)

// Heartbeat publishes that an instance of a kind of daemons is alive, at once and then every
// HeartbeatEvery, until ctx ends. body is called for each, and says what the
// instance serves.
func (b *Bus) Heartbeat(ctx context.Context, kind, instance string, body func() []byte) error {
	subject, err := b.names.Alive(kind, instance)
	if err != nil {
		return err
	}
	tick := time.NewTicker(HeartbeatEvery)
	defer tick.Stop()
	for {
		b.beat(subject, body())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Beat publishes one heartbeat now, beside those of Heartbeat: what an instance
// says has changed, and others should not learn it half a second late.
func (b *Bus) Beat(kind, instance string, body []byte) error {
	subject, err := b.names.Alive(kind, instance)
	if err == nil {
		b.beat(subject, body)
	}
	return err
}

func (b *Bus) beat(subject string, body []byte) {
	// Out of the buffer of a lost connection they would come late and lie.
	if !b.nc.IsConnected() {
		return
	}
	if err := b.publishCore(subject, body); err != nil {
		b.log.Warn("heartbeat_failed", "error", err.Error())
	}
}

// Member is an instance that was heard.
type Member struct {
	Instance string
	Heard    time.Time // when last
	Body     []byte    // of its last heartbeat
}

// Members knows which instances of one kind of daemons are alive, by listening.
type Members struct {
	now       func() time.Time
	listening func() (since time.Time, ok bool) // ok is false without a connection

	mu      sync.Mutex
	heard   map[string]Member
	changed chan struct{}
}

// TrackMembers listens to the heartbeats of a kind of daemons until ctx ends.
func (b *Bus) TrackMembers(ctx context.Context, kind string) (*Members, error) {
	started := time.Now()
	m := &Members{now: time.Now, heard: make(map[string]Member), changed: make(chan struct{})}
	m.listening = func() (time.Time, bool) {
		since := started
		if at := b.reconnects.Load(); at != 0 && time.Unix(0, at).After(since) {
			since = time.Unix(0, at)
		}
		return since, b.nc.IsConnected()
	}
	err := b.subscribe(ctx, b.names.AliveAll(kind), func(msg *nats.Msg) {
		if _, instance, err := b.names.ParseAlive(msg.Subject); err == nil {
			m.hear(instance, msg.Data)
		}
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Members) hear(instance string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if _, known := m.heard[instance]; !known {
		for other, member := range m.heard {
			if now.Sub(member.Heard) > heartbeatsKept {
				delete(m.heard, other)
			}
		}
	}
	m.heard[instance] = Member{Instance: instance, Heard: now, Body: body}
	close(m.changed)
	m.changed = make(chan struct{})
}

// Heartbeats returns a channel that is closed at the next heartbeat of anybody.
func (m *Members) Heartbeats() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Heard returns when an instance was heard last; ok is false if it never was.
func (m *Members) Heard(instance string) (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	member, ok := m.heard[instance]
	return member.Heard, ok
}

// Gone reports that an instance counts as gone: it was not heard for GoneAfter,
// and all that time this process listened. Shortly after the start, or after
// the connection was lost, nobody is gone.
func (m *Members) Gone(instance string) bool {
	since, connected := m.listening()
	at, _ := m.Heard(instance)
	if since.After(at) {
		at = since
	}
	return connected && m.now().Sub(at) >= GoneAfter
}

// Live returns the instances that were heard within the last d, by name.
func (m *Members) Live(d time.Duration) []Member {
	m.mu.Lock()
	now := m.now()
	m.mu.Unlock()
	return slices.DeleteFunc(m.Known(), func(member Member) bool { return now.Sub(member.Heard) > d })
}

// Known returns all instances that were ever heard and are remembered, by name:
// whether one that was not heard of late is gone is for the caller to find.
func (m *Members) Known() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := slices.Collect(maps.Values(m.heard))
	slices.SortFunc(known, func(a, b Member) int { return cmp.Compare(a.Instance, b.Instance) })
	return known
}
