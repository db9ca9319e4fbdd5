package streams

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Conf is streams.conf, read and checked, for one prefix.
type Conf struct {
	names    subjects.Names
	domain   string // of JetStream; empty: of the server that a program connects to
	streams  map[string]streamConf
	lanes    int
	lane     consumerConf
	bridges  map[session.Class]consumerConf
	timers   consumerConf
	webhooks consumerConf
}

// streamConf is the configuration of a stream, and the keys that the file has. Other
// keys keep the value that the server or the operator gave them.
type streamConf struct {
	cfg  jetstream.StreamConfig
	keys []string

	accepted []string // keys that Accept named
}

type consumerConf struct {
	cfg  jetstream.ConsumerConfig
	keys []string
}

// namesSkew is the largest clock skew between daemons. An effect's name must be kept
// for at least the longest deadline plus namesSkew.
const namesSkew = 5 * time.Minute

// ParseConf parses streams.conf and moves every name under the prefix of names. It
// refuses unknown keys and values of a wrong type, with key and line; missing or
// unknown streams and consumers; and limits that would break a promise (names of
// effects must outlive their deadlines).
func ParseConf(data []byte, names subjects.Names) (*Conf, error) {
	root, err := conf.ParseWithChecks(string(data))
	if err != nil {
		return nil, fmt.Errorf("streams.conf: %w", err)
	}
	c := &Conf{names: names, streams: map[string]streamConf{}, bridges: map[session.Class]consumerConf{}}
	read := map[string]func(entry) error{
		"domain": c.readDomain, "streams": c.readStreams, "lanes": c.readLanes, "bridges": c.readBridges, "timers": c.readTimers, "webhooks": c.readWebhooks,
	}
	for _, e := range entriesOf(root) {
		section, ok := read[e.key]
		if !ok {
			return nil, e.errorf("unknown key: use domain, streams, lanes, bridges, timers, webhooks")
		}
		if err := section(e); err != nil {
			return nil, err
		}
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("streams.conf: %w", err)
	}
	return c, nil
}

// Domain returns the JetStream domain of the servers with the streams; empty: that of
// the server that a program connects to.
func (c *Conf) Domain() string { return c.domain }

// Lanes returns the number of lanes.
func (c *Conf) Lanes() int { return c.lanes }

// AckPendingMax returns the largest max_ack_pending of all consumers.
func (c *Conf) AckPendingMax() int {
	most := max(c.lane.cfg.MaxAckPending, c.timers.cfg.MaxAckPending, c.webhooks.cfg.MaxAckPending)
	for _, b := range c.bridges {
		most = max(most, b.cfg.MaxAckPending)
	}
	return most
}

// Names returns the streams and lanes that ConfJSON knows. It also knows a consumer
// for every class and target.
func (c *Conf) Names() []string {
	all := c.names.Streams()
	for lane := range c.lanes {
		all = append(all, subjects.LaneName(lane))
	}
	return all
}

// ConfJSON returns the configuration with which the JetStream API creates the stream
// or consumer of this name, for instance REFOLD_LOG, l0 or tool-host.
func (c *Conf) ConfJSON(name string) ([]byte, error) {
	if s, ok := c.streams[name]; ok {
		return json.MarshalIndent(s.cfg, "", "  ")
	}
	if lane, ok := subjects.ParseLaneName(name); ok && lane < c.lanes {
		return json.MarshalIndent(c.laneConf(lane).cfg, "", "  ")
	}
	if name == subjects.DueConsumer {
		return json.MarshalIndent(c.dueConf().cfg, "", "  ")
	}
	if class, target, ok := subjects.ParseBridgeName(name); ok {
		consumer, err := c.bridgeConf(class, target)
		if err != nil {
			return nil, err
		}
		return json.MarshalIndent(consumer.cfg, "", "  ")
	}
	if webhook, ok := subjects.ParseWebhookConsumer(name); ok {
		consumer, err := c.webhookConf(webhook)
		if err != nil {
			return nil, err
		}
		return json.MarshalIndent(consumer.cfg, "", "  ")
	}
	return nil, fmt.Errorf("no stream or consumer %q: use one of %s, %s for the consumer of wakes, <class>-<target> for a bridge's consumer, or webhook-<name> for a webhook's",
		name, strings.Join(c.Names(), " "), subjects.DueConsumer)
}

func (c *Conf) laneConf(lane int) consumerConf {
	out := c.lane.named(subjects.LaneName(lane), "filter_subjects")
	out.cfg.FilterSubjects = c.names.LaneFilters(lane, c.lanes)
	return out
}

// named returns a copy with a name, in which one more key is set.
func (c consumerConf) named(name, key string) consumerConf {
	c.cfg.Name, c.cfg.Durable, c.keys = name, name, slices.Concat(c.keys, []string{key})
	return c
}

// bridgeConf returns the consumer from which bridges of class and target pull.
func (c *Conf) bridgeConf(class session.Class, target string) (consumerConf, error) {
	name, err := subjects.BridgeName(class, target)
	if err != nil {
		return consumerConf{}, err
	}
	filter, err := c.names.BridgeFilter(class, target)
	if err != nil {
		return consumerConf{}, err
	}
	out := c.bridges[class].named(name, "filter_subject")
	out.cfg.FilterSubject = filter
	return out, nil
}

