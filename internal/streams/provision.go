package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Provision creates or updates every stream and lane of conf. It is idempotent, and
// several daemons may call it at once. replicas is the number of copies of each stream;
// 0 means one for a new stream, and leaves an existing one as it is. A key that conf
// doesn't have keeps its value on the server.
//
// A setting that can't change on an existing stream or lane is an *ImmutableError with
// both values. Streams before it in the file may have been created or updated then.
//
// What it updates it logs, with the former values. A setting that conf does not name and
// that endangers history is a *SettingsError, unless conf accepts it.
//
// If the log is missing and other streams belonged to one, Provision creates nothing and
// returns a *LogLostError.
//
// After Provision this process may Remake streams that are deleted, and recreates the
// bucket of snapshots when it needs it. A lane that it runs recreates its consumer.
func (s *Streams) Provision(ctx context.Context, conf *Conf, replicas int) error {
	if err := s.sameLog(ctx); err != nil {
		return err
	}
	for _, name := range conf.names.Streams() {
		want := conf.streams[name]
		if err := s.ensureStreamSoon(ctx, want, replicas); err != nil {
			if natsio.CodeOf(err) == natsio.CodeInvalidConfig { // one of its settings keeps others from being restored
				err = errors.Join(s.noDanger(ctx, conf, name), err)
			}
			return fmt.Errorf("provision %s: %w", name, err)
		}
		if name == s.names.LogStream() {
			if err := s.provisionLogID(ctx); err != nil {
				return err
			}
		}
		if name == s.names.SnapshotsStream() {
			bucket := want.cfg
			bucket.Replicas = max(replicas, 1)
			s.bucket.Store(&bucket)
		}
	}
	s.replicas.Store(int64(replicas))
	if err := s.markLog(ctx); err != nil {
		return err
	}
	if err := s.noDanger(ctx, conf, conf.names.Streams()...); err != nil {
		return err
	}
	for lane := range conf.lanes {
		if err := s.ensureLane(ctx, conf, lane); err != nil {
			return fmt.Errorf("provision lane %d of %s: %w", lane, conf.names.LogStream(), err)
		}
	}
	if err := s.ensureDue(ctx, conf); err != nil {
		return err
	}
	if err := s.noOtherLanes(ctx, conf); err != nil {
		return err
	}
	s.provisioned.Store(conf)
	return s.CheckDurability(ctx, conf)
}

// EnsureBridge creates or updates the consumer from which bridges of a class and
// target pull, and returns its name. It needs only the effects stream. Its error says
// what to do if the consumer is missing and this user may not create it.
func (s *Streams) EnsureBridge(ctx context.Context, conf *Conf, class session.Class, target string) (string, error) {
	consumer, err := conf.bridgeConf(class, target)
	if err != nil {
		return "", err
	}
	if err := s.ensureFor(ctx, conf.names.EffectsStream(), consumer, string(class)+"/"+target); err != nil {
		return "", err
	}
	s.Identify(ctx) // before the first effect, which may be of another log
	return consumer.cfg.Name, nil
}

// EnsureWebhook creates or updates the consumer from which a webhook's notices are pulled,
// and returns its name. A new consumer begins with the next notice. Its error says what to
// do if the consumer is missing and this user may not create it.
func (s *Streams) EnsureWebhook(ctx context.Context, conf *Conf, webhook string) (string, error) {
	consumer, err := conf.webhookConf(webhook)
	if err != nil {
		return "", err
	}
	return consumer.cfg.Name, s.ensureFor(ctx, conf.names.NoticesStream(), consumer, subjects.ClassWebhook+"/"+webhook)
}

// ensureFor creates or updates a consumer that session-actors create for users who may
// not; asked is how their flag --consumer names it.
func (s *Streams) ensureFor(ctx context.Context, stream string, consumer consumerConf, asked string) error {
	err := s.conn.Retry(ctx, func(ctx context.Context) error { return s.ensureConsumer(ctx, stream, consumer) })
	var denied *natsio.PermissionError
	if errors.As(err, &denied) && strings.Contains(denied.Subject, ".CONSUMER.CREATE.") {
		return fmt.Errorf("consumer %s is missing, and this user may not create it: start a session-actor with --consumer %s first (%w)", consumer.cfg.Name, asked, err)
	}
	if err != nil {
		return fmt.Errorf("provision consumer %s: %w", consumer.cfg.Name, err)
	}
	return nil
}

// LaneConfig returns the configuration of a lane's consumer, if this process
// provisioned that lane.
func (s *Streams) LaneConfig(lane int) (cfg jetstream.ConsumerConfig, ok bool) {
	if conf := s.provisioned.Load(); conf != nil && lane < conf.lanes {
		return conf.laneConf(lane).cfg, true
	}
	return cfg, false
}

// EnsureDue creates the consumer from which session-actors pull due wakes, if this
// process called Provision.
func (s *Streams) EnsureDue(ctx context.Context) error {
	if conf := s.provisioned.Load(); conf != nil {
		return s.ensureDue(ctx, conf)
	}
	return nil
}

