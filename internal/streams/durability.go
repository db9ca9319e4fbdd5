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

// ErrDurability is in every error that means that the servers don't provide
// Options.Durability.
var ErrDurability = errors.New("the durability is not what --durability wants")

// replicasLeast is the number of copies of every stream under DurabilityReplicated.
const replicasLeast = 3

// durable is what is known of the servers' durability.
type durable struct {
	wanted    natsio.Durability // what the operator requires; unknown: nothing
	sync      syncing
	inspected bool   // at least one stream was read
	copies    int    // of the stream that has the fewest
	log       int    // copies of the log
	fewest    string // the stream that has the fewest copies
	deferred  string // a stream with persist_mode async: written after the acknowledgement
}

// Durability returns which failures acknowledged events survive, as the servers
// reported when New asked them, or else as the operator states. The number of copies
// is known after Provision or CheckDurability.
func (s *Streams) Durability() natsio.Durability {
	d := s.durable.Load()
	if d == nil {
		return natsio.DurabilityUnknown
	}
	return d.level()
}

func (d *durable) level() natsio.Durability {
	switch {
	case d.deferred == "" && d.sync.level == natsio.DurabilityAlways:
		return natsio.DurabilityAlways
	case d.inspected && d.copies >= replicasLeast && (d.sync.level != natsio.DurabilityUnknown || d.wanted != natsio.DurabilityAlways):
		return natsio.DurabilityReplicated
	case d.deferred != "" || d.sync.level == natsio.DurabilityInterval:
		return natsio.DurabilityInterval
	default:
		return d.wanted
	}
}

// Syncs returns how the servers sync, as New found out: the level, which is unknown if
// nobody could be asked, the same for people, and who was asked.
func (s *Streams) Syncs() (level natsio.Durability, how, asked string) {
	d := s.durable.Load()
	if d == nil {
		return natsio.DurabilityUnknown, syncing{}.String(), "nobody"
	}
	return d.sync.level, d.sync.String(), d.sync.how
}

// CheckDurability reads how many copies the streams of conf have, logs the durability
// in one line, and compares it with what the operator requires. Its error wraps
// ErrDurability and says what to do. A stream that is missing or can't be read is left
// out.
func (s *Streams) CheckDurability(ctx context.Context, conf *Conf) error {
	var d durable
	if found := s.durable.Load(); found != nil {
		d = *found
	}
	d.inspected, d.copies, d.log, d.fewest, d.deferred = false, 0, 0, "", ""
	for _, name := range conf.names.Streams() {
		err := s.conn.Attempt(ctx, "", func(ctx context.Context) error {
			stream, err := s.conn.JS.Stream(ctx, name)
			if err == nil {
				d.add(stream.CachedInfo().Config, conf)
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

// add takes a stream into account.
func (d *durable) add(have jetstream.StreamConfig, conf *Conf) {
	copies := max(have.Replicas, 1)
	if have.Name == conf.names.LogStream() {
		d.log = copies
	}
	if !d.inspected || copies < d.copies {
		d.inspected, d.copies, d.fewest = true, copies, have.Name
	}
	if have.PersistMode == jetstream.AsyncPersistMode {
		d.deferred = have.Name
	}
}

// attrs returns what a daemon logs at its start: how the servers sync, the copies of
// the log, and what the operator requires.
func (d *durable) attrs() []any {
	attrs := []any{"is", d.level().String(), "server", d.sync.String(), "asked", d.sync.how}
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
	case d.sync.level != natsio.DurabilityUnknown:
	case d.wanted == natsio.DurabilityUnknown:
		attrs = append(attrs, "note", "state how the servers sync with --durability, or where to ask them with --monitor or --system-creds")
	case d.wanted != natsio.DurabilityReplicated || !d.inspected:
		attrs = append(attrs, "note", "taken at the operator's word")
	}
	return attrs
}

// contradiction returns an error if the servers don't provide what the operator
// requires. where is the server, for people.
func (d *durable) contradiction(where string) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w (%s): %s", ErrDurability, d.wanted, fmt.Sprintf(format, args...))
	}
	switch d.wanted {
	case natsio.DurabilityAlways:
		if d.sync.level == natsio.DurabilityInterval {
			return wrong("%s does %s: put `sync_interval: always` into the jetstream block of its configuration and restart it, or use --durability interval",
				d.sync.at(where), d.sync)
		}
		if d.deferred != "" {
			return wrong("the stream %s has persist_mode async, and is written after it is acknowledged: use --durability interval, or recreate the stream", d.deferred)
		}
	case natsio.DurabilityInterval:
		if d.deferred == "" && d.sync.level == natsio.DurabilityAlways {
			return wrong("%s does %s: use --durability always, or remove `sync_interval: always` from the jetstream block of its configuration and restart it",
				d.sync.at(where), d.sync)
		}
	case natsio.DurabilityReplicated:
		if d.inspected && d.copies < replicasLeast {
			return wrong("the stream %s has %d of %d copies: start a session-actor with --replicas %d, on a cluster of as many servers, or use --durability always or interval",
				d.fewest, d.copies, replicasLeast, replicasLeast)
		}
	}
	return nil
}

// syncing is how servers sync what they have acknowledged.
type syncing struct {
	level   natsio.Durability // unknown, interval or always: the weakest server's
	every   time.Duration     // under interval: the longest of all servers
	weakest string            // the weakest server's name; empty: there is only one server, or none is weaker
	how     string            // how this was found out, or why it is unknown
}

func (s syncing) String() string {
	switch s.level {
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
