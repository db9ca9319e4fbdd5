package natsio

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// Two systems with one prefix receive each other's messages if their accounts are joined,
// for instance by a leafnode between two JetStream domains. Every message names its log,
// and a process ignores those that name another (docs/adr/0080-messages-name-their-log.md).

const (
	// foreignMax is how many other logs are remembered.
	foreignMax = 16
	// foreignEvery is how often one of them is logged at most.
	foreignEvery = time.Minute
	// RefuseWithin is how long after its start a daemon refuses to work beside another
	// system: that one sends four heartbeats in this time. Later it only reports one.
	RefuseWithin = 2 * time.Second
)

// Foreign is another system whose messages arrive here.
type Foreign struct {
	Log      string // identity of its log
	Where    string // its servers, as its heartbeats say; empty: none was received
	Messages int    // that were ignored
	Subject  string // of the last one

	alive  time.Time // last heartbeat of a session-actor, which no client and no bridge may publish
	told   time.Time // when it was logged
	untold int       // messages since
}

// String describes the system in a clause.
func (f Foreign) String() string {
	return fmt.Sprintf("another Refold system under the same prefix, with the log %s at %s, publishes on subjects that arrive here (%d messages, the last on %s)",
		f.Log, cmp.Or(f.Where, "an unknown server"), f.Messages, f.Subject)
}

// SeparateSystems says what to do about another system.
const SeparateSystems = "give each system its own --prefix or account, or deny the prefix's subjects on the leafnode; until then, set feature_flags {js_ack_fc_v2: true} on the servers of both, and a domain for each (docs/operations.md, Leafnodes, gateways, mirrors)"

// ForeignError means that a daemon started beside another system.
type ForeignError struct{ Foreign }

func (e *ForeignError) Error() string {
	return e.String() + ": stop one of the two systems, and " + SeparateSystems + ". If both have just started, both may refuse"
}

// foreigners are the other systems that a connection hears.
type foreigners struct {
	mu              sync.Mutex
	byLog           map[string]*Foreign
	beats, messages uint64 // heartbeats of session-actors, and all other messages
}

// of returns the system of a log, or nil if there is no room for it. Any publisher may
// name any log, so a system with a session-actor takes the place of one without.
func (f *foreigners) of(id string, beat bool) *Foreign {
	if known := f.byLog[id]; known != nil {
		return known
	}
	for other, of := range f.byLog {
		if beat && len(f.byLog) >= foreignMax && of.alive.IsZero() {
			delete(f.byLog, other)
		}
	}
	if len(f.byLog) >= foreignMax {
		return nil
	}
	if f.byLog == nil {
		f.byLog = make(map[string]*Foreign)
	}
	f.byLog[id] = &Foreign{Log: Printable(id)}
	return f.byLog[id]
}

// Stamp sets the header with the log's identity, if that is known. Everything that is
// published for a log goes through it.
func (c *Conn) Stamp(h nats.Header) nats.Header {
	id := c.LogID()
	if id == "" {
		return h
	}
	if h == nil {
		h = make(nats.Header, 1)
	}
	h.Set(subjects.HeaderLog, id)
	return h
}

// IsForeign reports whether a message names another log than this connection's. One
// without the header is not foreign, as of a program that does not know the log. Nor is
// any while this connection does not know its log. A stored message has the header
// forever, so a replay skips the same ones.
func (c *Conn) IsForeign(h nats.Header) bool {
	of := h.Get(subjects.HeaderLog)
	if of == "" {
		return false
	}
	id := c.LogID()
	return id != "" && of != id
}

// Ignores is IsForeign for a message that was just received. It counts the message, and
// logs its system once a minute. Of a delivery it notes how that is acknowledged.
func (c *Conn) Ignores(m *nats.Msg) bool {
	if strings.HasPrefix(m.Reply, AckReplyPrefix) {
		c.identity.acksCross.Store(acksCross(m.Reply))
	}
	if !c.IsForeign(m.Header) {
		return false
	}
	kind, _, err := c.names.ParseAlive(m.Subject)
	beat := err == nil && kind == subjects.KindSessionActor
	c.foreigners.mu.Lock()
	defer c.foreigners.mu.Unlock()
	if beat {
		c.foreigners.beats++
	} else {
		c.foreigners.messages++
	}
	f := c.foreigners.of(m.Header.Get(subjects.HeaderLog), beat)
	if f == nil {
		return true
	}
	f.Messages++
	f.untold++
	f.Subject = m.Subject
	now, first := time.Now(), beat && f.alive.IsZero()
	if beat {
		f.alive = now
		f.Where = Printable(m.Header.Get(subjects.HeaderWhere))
	}
	if first || now.Sub(f.told) >= foreignEvery {
		c.Log.Error("foreign_system", "log", f.Log, "where", f.Where, "subject", f.Subject, "messages", f.untold, "do", SeparateSystems)
		f.told, f.untold = now, 0
	}
	return true
}

// ForeignMessages returns how many messages of other systems were ignored: heartbeats of
// session-actors, and others, which any publisher may have forged.
func (c *Conn) ForeignMessages() (heartbeats, others uint64) {
	c.foreigners.mu.Lock()
	defer c.foreigners.mu.Unlock()
	return c.foreigners.beats, c.foreigners.messages
}

// headerMax bounds what is kept of another system's headers.
const headerMax = 256

// Printable returns another system's header for a log or a terminal.
func Printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), headerMax)]
}

// Foreigners returns the other systems that this connection has received messages of, by
// their logs.
func (c *Conn) Foreigners() (all []Foreign) {
	c.foreigners.mu.Lock()
	defer c.foreigners.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.foreigners.byLog)) {
		all = append(all, *c.foreigners.byLog[id])
	}
	return all
}

// RefuseForeign returns a *ForeignError if a session-actor of another system is heard
// within RefuseWithin. It returns nil after that time, or when ctx ends. The caller
// receives their heartbeats.
func (c *Conn) RefuseForeign(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < RefuseWithin; {
		for _, f := range c.Foreigners() {
			if f.alive.After(began) {
				return &ForeignError{f}
			}
		}
		if Sleep(ctx, ReconnectWait) != nil {
			return nil
		}
	}
	return nil
}

// WhereHeader describes this connection's server and account, for the other systems that may
// receive its heartbeats, and says whether its acknowledgements concern them.
func (c *Conn) WhereHeader() string {
	where := "server " + c.NC.ConnectedServerName()
	if domain, known := c.Domain(); known && domain != "" {
		where += ", domain " + domain
	}
	if account := c.Account(); account != "" {
		where += ", account " + account
	}
	if c.identity.acksCross.Load() {
		where += ", whose acknowledgements may count here"
	}
	return where
}
