package streams_test

// streams.conf against the names in package subjects, against the buckets that nats.go
// creates, and with mistakes.

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

func confOf[T any](t *testing.T, conf *streams.Conf, name string) T {
	t.Helper()
	text, err := conf.ConfJSON(name)
	bustest.OK(t, err)
	var cfg T
	bustest.OK(t, json.Unmarshal(text, &cfg))
	return cfg
}

// Every stored subject has its stream, and no stream stores other subjects.
func TestConfStoresEverySubjectOnce(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "my-app"} {
		conf, n := testbus.Conf(t, prefix), testbus.Names(t, prefix)
		if got, want := conf.Names()[:len(n.Streams())], n.Streams(); !reflect.DeepEqual(got, want) {
			t.Errorf("streams: got %v, want %v", got, want)
		}
		for _, stream := range n.Streams() {
			cfg := confOf[jetstream.StreamConfig](t, conf, stream)
			if got, want := cfg.Subjects, n.StreamSubjects(stream); cfg.Name != stream || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %s %v, want %v", stream, cfg.Name, got, want)
			}
		}
		transform := confOf[jetstream.StreamConfig](t, conf, n.LogStream()).SubjectTransform
		if src, dest := n.LogTransform(); transform == nil || transform.Source != src || transform.Destination != dest {
			t.Errorf("transform: got %+v, want %s %s", transform, src, dest)
		}
		if got, want := conf.Lanes(), subjects.LanesDefault; got != want {
			t.Errorf("lanes: got %d, want %d", got, want)
		}
		for lane := range conf.Lanes() {
			cfg := confOf[jetstream.ConsumerConfig](t, conf, subjects.LaneName(lane))
			if got, want := cfg.FilterSubjects, n.LaneFilters(lane, conf.Lanes()); cfg.Durable != subjects.LaneName(lane) || !reflect.DeepEqual(got, want) {
				t.Errorf("lane %d: got %s %v, want %v", lane, cfg.Durable, got, want)
			}
			if cfg.PinnedTTL != 2*time.Second || cfg.MaxDeliver != -1 || cfg.AckPolicy != jetstream.AckExplicitPolicy {
				t.Errorf("lane %d: got %+v", lane, cfg)
			}
		}
		for _, class := range subjects.Classes() {
			name, err := subjects.BridgeName(class, "host")
			bustest.OK(t, err)
			cfg := confOf[jetstream.ConsumerConfig](t, conf, name)
			want, err := n.BridgeFilter(class, "host")
			bustest.OK(t, err)
			if cfg.FilterSubject != want || cfg.Durable != name || cfg.MaxDeliver != -1 {
				t.Errorf("%s: got %+v, want filter %s", name, cfg, want)
			}
		}
	}
}

// An effect's name must outlive every deadline.
func TestConfKeepsNamesLongerThanDeadlines(t *testing.T) {
	t.Parallel()
	cfg := confOf[jetstream.StreamConfig](t, testbus.Conf(t, ""), "REFOLD_FX")
	longest := time.Duration(session.DeadlineMaxMS) * time.Millisecond
	if cfg.MaxAge < longest+5*time.Minute {
		t.Errorf("max_age: got %v, want at least %v and skew", cfg.MaxAge, longest)
	}
}