// Lease returns the ack_wait of the effects of class and target.
func (c *Conf) Lease(class session.Class, target string) (time.Duration, error) {
	consumer, err := c.bridgeConf(class, target)
	return consumer.cfg.AckWait, err
}

func (c *Conf) readStreams(section entry) error {
	return section.each(func(e entry) (err error) {
		var s streamConf
		if s.keys, err = e.decode(&s.cfg); err != nil {
			return err
		}
		for _, key := range []string{"name", "num_replicas", "subjects"} {
			if slices.Contains(s.keys, key) {
				return e.errorf("%s does not belong here: the block has the name, --replicas the count, and package subjects the subjects", key)
			}
		}
		s.cfg.Name = c.rename(e.key)
		s.cfg.Subjects, s.keys = c.names.StreamSubjects(s.cfg.Name), withKeys(s.keys, "subjects")
		if t := s.cfg.SubjectTransform; t != nil {
			t.Source, t.Destination = c.rename(t.Source), c.rename(t.Destination)
		}
		if !slices.Contains(c.names.Streams(), s.cfg.Name) {
			return e.errorf("no such stream: use %s", strings.Join(c.names.Streams(), ", "))
		}
		c.streams[s.cfg.Name] = s
		return nil
	})
}

// rename moves a name of the file under the prefix of c.
func (c *Conf) rename(name string) string {
	if c.names.Prefix() == subjects.DefaultPrefix {
		return name
	}
	upper := strings.ToUpper(subjects.DefaultPrefix) + "_"
	for _, lead := range []string{"", "KV_", "OBJ_", "$KV.", "$O."} {
		if rest, ok := strings.CutPrefix(name, lead+upper); ok {
			return lead + strings.ToUpper(c.names.Prefix()) + "_" + rest
		}
	}
	if rest, ok := strings.CutPrefix(name, subjects.DefaultPrefix+"."); ok {
		return c.names.Prefix() + "." + rest
	}
	return name
}

func (c *Conf) readLanes(section entry) error {
	return section.each(func(e entry) (err error) {
		switch e.key {
		case "count":
			count, ok := e.value.(int64)
			if !ok || count < 1 || count > subjects.Partitions {
				return e.errorf("want a number from 1 to %d, got %v", subjects.Partitions, e.value)
			}
			c.lanes = int(count)
		case "consumer":
			c.lane.keys, err = e.decode(&c.lane.cfg)
		default:
			return e.errorf("unknown key: use count, consumer")
		}
		return err
	})
}

// everyClass is the block of bridges with what holds for every class.
const everyClass = "every"

func (c *Conf) readBridges(section entry) error {
	var own []entry
	var every consumerConf
	err := section.each(func(e entry) (err error) {
		if e.key == everyClass {
			every.keys, err = e.decode(&every.cfg)
		} else {
			own = append(own, e)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(every.keys) == 0 {
		return section.errorf("want a block %s, which holds for every class", everyClass)
	}
	for _, class := range subjects.Classes() {
		c.bridges[class] = every
	}
	for _, e := range own {
		class, b := session.Class(e.key), every
		if err := subjects.ValidClass(class); err != nil {
			return e.errorf("%w", err)
		}
		keys, err := e.decode(&b.cfg)
		if err != nil {
			return err
		}
		b.keys = withKeys(b.keys, keys...)
		c.bridges[class] = b
	}
	return nil
}

// withKeys returns keys with more of them, sorted.
func withKeys(keys []string, more ...string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(keys, more))))
}

func (c *Conf) readDomain(e entry) error {
	domain, ok := e.value.(string)
	if !ok || domain != "" && subjects.ValidInstance(domain) != nil {
		return e.errorf("%v: a domain of JetStream is 1 to 64 of A-Za-z0-9_-; empty: that of the server that a program connects to", e.value)
	}
	c.domain = domain
	return nil
}

func (c *Conf) readTimers(section entry) (err error) {
	c.timers.keys, err = section.decode(&c.timers.cfg)
	return err
}

func (c *Conf) readWebhooks(section entry) (err error) {
	c.webhooks.keys, err = section.decode(&c.webhooks.cfg)
	return err
}

// webhookConf returns the consumer from which a webhook's notices are pulled.
func (c *Conf) webhookConf(webhook string) (consumerConf, error) {
	name, err := subjects.WebhookConsumer(webhook)
	if err != nil {
		return consumerConf{}, err
	}
	out := c.webhooks.named(name, "filter_subject")
	out.cfg.FilterSubject = c.names.OutAll()
	return out, nil
}

// WebhookLimits returns the ack_wait of a webhook's consumer, how many notices it has
// delivered at most and not acknowledged, and how long a server keeps its pin.
func (c *Conf) WebhookLimits() (lease time.Duration, unacked int, pin time.Duration) {
	return c.webhooks.cfg.AckWait, c.webhooks.cfg.MaxAckPending, c.webhooks.cfg.PinnedTTL
}