func (s *Streams) ensureDue(ctx context.Context, conf *Conf) error {
	err := s.conn.Retry(ctx, func(ctx context.Context) error {
		return s.ensureConsumer(ctx, s.names.TimersStream(), conf.dueConf())
	})
	if err != nil {
		return fmt.Errorf("provision consumer %s: %w", subjects.DueConsumer, natsio.Typed(err))
	}
	return nil
}

// peersTimeout is how long a cluster may report too few peers: a new cluster does
// until all its servers have joined.
const peersTimeout = 15 * time.Second

// peersNeeded is what a cluster lacks that has too few peers: the server does not say.
const peersNeeded = "as many servers with JetStream, each with storage, and below its max_ha_assets"

// ensureStreamSoon is ensureStream, retried for peersTimeout while peers are offline.
func (s *Streams) ensureStreamSoon(ctx context.Context, want streamConf, replicas int) error {
	deadline, told := time.Now().Add(peersTimeout), false
	for {
		err := s.conn.Retry(ctx, func(ctx context.Context) error { return s.ensureStream(ctx, want, replicas) })
		switch code := natsio.CodeOf(err); {
		case code == natsio.CodeNotClustered:
			return fmt.Errorf("%d replicas need a cluster of at least %d servers, and this server is in none: use --replicas 1, or connect to a cluster (%w)", replicas, replicas, err)
		case code == natsio.CodeOverlap:
			if taken := s.overlap(ctx, want.cfg.Name, want.cfg.Subjects); taken != "" {
				return fmt.Errorf("%s (%w)", taken, err)
			}
			return err
		case code == natsio.CodeNoPeers && time.Now().After(deadline):
			return fmt.Errorf("the cluster has no room for %d replicas: it needs %s (%w)", max(replicas, 1), peersNeeded, err)
		case code != natsio.CodeNoPeers:
			return err
		}
		if !told {
			s.conn.Log.Warn("peers_missing", "stream", want.cfg.Name, "replicas", max(replicas, 1), "wait", peersTimeout.String(), "needed", peersNeeded, "error", err.Error())
			told = true
		}
		if err := natsio.Sleep(ctx, natsio.ReconnectWait); err != nil {
			return err
		}
	}
}

