package chaos

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Prefixes of JetStream subjects under which a daemon changes something.
const (
	ackPrefix = "$JS.ACK."
	apiPrefix = "$JS.API."
	kvPrefix  = "$KV."
	objPrefix = "$O."
)

// namer names messages by their meaning.
type namer struct{ names subjects.Names }

// what names a message that a daemon publishes. ok is false for a message that is
// not a point: it changes nothing, or depends on the clock alone.
func (n namer) what(f *frame) (name string, ok bool) {
	switch subject := f.subject; {
	case strings.HasPrefix(subject, ackPrefix):
		return ackOf(subject, f.payload)
	case strings.HasPrefix(subject, apiPrefix):
		return apiOf(strings.TrimPrefix(subject, apiPrefix))
	case strings.HasPrefix(subject, kvPrefix):
		key := subject[strings.LastIndexByte(subject, '.')+1:]
		if tokens := strings.SplitN(subject, ".", 3); len(tokens) == 3 {
			key = tokens[2]
		}
		return keyOf(key), true
	case strings.HasPrefix(subject, objPrefix):
		if strings.HasPrefix(subject, n.names.BlobChunks("")) {
			return "chunk", true
		}
		return "blob", true
	case subject == n.names.Install():
		return "install", true
	}
	return n.own(f)
}

// keyOf names the value of a key in the snapshots bucket.
func keyOf(key string) string {
	if _, snapshot := subjects.ParseSnapshotKey(key); snapshot {
		return "snapshot"
	}
	if _, quarantine := subjects.ParseQuarantineKey(key); quarantine {
		return "quarantine"
	}
	lane, err := strconv.Atoi(key[strings.LastIndexByte(key, '.')+1:])
	switch {
	case err != nil:
	case key == subjects.GuardKey(lane):
		return "guard." + subjects.LaneName(lane)
	}
	return "key"
}

// own names a message on one of Refold's own subjects.
func (n namer) own(f *frame) (name string, ok bool) {
	if effect, err := n.names.ParseEffect(f.subject); err == nil {
		return "ask." + effect.Effect, true
	}
	if claim, err := n.names.ParseClaim(f.subject); err == nil {
		if body, err := journal.ParseClaimBody(f.payload); err == nil && body.Withdrawn {
			return "withdraw." + claim.Effect, true
		}
		return "claim." + claim.Effect, true
	}
	if _, err := n.names.ParseOut(f.subject); err == nil {
		return "notice." + noticeType(f.payload), true
	}
	if _, err := n.names.ParseCancel(f.subject); err == nil {
		return "cancel", true
	}
	rest, ours := strings.CutPrefix(f.subject, n.names.Prefix()+".")
	tokens := strings.Split(rest, ".")
	switch {
	case !ours:
	case tokens[0] == "timer" && len(tokens) == 4:
		return "schedule." + tokens[2], true
	case len(tokens) == 2 && slices.Contains(subjects.Doors(), session.Door(tokens[0])):
		if effect := settledBy(f.payload); effect != "" {
			return "settle." + effect, true
		}
		return "event." + tokens[0], true
	}
	return "", false
}

// ackOf names an acknowledgement. ok is false for an extended lease.
func ackOf(subject string, payload []byte) (name string, ok bool) {
	consumer, _ := ackSubject(subject)
	switch {
	case consumer == "":
		return "", false
	case bytes.HasPrefix(payload, []byte("+WPI")):
		return "", false
	case bytes.HasPrefix(payload, []byte("-NAK")):
		return "nak." + consumer, true
	case bytes.HasPrefix(payload, []byte("+TERM")):
		return "term." + consumer, true
	}
	return "ack." + consumer, true
}

// ackSubject returns the consumer of an acknowledgement, "" if the subject is
// none, and its numbers: deliveries, sequence in the stream, sequence of the
// consumer, time, and the number of pending messages.
func ackSubject(subject string) (consumer string, numbers []string) {
	tokens := strings.Split(subject, ".")
	switch n := len(tokens); {
	case n == 9: // $JS.ACK.<stream>.<consumer>.<5 numbers>
		return tokens[3], tokens[4:]
	case n >= 11: // $JS.ACK.<domain>.<account>.<stream>.<consumer>.<5 numbers>…
		return tokens[5], tokens[6:]
	}
	return "", nil
}

// apiOf names a request that changes a stream or a durable consumer.
func apiOf(request string) (name string, ok bool) {
	tokens := strings.Split(request, ".")
	if len(tokens) < 3 {
		return "", false
	}
	last := strings.ToLower(tokens[1])
	switch tokens[0] + "." + tokens[1] {
	case "STREAM.CREATE", "STREAM.UPDATE", "STREAM.PURGE":
		return last + "." + tokens[2], true
	case "CONSUMER.CREATE", "CONSUMER.RESET", "CONSUMER.UNPIN", "CONSUMER.DELETE":
		if len(tokens) > 3 && lasts(tokens[3]) {
			return last + "." + tokens[3], true
		}
	}
	return "", false
}

// lasts reports whether a consumer is durable: a lane's, a bridge's or the
// timers'. Others are for a single read.
func lasts(consumer string) bool {
	_, lane := subjects.ParseLaneName(consumer)
	_, _, bridge := subjects.ParseBridgeName(consumer)
	return lane || bridge || consumer == subjects.DueConsumer
}

// identity distinguishes messages of one name that can repeat: by the message of
// an acknowledgement, or by the content of a notice or a snapshot. Messages that
// an effect names, or that are sent once, are the same each time.
func (n namer) identity(what string, f *frame) string {
	switch kind, _, _ := strings.Cut(what, "."); kind {
	case "ack", "nak", "term":
		consumer, numbers := ackSubject(f.subject)
		if consumer != "" {
			return numbers[1] // the sequence in the stream
		}
	case "notice", "snapshot", "event", "guard":
		return string(f.payload)
	case "quarantine", "key": // one name for all of them
		return f.subject + " " + string(f.payload)
	}
	return ""
}

// noticeType returns the type of the last notice in a message: the one that the event
// is about.
func noticeType(payload []byte) string {
	var notice struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(payload[bytes.LastIndexByte(payload, '\n')+1:], &notice) != nil || notice.Type == "" {
		return "unreadable"
	}
	return notice.Type
}

// settledBy returns the effect that an event settles, or "".
func settledBy(payload []byte) string {
	env, err := envelopeOf(payload)
	if err != nil {
		return ""
	}
	var fields codec.Pairs
	if !codec.IsMap(env.Data) || codec.Unmarshal(env.Data, &fields) != nil {
		return ""
	}
	for _, field := range fields {
		var effect string
		if field.Key == "effect" && codec.Unmarshal(field.Value, &effect) == nil {
			return effect
		}
	}
	return ""
}

// envelopeOf decodes an event's envelope.
func envelopeOf(payload []byte) (env session.Envelope, err error) {
	canonical, err := codec.Canonicalize(payload)
	if err == nil {
		err = codec.Decode(canonical, &env)
	}
	return env, err
}