// check returns an error if the file lacks something or would break a promise.
func (c *Conf) check() error {
	for _, name := range c.names.Streams() {
		if _, ok := c.streams[name]; !ok {
			return fmt.Errorf("stream %s is missing", name)
		}
	}
	if c.lanes == 0 || len(c.lane.keys) == 0 {
		return fmt.Errorf("lanes: want count and consumer")
	}
	if len(c.bridges) == 0 {
		return fmt.Errorf("bridges: want a block %s", everyClass)
	}
	return c.checkPromises()
}

func (c *Conf) checkPromises() error {
	log := c.streams[c.names.LogStream()].cfg
	src, dest := c.names.LogTransform()
	if t := log.SubjectTransform; t == nil || t.Source != src || t.Destination != dest {
		return fmt.Errorf("stream %s: subject_transform: want src %q, dest %q", log.Name, src, dest)
	}
	cfg := c.streams[c.names.EffectsStream()].cfg
	deadlineMax := time.Duration(session.DeadlineMaxMS) * time.Millisecond
	if least := deadlineMax + namesSkew; cfg.MaxAge != 0 && cfg.MaxAge < least {
		return fmt.Errorf("stream %s: max_age %v is too short: names must outlive the longest deadline (%v) and clock skew (%v): want at least %v",
			cfg.Name, cfg.MaxAge, deadlineMax, namesSkew, least)
	}
	if cfg.MaxMsgsPerSubject != 1 || !cfg.DiscardNewPerSubject || cfg.Discard != jetstream.DiscardNew || cfg.AllowRollup || cfg.AllowMsgSchedules || cfg.AllowMsgTTL {
		return fmt.Errorf("stream %s: want max_msgs_per_subject 1, discard new, discard_new_per_subject true, and no rollups, schedules or TTLs: else a name could be published twice", cfg.Name)
	}
	if err := c.checkTimers(); err != nil {
		return err
	}
	if err := c.checkPacks(); err != nil {
		return err
	}
	if p, groups := c.lane.cfg.PriorityPolicy, c.lane.cfg.PriorityGroups; p != jetstream.PriorityPolicyPinned || !slices.Equal(groups, []string{subjects.LaneGroup}) {
		return fmt.Errorf("lanes: want priority_policy pinned_client and priority_groups [ %q ]", subjects.LaneGroup)
	}
	if len(c.timers.keys) == 0 || c.timers.cfg.AckPolicy != jetstream.AckExplicitPolicy {
		return fmt.Errorf("timers: want a consumer with ack_policy explicit: else a wake could be lost")
	}
	if w := c.webhooks.cfg; w.PriorityPolicy != jetstream.PriorityPolicyPinned || !slices.Equal(w.PriorityGroups, []string{subjects.WebhookGroup}) ||
		w.AckPolicy != jetstream.AckExplicitPolicy || w.MaxAckPending < 1 || w.PinnedTTL <= 0 {
		return fmt.Errorf("webhooks: want a consumer with ack_policy explicit, max_ack_pending, priority_policy pinned_client, priority_groups [ %q ] and priority_timeout: else notices could overtake one another", subjects.WebhookGroup)
	}
	if c.lane.cfg.AckPolicy != jetstream.AckExplicitPolicy {
		return fmt.Errorf("lanes: want ack_policy explicit: a late ack-all of a former owner would wedge the lane")
	}
	return nil
}

// checkPacks returns an error if a published version could change.
func (c *Conf) checkPacks() error {
	cfg := c.streams[c.names.PacksStream()].cfg
	if cfg.MaxMsgsPerSubject != 1 || !cfg.DiscardNewPerSubject || cfg.Discard != jetstream.DiscardNew || !cfg.DenyDelete || !cfg.DenyPurge ||
		cfg.AllowRollup || cfg.AllowMsgTTL || cfg.MaxAge != 0 {
		return fmt.Errorf("stream %s: want max_msgs_per_subject 1, discard new, discard_new_per_subject, deny_delete and deny_purge true, and no rollups, TTLs or max_age: else a published version could change", cfg.Name)
	}
	return nil
}

// checkTimers returns an error if the stream of timers could lose one or fill up.
func (c *Conf) checkTimers() error {
	cfg := c.streams[c.names.TimersStream()].cfg
	if cfg.Retention != jetstream.WorkQueuePolicy || cfg.MaxAge != 0 || cfg.MaxMsgsPerSubject != 1 || !cfg.AllowMsgSchedules || !cfg.AllowAtomicPublish {
		return fmt.Errorf("stream %s: want retention workqueue, no max_age, max_msgs_per_subject 1, allow_msg_schedules and allow_atomic: else a wake could be forgotten before it is due, kept for ever after, or not stored", cfg.Name)
	}
	return nil
}

func (c *Conf) dueConf() consumerConf {
	out := c.timers.named(subjects.DueConsumer, "filter_subject")
	out.cfg.FilterSubject = c.names.DueAll()
	return out
}
