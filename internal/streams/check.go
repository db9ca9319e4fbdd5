package streams

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Finding is what keeps a promise, or messages, from being kept: a stream that is
// missing or has no leader, a setting of one that differs from streams.conf, a paused
// consumer, a limit of the account that is reached.
type Finding struct {
	Stream  string // empty: the account
	Missing bool   // the stream
	Paused  string // the consumer, if one is paused
	Setting string // name in the JetStream API, if one differs
	Server  string // value on the server
	Want    string // value in streams.conf, or the only safe one
	Trouble string // what is wrong and what to do, in a sentence, if no setting differs
}

func (f Finding) String() string {
	if f.Setting == "" {
		return f.Trouble
	}
	return fmt.Sprintf("stream %s has %s %s on the server, and it must be %s (docs/operations.md, What is noticed)", f.Stream, f.Setting, f.Server, f.Want)
}

// name is how --accept-stream-settings names a setting.
func (f Finding) name() string { return f.Stream + "." + f.Setting }

// SettingsError means that settings of existing streams break a promise, and that
// Provision does not know whether an operator wants them.
type SettingsError struct{ Findings []Finding }

func (e *SettingsError) Error() string {
	var texts, names []string
	for _, f := range e.Findings {
		texts, names = append(texts, f.String()), append(names, "--accept-stream-settings "+f.name())
	}
	return fmt.Sprintf("%s: history may be lost, or nothing stored: restore it with `nats stream edit`, or go on with %s",
		strings.Join(texts, "; "), strings.Join(names, " "))
}

// unnamed are the settings that streams.conf does not name and that must have their
// zero value, since they delete messages, keep new ones or their consumers out, store them
// where no reader looks, or acknowledge them before they are stored. All streams have them.
var unnamed = []string{
	"sealed", "no_ack", "mirror", "sources", "max_age", "max_msgs_per_subject", "max_msgs", "max_bytes", "max_msg_size", "allow_msg_ttl",
	"subject_transform", "persist_mode", "max_consumers",
}

// freely reports whether an operator may choose a setting that streams.conf does not
// name. Notices and dead letters may be limited; a full stream that discards new messages loses none.
func (c *Conf) freely(stream, key string, want *jetstream.StreamConfig) bool {
	told := stream == c.names.NoticesStream() || stream == c.names.DeadStream()
	switch key {
	case "max_age", "max_msgs_per_subject":
		return told
	case "max_msgs", "max_bytes":
		return told || want.Discard == jetstream.DiscardNew
	case "max_consumers":
		return !slices.Contains([]string{c.names.LogStream(), c.names.EffectsStream(), c.names.TimersStream()}, stream)
	}
	return false
}

// Accept makes Check and Provision leave settings as they are, each named
// STREAM.SETTING, such as REFOLD_LOG.max_age.
func (c *Conf) Accept(settings ...string) error {
	for _, name := range settings {
		stream, key, _ := strings.Cut(name, ".")
		s, ok := c.streams[stream]
		if _, known := fieldOf(reflect.ValueOf(&s.cfg).Elem(), key); !ok || !known {
			return fmt.Errorf("--accept-stream-settings %s: want STREAM.SETTING, such as %s.max_age", name, c.names.LogStream())
		}
		s.keys = slices.DeleteFunc(slices.Clone(s.keys), func(k string) bool { return k == key })
		s.accepted = append(slices.Clone(s.accepted), key)
		c.streams[stream] = s
	}
	return nil
}

// identitySetting is the setting of a Finding about the log's identity.
const identitySetting = "metadata." + subjects.MetadataLog

// Check returns what is wrong with the streams of conf, and with what delivers their
// messages. After an error the server did not answer all of it, and the findings are
// those of its other answers.
func (s *Streams) Check(ctx context.Context, conf *Conf) ([]Finding, error) {
	found, err := s.checkStreams(ctx, conf, conf.names.Streams())
	if err != nil {
		return found, err
	}
	more, err := s.checkAround(ctx, found)
	return append(found, more...), err
}

