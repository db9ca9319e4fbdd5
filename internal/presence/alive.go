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
	// HeartbeatEvery is the interval of a daemon's heartbeats.
	HeartbeatEvery = 500 * time.Millisecond
	// GoneAfter is how long an instance must be silent, while this process is
	// connected, before it counts as gone.
	GoneAfter = 5 * time.Second
	// heartbeatsKept is how long Members remembers silent instances.
	heartbeatsKept = 10 * time.Minute
)

// Heartbeat says that a daemon is alive: published on refold.alive.<kind>.<instance>
// every 500 ms.
//
//wire:rule {"oneOf": [{"properties": {"targets": false, "tools": false, "troubles": false}, "required": ["lanes", "lane_count"]}, {"properties": {"lanes": false, "lane_count": false, "joining": false, "leaving": false, "not_ready": false}, "required": ["targets"]}]}
type Heartbeat struct {
	// Of a session-actor: the lanes that it runs now, including those that it is handing
	// over.
	Lanes []int `json:"lanes,omitzero" lim:"unique,item=0.."`
	// Of a session-actor: the number of lanes of the log.
	LaneCount int `json:"lane_count,omitempty" lim:"1.."`
	// The newest version of the rules that the daemon knows.
	Rules int `json:"rules" lim:"1.."`
	// Of a session-actor: it has just started, and listens briefly before it takes lanes.
	Joining bool `json:"joining,omitempty" lim:"=true"`
	// Of a session-actor: it takes no more lanes, and hands its own over.
	Leaving bool `json:"leaving,omitempty" lim:"=true"`
	// How far the clock of the daemon's machine is ahead of the server's, if more than a
	// second; negative: behind.
	AheadMS int64 `json:"clock_ahead_ms,omitempty"`
	// Of a session-actor: what is wrong with the streams and its lanes, for people.
	NotReady []string `json:"not_ready,omitempty" lim:"..session.TroublesMax,item=..session.TroubleDetailMax"`
	// Of a bridge: the targets that it serves.
	Targets []string `json:"targets,omitzero" lim:"1..,item=@target"`
	// Of a bridge: the tool_ids that it carries out, by target; at most 1024. A target
	// that is not here may have any.
	Tools map[string][]string `json:"tools,omitempty" lim:"key=@target,value=..session.HeartbeatToolsMax,value=item=..planner.ToolIDBytesMax"`
	// Of a bridge: its targets that do not work, one entry each.
	Troubles []session.Trouble `json:"troubles,omitempty" lim:"..session.TroublesMax"`
}

// Cancel withdraws effects: published on refold.cancel.<session>. Bridges stop those
// that they run.
type Cancel struct {
	// The effects to stop.
	Effects []string `json:"effects" lim:"1..,item=@effect"`
}

// Heartbeat publishes a heartbeat of an instance at once and then every
// HeartbeatEvery, until ctx ends. It calls body for the payload of each.
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

// Beat publishes one heartbeat now, in addition to those of Heartbeat, so that others
// see a change of its body at once. It does nothing without a connection.
func (p *Presence) Beat(kind, instance string, body []byte) error {
	subject, err := p.names.Alive(kind, instance)
	if err != nil || !p.conn.IsConnected() {
		return err
	}
	if err := p.conn.PublishWith(subject, nats.Header{subjects.HeaderWhere: {p.conn.WhereHeader()}}, body); err != nil {
		p.conn.Log.Warn("heartbeat_failed", "error", err.Error())
	}
	return nil
}

// Member is an instance whose heartbeat was received.
type Member struct {
	Instance string
	Heard    time.Time // time of its last heartbeat
	Body     []byte    // of its last heartbeat
}

// Members tracks the heartbeats of one kind of daemon.
type Members struct {
	now       func() time.Time
	listening func() (since time.Time, ok bool) // ok is false without a connection

	mu      sync.Mutex
	heard   map[string]Member
	changed chan struct{}
}

// TrackMembers subscribes to the heartbeats of a kind of daemon until ctx ends.
func (p *Presence) TrackMembers(ctx context.Context, kind string) (*Members, error) {
	started := time.Now()
	m := &Members{now: time.Now, heard: make(map[string]Member), changed: make(chan struct{})}
	m.listening = func() (time.Time, bool) {
		since := started
		if at := p.conn.Reconnected(); at.After(since) {
			since = at
		}
		return since, p.conn.IsConnected()
	}
	err := p.conn.Subscribe(ctx, p.names.AliveAll(kind), func(msg *nats.Msg) {
		if _, instance, err := p.names.ParseAlive(msg.Subject); err == nil {
			m.record(instance, msg.Data)
		}
	})
	return m, err
}

func (m *Members) record(instance string, body []byte) {
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

// Heartbeats returns a channel that is closed at the next heartbeat of any instance.
func (m *Members) Heartbeats() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Heard returns the time of an instance's last heartbeat; ok is false without one.
func (m *Members) Heard(instance string) (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	member, ok := m.heard[instance]
	return member.Heard, ok
}

// Gone reports whether an instance counts as gone: it was silent for GoneAfter, and
// this process was connected all that time. Within GoneAfter of the start or a
// reconnect no instance is gone.
func (m *Members) Gone(instance string) bool {
	since, connected := m.listening()
	at, _ := m.Heard(instance)
	if since.After(at) {
		at = since
	}
	return connected && m.now().Sub(at) >= GoneAfter
}

// Live returns the instances with a heartbeat within the last d, by name.
func (m *Members) Live(d time.Duration) []Member {
	now := m.now()
	return slices.DeleteFunc(m.Known(), func(member Member) bool { return now.Sub(member.Heard) > d })
}

// Known returns all remembered instances, by name. Some of them may be gone.
func (m *Members) Known() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.heard), func(a, b Member) int { return cmp.Compare(a.Instance, b.Instance) })
}

// SilentAfter is how long a bridge must be silent before people see a report: two
// heartbeats were missed, and the third is late. Decisions wait for GoneAfter.
const SilentAfter = 3 * HeartbeatEvery

// Served is how many bridges serve each target (tool/host, llm/openai), by their
// heartbeats.
type Served map[string]int

// BridgeHeard is a bridge's latest heartbeat.
type BridgeHeard struct {
	Instance string
	At       time.Time // when it was received
	Heartbeat
}

// Bridges returns the remembered bridges, by instance; m must track bridges. sure is
// false until this process was connected for GoneAfter without a gap: there may be
// others.
func (m *Members) Bridges() (all []BridgeHeard, sure bool) {
	for _, member := range m.Known() {
		heard := BridgeHeard{Instance: member.Instance, At: member.Heard}
		if json.Unmarshal(member.Body, &heard.Heartbeat) == nil {
			all = append(all, heard)
		}
	}
	return all, m.Gone("") // no instance has this name
}

// Serving returns what bridges with a heartbeat within GoneAfter serve; m must track
// bridges. While sure is false, as in Bridges, a missing target may be served.
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

// Presence announces this process and finds others over one connection. It is safe
// for concurrent use.
type Presence struct {
	conn  *natsio.Conn
	names subjects.Names
}

// New returns the presence of a connection.
func New(conn *natsio.Conn) *Presence { return &Presence{conn, conn.Names()} }