// The buckets are like those of nats.go, so that other tools recognize them.
func TestConfMatchesBucketsOfTheClientLibrary(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx := testbus.Context(t)
	_, js := testbus.JS(t, node)
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "REFOLD_SNAPSHOTS"}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "REFOLD_BLOBS"}); err != nil {
		t.Fatal(err)
	}
	config := func(name string) jetstream.StreamConfig {
		stream, err := js.Stream(ctx, name)
		bustest.OK(t, err)
		cfg := stream.CachedInfo().Config
		cfg.Description = ""
		return cfg
	}
	made := map[string]jetstream.StreamConfig{}
	for _, name := range []string{"KV_REFOLD_SNAPSHOTS", "OBJ_REFOLD_BLOBS"} {
		cfg := config(name)
		if name == "OBJ_REFOLD_BLOBS" { // nothing in it is replaced
			cfg.AllowRollup, cfg.DenyDelete = false, true
		} else { // erased sessions go
			cfg.DenyDelete = false
		}
		made[name] = cfg
		bustest.OK(t, js.DeleteStream(ctx, name))
	}
	bustest.OK(t, testbus.Connect(t, node, "").Provision(ctx, testbus.Conf(t, ""), 0))
	for name, want := range made {
		if got := config(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestConfHasDomain(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	bustest.OK(t, err)
	for text, want := range map[string]string{`domain: ""`: "", `domain: "hub"`: "hub", "": ""} {
		conf, err := streams.ParseConf([]byte(strings.Replace(string(streams.File), `domain: ""`, text, 1)), names)
		if err != nil || conf.Domain() != want {
			t.Errorf("%s: got %+v and %v, want the domain %q", text, conf, err, want)
		}
	}
}

func TestConfRefuses(t *testing.T) {
	t.Parallel()
	line := func(text string) string { // where a text stands in the file
		before, _, found := strings.Cut(string(streams.File), text)
		if !found {
			t.Fatalf("streams.conf has no %q", text)
		}
		return "streams.conf:" + strconv.Itoa(1+strings.Count(before, "\n")) + ":"
	}
	for _, tc := range []struct {
		name, old, new string
		says           []string
	}{
		{"unknown key", "max_age: \"1h\"", "max_ages: \"1h\"", []string{line("max_age: \"1h\""), "streams.REFOLD_FX.max_ages", "unknown key"}},
		{"unknown nested key", "src: \"refold.*.*\"", "from: \"refold.*.*\"", []string{"subject_transform", "from"}},
		{"bad domain", "domain: \"\"", "domain: \"a.b\"", []string{line("domain: \"\""), "domain", "a.b", "1 to 64"}},
		{"domain of another type", "domain: \"\"", "domain: {}", []string{"domain"}},
		{"unknown section", "lanes {", "lane {", []string{"lane", "unknown key"}},
		{"unknown key of lanes", "count: 8", "counts: 8", []string{line("count: 8"), "counts"}},
		{"unknown key of a consumer", "ack_wait: \"30s\"\n", "ack_waits: \"30s\"\n", []string{"lanes.consumer.ack_waits"}},
		{"unknown class", "  step {", "  steps {", []string{"steps"}},
		{"no consumer of bridges", "  every {", "  # {", []string{"bridges", "every"}},
		{"unknown stream", "REFOLD_TIMERS {", "REFOLD_TIMER {", []string{"REFOLD_TIMER", "no such stream"}},
		{"a duration as a number", "max_age: \"1h\"", "max_age: 3600", []string{line("max_age: \"1h\""), "as text"}},
		{"no duration", "max_age: \"1h\"", "max_age: \"1 hour\"", []string{"1 hour"}},
		{"a wrong value", "retention: limits", "retention: forever", []string{"retention", "forever"}},
		{"a wrong kind", "deny_delete: true", "deny_delete: \"yes\"", []string{"deny_delete"}},
		{"no block", "lanes {", "lanes: 8\nx {", []string{"lanes", "block"}},
		{"a name inside", "discard: old\n    max_age: \"168h\"", "name: X\n    max_age: \"168h\"", []string{"REFOLD_OUT", "name"}},
		{"replicas inside", "discard: old\n    max_age: \"168h\"", "num_replicas: 3\n    max_age: \"168h\"", []string{"REFOLD_OUT", "num_replicas", "--replicas"}},
		{"subjects inside", "discard: old\n    max_age: \"168h\"", "subjects: [ \"x\" ]\n    max_age: \"168h\"", []string{"REFOLD_OUT", "subjects"}},
		{"another transform", "partition(64,2)", "partition(32,2)", []string{"subject_transform"}},
		{"too short an age", "max_age: \"1h\"", "max_age: \"30m\"", []string{"30m", "45m"}},
		{"two messages a name", "discard_new_per_subject: true", "discard_new_per_subject: false", []string{"published twice"}},
		{"versions that go", "max_msg_size: 786432", "max_age: \"1h\"", []string{"REFOLD_PACKS", "could change"}},
		{"no lanes", "count: 8", "count: 0", []string{"count", "0"}},
		{"too many lanes", "count: 8", "count: 65", []string{"65"}},
		{"ack all", "ack_policy: explicit\n", "ack_policy: all\n", []string{"ack_policy explicit"}},
		{"webhooks out of order", "max_ack_pending: 1000\n  replay_policy: instant\n  priority_policy: pinned_client", "max_ack_pending: 1000\n  replay_policy: instant\n  priority_policy: overflow", []string{"webhooks", "overtake"}},
		{"no pins", "priority_policy: pinned_client", "priority_policy: overflow", []string{"pinned_client"}},
		{"syntax", "lanes {", "lanes {{", []string{"streams.conf"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(streams.File), tc.old, tc.new, 1)
			if text == string(streams.File) {
				t.Fatalf("streams.conf has no %q", tc.old)
			}
			_, err := streams.ParseConf([]byte(text), testbus.Names(t, ""))
			if err == nil {
				t.Fatal("got no error")
			}
			testbus.OneLine(t, err)
			for _, want := range tc.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestProvisionReplicas(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	ctx := testbus.Context(t)
	conf := testbus.Conf(t, "")
	done := make(chan error, len(nodes))
	for _, node := range nodes { // all daemons at once
		b := testbus.Connect(t, node, "")
		go func() { done <- b.Provision(ctx, conf, 3) }()
	}
	for range nodes {
		bustest.OK(t, <-done)
	}
	_, js := testbus.JS(t, nodes[0])
	replicas := func(want int) {
		t.Helper()
		for _, name := range testbus.Names(t, "").Streams() {
			stream, err := js.Stream(ctx, name)
			bustest.OK(t, err)
			if got := stream.CachedInfo().Config.Replicas; got != want {
				t.Errorf("%s: got %d replicas, want %d", name, got, want)
			}
		}
	}
	replicas(3)
	b := testbus.Connect(t, nodes[1], "")
	if err := b.Provision(ctx, conf, 0); err != nil { // keeps what is there
		t.Fatal(err)
	}
	replicas(3)
	bustest.OK(t, b.Provision(ctx, conf, 1))
	replicas(1)
	single := testbus.Connect(t, bustest.Server(t), "")
	if err := single.Provision(ctx, conf, 3); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("three replicas on one server: got %v, want an error that says so", err)
	}
}
