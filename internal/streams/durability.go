package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// ErrDurability is in every error that says that the servers don't do what
// Options.Durability wants.
var ErrDurability = errors.New("the durability is not what --durability wants")

// replicasLeast is how many copies of every stream DurabilityReplicated means.
const replicasLeast = 3

// durable is what is known of a connection's durability.
type durable struct {
	wanted   natsio.Durability // the operator's word; unknown: none
	sync     syncing
	asked    bool   // the streams were looked at
	copies   int    // of the stream that has the fewest
	log      int    // copies of the log
	fewest   string // the stream that has copies
	deferred string // a stream that is written after it is acknowledged, whatever the server does
}

// Durability returns what acknowledged events survive: as the servers said when
// this connection was made, or else as the operator says. How many copies there
// are is known once Provision or CheckDurability has looked.
func (s *Streams) Durability() natsio.Durability {
	d := s.durable.Load()
	if d == nil {
		return natsio.DurabilityUnknown
	}
	return d.is()
}

func (d *durable) is() natsio.Durability {
	switch {
	case d.deferred == "" && d.sync.is == natsio.DurabilityAlways:
		return natsio.DurabilityAlways
	case d.asked && d.copies >= replicasLeast && (d.sync.is != natsio.DurabilityUnknown || d.wanted != natsio.DurabilityAlways):
		return natsio.DurabilityReplicated
	case d.deferred != "" || d.sync.is == natsio.DurabilityInterval:
		return natsio.DurabilityInterval
	default:
		return d.wanted
	}
}

// CheckDurability looks at how many copies the streams of conf have, logs in one
// line what the durability is, and compares it with what the operator wants: an
// error wraps ErrDurability and says what to do. A stream that isn't there, or
// that can't be looked at, counts for nothing.
func (s *Streams) CheckDurability(ctx context.Context, conf *Conf) error {
	var d durable
	if found := s.durable.Load(); found != nil {
		d = *found
	}
	d.asked, d.copies, d.log, d.fewest, d.deferred = false, 0, 0, "", ""
	for _, name := range conf.names.Streams() {
		err := s.conn.Attempt(ctx, "", func(ctx context.Context) error {
			stream, err := s.conn.JS.Stream(ctx, name)
			if err == nil {
				d.look(stream.CachedInfo().Config, conf)
			}
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.conn.Log.Debug("copies_unknown", "stream", name, "error", natsio.Typed(err).Error())
		}
	}
	s.durable.Store(&d)
	if err := d.contradiction(s.conn.Where); err != nil {
		return err
	}
	s.conn.Log.Info("durability", d.attrs()...)
	return nil
}

// look counts a stream in.
func (d *durable) look(have jetstream.StreamConfig, conf *Conf) {
	copies := max(have.Replicas, 1)
	if have.Name == conf.names.LogStream() {
		d.log = copies
	}
	if !d.asked || copies < d.copies {
		d.asked, d.copies, d.fewest = true, copies, have.Name
	}
	if have.PersistMode == jetstream.AsyncPersistMode {
		d.deferred = have.Name
	}
}

// attrs are what a daemon says at its start: what the servers do, the copies of
// the log, and what the operator wants.
func (d *durable) attrs() []any {
	attrs := []any{"is", d.is().String(), "server", d.sync.String(), "asked", d.sync.how}
	if d.log > 0 {
		attrs = append(attrs, "log_copies", d.log)
	}
	if d.wanted != natsio.DurabilityUnknown {
		attrs = append(attrs, "wanted", d.wanted.String())
	}
	if d.deferred != "" {
		attrs = append(attrs, "persisted_late", d.deferred)
	}
	switch {
	case d.sync.is != natsio.DurabilityUnknown:
	case d.wanted == natsio.DurabilityUnknown:
		attrs = append(attrs, "note", "say what the servers do with --durability, or where to ask with --monitor or --system-creds")
	case d.wanted != natsio.DurabilityReplicated || !d.asked:
		attrs = append(attrs, "note", "taken at the operator's word")
	}
	return attrs
}

// contradiction says what the operator wants and does not have. where is the
// server, for people.
func (d *durable) contradiction(where string) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w (%s): %s", ErrDurability, d.wanted, fmt.Sprintf(format, args...))
	}
	switch d.wanted {
	case natsio.DurabilityAlways:
		if d.sync.is == natsio.DurabilityInterval {
			return wrong("%s does %s: put `sync_interval: always` into the jetstream block of its configuration and start it again, or say --durability interval",
				d.sync.at(where), d.sync)
		}
		if d.deferred != "" {
			return wrong("the stream %s has persist_mode async, and is written after it is acknowledged: say --durability interval, or make the stream anew", d.deferred)
		}
	case natsio.DurabilityInterval:
		if d.deferred == "" && d.sync.is == natsio.DurabilityAlways {
			return wrong("%s does %s: say --durability always, or take `sync_interval: always` out of the jetstream block of its configuration and start it again",
				d.sync.at(where), d.sync)
		}
	case natsio.DurabilityReplicated:
		if d.asked && d.copies < replicasLeast {
			return wrong("the stream %s has %d: start a session-actor with --replicas %d, on a cluster of as many servers, or say --durability always or interval",
				d.fewest, d.copies, replicasLeast)
		}
	}
	return nil
}

// syncing is what servers do with what they have acknowledged.
type syncing struct {
	is      natsio.Durability // unknown, interval or always: that of the weakest server
	every   time.Duration     // under interval: the longest of all servers
	weakest string            // the server that says so; empty: there is one only, or all are alike
	how     string            // how that was found out, or why it was not
}

func (s syncing) String() string {
	switch s.is {
	case natsio.DurabilityAlways:
		return "sync always"
	case natsio.DurabilityInterval:
		return "sync every " + shortly(s.every)
	default:
		return "sync unknown"
	}
}

// at names the server that an error is about.
func (s syncing) at(where string) string {
	if s.weakest == "" {
		return "the NATS server at " + where
	}
	return "the NATS server " + s.weakest
}

// shortly prints 2m0s as 2m.
func shortly(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
