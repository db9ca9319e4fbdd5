package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
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
func (p *Presence) Heartbeat(ctx context.Context, kind, instance string, body func() []byte) error {
	tick := time.NewTicker(HeartbeatEvery)
	defer tick.Stop()
	for {
		if err := p.Beat(kind, instance, body()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Beat publishes one heartbeat now, besides those of Heartbeat: what an instance
// says has changed, and others should not learn it half a second late. It does nothing
// without a connection.
func (p *Presence) Beat(kind, instance string, body []byte) error {
	subject, err := p.names.Alive(kind, instance)
	if err != nil || !p.conn.IsConnected() {
		return err
	}
	if err := p.conn.PublishCore(subject, body); err != nil {
		p.conn.Log.Warn("heartbeat_failed", "error", err.Error())
	}
	return nil
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
func (p *Presence) TrackMembers(ctx context.Context, kind string) (*Members, error) {
	started := time.Now()
	m := &Members{now: time.Now, heard: make(map[string]Member), changed: make(chan struct{})}
	m.listening = func() (time.Time, bool) {
		since := started
		if at := p.conn.Reconnected(); at.After(since) {
			since = at
		}
		return since, p.conn.NC.IsConnected()
	}
	err := p.conn.Subscribe(ctx, p.names.AliveAll(kind), func(msg *nats.Msg) {
		if _, instance, err := p.names.ParseAlive(msg.Subject); err == nil {
			m.hear(instance, msg.Data)
		}
	})
	return m, err
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
	now := m.now()
	return slices.DeleteFunc(m.Known(), func(member Member) bool { return now.Sub(member.Heard) > d })
}

// Known returns all instances that were ever heard and are remembered, by name:
// whether one that was not heard of late is gone is for the caller to find.
func (m *Members) Known() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.heard), func(a, b Member) int { return cmp.Compare(a.Instance, b.Instance) })
}

// SilentAfter is how long nothing must have been heard of a bridge for people to
// be told so: two of its heartbeats were missed, and the third is late. Nothing
// is decided by it: that takes GoneAfter.
const SilentAfter = 3 * HeartbeatEvery

// Served has how many bridges serve a target (tool/host, llm/openai), as their
// heartbeats say.
type Served map[string]int

// BridgeHeard is what a bridge's latest heartbeat said.
type BridgeHeard struct {
	Instance string            `json:"-"`
	At       time.Time         `json:"-"` // when
	Targets  []string          `json:"targets"`
	Troubles []session.Trouble `json:"troubles"` // of its targets
}

// Bridges returns the bridges that were ever heard and are remembered, by
// instance: m is of bridges. sure is false while this process has not listened
// for GoneAfter without a gap: there may be others.
func (m *Members) Bridges() (all []BridgeHeard, sure bool) {
	for _, member := range m.Known() {
		heard := BridgeHeard{Instance: member.Instance, At: member.Heard}
		if json.Unmarshal(member.Body, &heard) == nil {
			all = append(all, heard)
		}
	}
	return all, m.Gone("") // nobody has this name
}

// Serving returns what those who were heard within GoneAfter serve: m is of
// bridges. sure is as Bridges has it: a target that is missing may be served all
// the same.
func (m *Members) Serving() (served Served, sure bool) {
	all, sure := m.Bridges()
	served, now := make(Served), m.now()
	for _, bridge := range all {
		if now.Sub(bridge.At) > GoneAfter {
			continue
		}
		for _, target := range bridge.Targets {
			served[target]++
		}
	}
	return served, sure
}

// Presence tells others that this process is there, and finds who else is, over one
// connection. All methods may be called from several goroutines at once.
type Presence struct {
	conn  *natsio.Conn
	names subjects.Names
}

// New returns the presence of a connection.
func New(conn *natsio.Conn) *Presence { return &Presence{conn, conn.Names()} }