func (s *Streams) ensureStream(ctx context.Context, want streamConf, replicas int) error {
	stream, err := s.conn.JS.Stream(ctx, want.cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		cfg := want.cfg
		cfg.Replicas = max(replicas, 1)
		if cfg.Name == s.names.LogStream() {
			cfg.Metadata = map[string]string{subjects.MetadataLog: newLogID()}
		}
		if cfg.Name == s.names.TimersStream() {
			switch log, err := s.conn.JS.Stream(ctx, s.names.LogStream()); {
			case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
				return err
			case err == nil && log.CachedInfo().State.LastSeq > 0: // else no session has a wake yet
				cfg.Metadata = map[string]string{subjects.MetadataWakes: subjects.WakesMissing}
			}
		}
		// Another daemon may create it first: the same configuration succeeds,
		// and a different one is retried as an update.
		if _, err = s.conn.JS.CreateStream(ctx, cfg); err == nil {
			s.conn.Log.Info("stream_created", "stream", cfg.Name, "replicas", cfg.Replicas)
		}
		return err
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	if door := s.names.DoorAll(session.DoorIn); want.cfg.Name == s.names.LogStream() && !slices.Contains(have.Subjects, door) {
		// KeepRoom closed the door, since the log is almost full, and opens it again.
		want.cfg.Subjects = slices.DeleteFunc(slices.Clone(want.cfg.Subjects), func(s string) bool { return s == door })
	}
	want.keepDenyDelete(&have)
	merged := have
	changed := merge(&merged, &want.cfg, want.keys)
	if key, ok := streamFixed(&have, &want.cfg, changed); ok {
		return immutable(have.Name, key, &have, &want.cfg)
	}
	if replicas > 0 && have.Replicas != replicas {
		merged.Replicas = replicas
		changed = append(changed, "num_replicas")
	}
	if len(changed) == 0 {
		return nil
	}
	if _, err = s.conn.JS.UpdateStream(ctx, merged); err == nil {
		was := make([]string, len(changed))
		for i, key := range changed {
			was[i] = show(field(&have, key))
		}
		s.conn.Log.Info("stream_updated", "stream", merged.Name, "keys", changed, "was", was)
	}
	return err
}

// keepDenyDelete expects deny_delete of a stream that has it, which can't be changed: it is
// from before sessions could be deleted, and works as it did. Who deletes is told.
func (c *streamConf) keepDenyDelete(have *jetstream.StreamConfig) {
	c.cfg.DenyDelete = c.cfg.DenyDelete || have.DenyDelete
}

func (s *Streams) ensureLane(ctx context.Context, conf *Conf, lane int) error {
	want := conf.laneConf(lane)
	err := s.conn.Retry(ctx, func(ctx context.Context) error {
		return s.ensureConsumer(ctx, conf.names.LogStream(), want)
	})
	var fixed *ImmutableError
	if errors.As(err, &fixed) && fixed.Key == "filter_subjects" {
		// The filters differ because the counts do: report the counts.
		if consumer, ferr := s.conn.JS.Consumer(ctx, conf.names.LogStream(), want.cfg.Name); ferr == nil {
			if n := len(consumer.CachedInfo().Config.FilterSubjects) - 1; n > 0 {
				return laneCountError(conf, subjects.Partitions/n)
			}
		}
	}
	return err
}

// noOtherLanes returns an error if the log has lanes beyond the count: their messages
// would be folded twice.
func (s *Streams) noOtherLanes(ctx context.Context, conf *Conf) error {
	names, err := s.consumers(ctx, conf.names.LogStream())
	if err != nil {
		return err
	}
	most := 0
	for _, name := range names {
		if lane, ok := subjects.ParseLaneName(name); ok {
			most = max(most, lane+1)
		}
	}
	if most > conf.lanes {
		return laneCountError(conf, most)
	}
	return nil
}

func laneCountError(conf *Conf, have int) error {
	return &ImmutableError{
		Name: conf.names.LogStream() + " (lanes)", Key: "count",
		Server: strconv.Itoa(have), Conf: strconv.Itoa(conf.lanes),
	}
}

func (s *Streams) ensureConsumer(ctx context.Context, stream string, want consumerConf) error {
	consumer, err := s.conn.JS.Consumer(ctx, stream, want.cfg.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if _, err = s.conn.JS.CreateConsumer(ctx, stream, want.cfg); err == nil {
			s.conn.Log.Info("consumer_created", "stream", stream, "consumer", want.cfg.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	have := consumer.CachedInfo().Config
	merged := have
	if have.DeliverPolicy == jetstream.DeliverByStartSequencePolicy {
		want.cfg.DeliverPolicy = have.DeliverPolicy // a recreated lane starts at the ack floor of the deleted one
	}
	changed := merge(&merged, &want.cfg, want.keys)
	for _, key := range changed {
		if slices.Contains(consumerFixed, key) {
			return immutable(stream+" > "+want.cfg.Name, key, &have, &want.cfg)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if _, err = s.conn.JS.UpdateConsumer(ctx, stream, merged); err == nil {
		s.conn.Log.Info("consumer_updated", "stream", stream, "consumer", want.cfg.Name, "keys", changed)
	}
	return err
}

// consumerFixed has the keys that can't change on an existing consumer. The server
// refuses most of these changes; the others would make owners of lanes disagree.
var consumerFixed = []string{
	"deliver_policy", "ack_policy", "replay_policy", "filter_subject", "filter_subjects",
	"priority_policy", "priority_groups",
}

// streamFixed returns the first changed key that can't change on an existing stream.
// Some options can be set but not unset.
func streamFixed(have, want *jetstream.StreamConfig, changed []string) (string, bool) {
	for _, key := range changed {
		switch key {
		case "storage", "retention", "subject_transform", "persist_mode", "allow_msg_counter":
			return key, true
		case "deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules", "sealed":
			if field(have, key).Bool() && !field(want, key).Bool() {
				return key, true
			}
		}
	}
	return "", false
}

// merge copies the named fields of want into have and returns those that
// changed. Both point to structs of one type.
func merge(have, want any, keys []string) (changed []string) {
	for _, key := range keys {
		h, w := field(have, key), field(want, key)
		same := reflect.DeepEqual(h.Interface(), w.Interface())
		if h.Kind() == reflect.Slice && h.Len() == 0 && w.Len() == 0 {
			same = true // nil and empty are equal
		}
		if !same {
			h.Set(w)
			changed = append(changed, key)
		}
	}
	return changed
}

func field(pointer any, key string) reflect.Value {
	f, _ := fieldOf(reflect.ValueOf(pointer).Elem(), key)
	return f
}

func immutable(name, key string, have, want any) error {
	return &ImmutableError{Name: name, Key: key, Server: show(field(have, key)), Conf: show(field(want, key))}
}

// show prints a value for an operator.
func show(v reflect.Value) string {
	switch of := v.Interface().(type) {
	case *jetstream.StreamSource, []*jetstream.StreamSource:
		if text, err := json.Marshal(of); err == nil && !v.IsZero() {
			return string(text)
		}
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "none"
		}
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v.Interface())
}

// ImmutableError means that a stream or consumer on the server differs from
// streams.conf in a key that can't change. The stream or consumer is unchanged.
type ImmutableError struct {
	Name   string // stream, or stream > consumer
	Key    string // name in the JetStream API
	Server string // value on the server
	Conf   string // value in streams.conf
}

func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s has %s %s on the server, and streams.conf says %s: this can't change while it exists; restore the old value, or use another --prefix",
		e.Name, e.Key, e.Server, e.Conf)
}