// checkStreams compares streams with conf.
func (s *Streams) checkStreams(ctx context.Context, conf *Conf, names []string) (found []Finding, err error) {
	for _, name := range names {
		var info *jetstream.StreamInfo
		err := s.conn.Attempt(ctx, s.conn.API+"STREAM.INFO."+name, func(ctx context.Context) error {
			stream, err := s.conn.JS.Stream(ctx, name)
			if err == nil {
				info = stream.CachedInfo()
			}
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			found = append(found, Finding{Stream: name, Missing: true, Trouble: "stream " + name + " is missing: " + s.whenMissing(name)})
			continue
		case natsio.IsLeaderless(err), err == nil && isLeaderless(info.Cluster):
			found = append(found, Finding{Stream: name, Trouble: "stream " + name + " has " + noLeader})
			continue
		case err != nil:
			return found, fmt.Errorf("check stream %s: %w", name, natsio.Typed(err))
		}
		have := info.Config
		found = append(found, conf.compare(conf.streams[name], have)...)
		own, now := s.conn.LogID(), LogIDOf(info)
		if name == s.names.LogStream() && own != "" && now != "" && now != own {
			found = append(found, Finding{Stream: name, Setting: identitySetting, Server: now, Want: own})
		}
		if least := int(s.replicas.Load()); have.Replicas < least {
			found = append(found, Finding{Stream: name, Setting: "num_replicas", Server: strconv.Itoa(have.Replicas), Want: strconv.Itoa(least)})
		}
	}
	return found, nil
}

// whenMissing says what to do about a missing stream, as ADR 0081 decides.
func (s *Streams) whenMissing(name string) string {
	switch name {
	case s.names.LogStream():
		return "start a session-actor, which creates it unless a log was lost"
	case s.names.EffectsStream():
		return "its claims are lost: see that no call runs that may not run twice, then start a session-actor again, which creates it"
	case s.names.NoticesStream(), s.names.DeadStream(), s.names.TimersStream(), s.names.SnapshotsStream():
		return "a session-actor that runs creates it again: start one"
	case s.names.ErasedStream():
		return "the log's holes are no longer explained: start a session-actor again, which creates an empty one; if sessions were erased, restore it from a backup"
	}
	return "start a session-actor again, which creates an empty one: restore from a backup what it held"
}

// noLeader is what a stream has.
const noLeader = "no leader: more than half of its servers are gone, or are choosing one: start them"

// isLeaderless reports whether servers that know a stream say that nobody leads it.
func isLeaderless(c *jetstream.ClusterInfo) bool { return c != nil && c.Name != "" && c.Leader == "" }

// noDanger returns a *SettingsError if a setting of the named streams breaks a promise.
func (s *Streams) noDanger(ctx context.Context, conf *Conf, names ...string) error {
	var found []Finding
	err := s.conn.Retry(ctx, func(ctx context.Context) (err error) {
		found, err = s.checkStreams(ctx, conf, names)
		return err
	})
	found = slices.DeleteFunc(found, func(f Finding) bool { return f.Setting == "" })
	if err == nil && len(found) > 0 {
		err = &SettingsError{found}
	}
	return err
}

// compare returns the settings of a stream that break a promise.
func (c *Conf) compare(want streamConf, have jetstream.StreamConfig) (found []Finding) {
	if door := c.names.DoorAll(session.DoorIn); have.Name == c.names.LogStream() && !slices.Contains(have.Subjects, door) {
		have.Subjects = want.cfg.Subjects // KeepRoom closed the door
	}
	want.keepDenyDelete(&have)
	server := have
	for _, key := range merge(&have, &want.cfg, want.keys) {
		if key != "description" {
			found = append(found, finding(have.Name, key, &server, &want.cfg))
		}
	}
	for _, key := range unnamed {
		h := field(&server, key)
		none := h.IsZero() || h.CanInt() && h.Int() < 0 || h.Kind() == reflect.Slice && h.Len() == 0 // -1 is no limit
		if none || slices.Contains(want.keys, key) || slices.Contains(want.accepted, key) || c.freely(have.Name, key, &want.cfg) {
			continue
		}
		found = append(found, finding(have.Name, key, &server, &want.cfg))
	}
	return found
}

func finding(stream, key string, have, want any) Finding {
	return Finding{Stream: stream, Setting: key, Server: show(field(have, key)), Want: show(field(want, key))}
}
