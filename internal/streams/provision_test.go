package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

func TestProvisionIsIdempotent(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "")
	ctx := testbus.Context(t)
	conf := testbus.Conf(t, "")
	for range 2 {
		bustest.OK(t, b.Provision(ctx, conf, 0))
	}
	_, js := testbus.JS(t, node)
	for _, name := range b.Names().Streams() {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatalf("stream %s: %v", name, err)
		}
		if name != b.Names().LogStream() {
			continue
		}
		var lanes []string
		list := stream.ConsumerNames(ctx)
		for lane := range list.Name() {
			lanes = append(lanes, lane)
		}
		if got, want := len(lanes), conf.Lanes(); got != want {
			t.Errorf("lanes: got %d (%v), want %d", got, lanes, want)
		}
	}
	if _, err := js.KeyValue(ctx, b.Names().SnapshotsBucket()); err != nil {
		t.Errorf("snapshots are no key-value bucket: %v", err)
	}
	if _, err := js.ObjectStore(ctx, b.Names().BlobsBucket()); err != nil {
		t.Errorf("blobs are no object store: %v", err)
	}
}

func TestTransformStoresThePartition(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "other")
	ctx := testbus.Context(t)
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, "other"), 0))
	nc, js := testbus.JS(t, node)
	n := b.Names()
	sids := []string{"s1", "s2", "airline-1", "S_2", "a-very-long-session-id-of-which-there-are-some", "0", "f00"}
	type stored struct {
		door session.Door
		sid  string
	}
	wants := []stored{{session.DoorInstall, ""}}
	for _, sid := range sids {
		for _, door := range subjects.Doors() {
			wants = append(wants, stored{door, sid})
		}
	}
	for seq, want := range wants {
		subject, err := n.Log(want.door, want.sid)
		bustest.OK(t, err)
		ack, err := js.Publish(ctx, subject, []byte("{}"))
		if err != nil {
			t.Fatalf("publish %s: %v", subject, err)
		}
		if got := ack.Sequence; got != uint64(seq+1) {
			t.Fatalf("%s: got sequence %d, want %d", subject, got, seq+1)
		}
	}
	stream, err := js.Stream(ctx, n.LogStream())
	bustest.OK(t, err)
	for i, want := range wants {
		msg, err := stream.GetMsg(ctx, uint64(i+1))
		bustest.OK(t, err)
		wantSubject, err := n.Stored(want.door, want.sid)
		bustest.OK(t, err)
		if got := msg.Subject; got != wantSubject {
			t.Errorf("stored subject: got %s, want %s", got, wantSubject)
		}
		door, sid, err := n.ParseStored(msg.Subject)
		if err != nil || door != want.door || sid != want.sid {
			t.Errorf("parse %s: got %s %s %v", msg.Subject, door, sid, err)
		}
	}
	// Nobody can choose a partition, or a door that is not there.
	for _, subject := range []string{"other.5.in.s1", "other.door.s1", "other.in", "other.install.s1"} {
		if msg, err := nc.RequestWithContext(ctx, subject, []byte("{}")); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: got %v %v, want no responders", subject, msg, err)
		}
	}
}

func TestProvisionConcurrently(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx := testbus.Context(t)
	conf := testbus.Conf(t, "")
	var wg sync.WaitGroup
	for range 4 {
		b := testbus.Connect(t, node, "")
		wg.Go(func() {
			if err := b.Provision(ctx, conf, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestProvisionUpdatesWhatMayChange(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	// What the operator sets and the file doesn't name stays.
	stream, err := js.Stream(ctx, "REFOLD_OUT")
	bustest.OK(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = 1 << 30
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	changed := testbus.Conf(t, "", `"168h"`, `"24h"`, "max_ack_pending: 1000\n", "max_ack_pending: 2000\n")
	bustest.OK(t, b.Provision(ctx, changed, 0))
	stream, err = js.Stream(ctx, "REFOLD_OUT")
	bustest.OK(t, err)
	if got := stream.CachedInfo().Config; got.MaxAge != 24*time.Hour || got.MaxBytes != 1<<30 {
		t.Errorf("REFOLD_OUT: got max_age %v, max_bytes %d, want 24h, %d", got.MaxAge, got.MaxBytes, 1<<30)
	}
	lane, err := js.Consumer(ctx, "REFOLD_LOG", "l3")
	bustest.OK(t, err)
	if got := lane.CachedInfo().Config.MaxAckPending; got != 2000 {
		t.Errorf("l3: got max_ack_pending %d, want 2000", got)
	}
}

func TestProvisionRefusesWhatCannotChange(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name             string
		edit             func(*testing.T, context.Context, jetstream.JetStream)
		conf             []string
		key, server, say string
	}{
		{name: "storage", conf: []string{"storage: file", "storage: memory"}, key: "storage", server: "File", say: "Memory"},
		{name: "fewer lanes", conf: []string{"count: 8", "count: 4"}, key: "count", server: "8", say: "4"},
		{name: "more lanes", conf: []string{"count: 8", "count: 16"}, key: "count", server: "8", say: "16"},
		{name: "purges allowed", conf: []string{"deny_delete: false\n    deny_purge: true", "deny_delete: false\n    deny_purge: false"}, key: "deny_purge", server: "true", say: "false"},
		{name: "replay of lanes", conf: []string{"replay_policy: instant", "replay_policy: original"}, key: "replay_policy", server: "instant", say: "original"},
		{
			name: "a lane too many", key: "count", server: "9", say: "8",
			edit: func(t *testing.T, ctx context.Context, js jetstream.JetStream) {
				if _, err := js.CreateConsumer(ctx, "REFOLD_LOG", jetstream.ConsumerConfig{Durable: "l8"}); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
			if tc.edit != nil {
				_, js := testbus.JS(t, node)
				tc.edit(t, ctx, js)
			}
			err := b.Provision(ctx, testbus.Conf(t, "", tc.conf...), 0)
			var fixed *streams.ImmutableError
			if !errors.As(err, &fixed) {
				t.Fatalf("got %v, want an ImmutableError", err)
			}
			if fixed.Key != tc.key || fixed.Server != tc.server || fixed.Conf != tc.say {
				t.Errorf("got %s %s %s, want %s %s %s", fixed.Key, fixed.Server, fixed.Conf, tc.key, tc.server, tc.say)
			}
			if text := err.Error(); !strings.Contains(text, tc.server) || !strings.Contains(text, tc.say) || strings.Contains(text, "\n") {
				t.Errorf("the error names both values in one line: got %q", text)
			}
		})
	}
}

// The API creates the same streams and consumers from ConfJSON as Provision does.
func TestConfJSONCreatesWhatProvisionCreates(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx := testbus.Context(t)
	nc, js := testbus.JS(t, node)
	conf := testbus.Conf(t, "")
	request := func(subject string, body []byte) {
		t.Helper()
		answer, err := nc.RequestWithContext(ctx, subject, body)
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		var refused struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &refused); err != nil || refused.Error != nil {
			t.Fatalf("%s: %v %v\n%s", subject, err, refused.Error, body)
		}
	}
	for _, name := range append(conf.Names(), subjects.DueConsumer, "tool-host", "llm-openai") {
		body, err := conf.ConfJSON(name)
		bustest.OK(t, err)
		_, _, isBridge := subjects.ParseBridgeName(name)
		_, isLane := subjects.ParseLaneName(name)
		switch {
		case isBridge:
			request("$JS.API.CONSUMER.DURABLE.CREATE.REFOLD_FX."+name, []byte(`{"stream_name":"REFOLD_FX","config":`+string(body)+`}`))
		case isLane:
			request("$JS.API.CONSUMER.DURABLE.CREATE.REFOLD_LOG."+name, []byte(`{"stream_name":"REFOLD_LOG","config":`+string(body)+`}`))
		case name == subjects.DueConsumer:
			request("$JS.API.CONSUMER.DURABLE.CREATE.REFOLD_TIMERS."+name, []byte(`{"stream_name":"REFOLD_TIMERS","config":`+string(body)+`}`))
		default:
			request("$JS.API.STREAM.CREATE."+name, body)
		}
	}
	// Provisioning then finds nothing to do, except for the identity of the log.
	before := created(t, ctx, js, conf)
	b := testbus.Connect(t, node, "")
	bustest.OK(t, b.Provision(ctx, conf, 0))
	if _, err := b.EnsureBridge(ctx, conf, session.ClassTool, "host"); err != nil {
		t.Fatal(err)
	}
	if after := created(t, ctx, js, conf); after != before {
		t.Errorf("streams changed:\n%s\nwant\n%s", after, before)
	}
	if _, err := conf.ConfJSON("REFOLD_NONE"); err == nil {
		t.Error("ConfJSON of an unknown name: got nil, want an error")
	}
}

// created prints all configurations on the server.
func created(t *testing.T, ctx context.Context, js jetstream.JetStream, conf *streams.Conf) string {
	t.Helper()
	var all strings.Builder
	for _, name := range testbus.Names(t, "").Streams() {
		stream, err := js.Stream(ctx, name)
		bustest.OK(t, err)
		cfg := stream.CachedInfo().Config
		delete(cfg.Metadata, subjects.MetadataLog) // each log has its own
		text, err := json.Marshal(cfg)
		bustest.OK(t, err)
		all.Write(text)
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			text, err := json.Marshal(info.Config)
			bustest.OK(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// TestNewLogMissesNoWakes: a stream of timers that is created with its log misses no
// wake, and one that is created for a log with events misses them all.
func TestNewLogMissesNoWakes(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	_, js := testbus.JS(t, node)
	for _, want := range []bool{false, true} {
		bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
		if got, err := b.WakesLost(ctx); got != want || err != nil {
			t.Errorf("wakes are missing: got %v, %v, want %v", got, err, want)
		}
		if _, err := js.Publish(ctx, b.Names().Install(), []byte("a record")); err != nil {
			t.Fatal(err)
		}
		bustest.OK(t, js.DeleteStream(ctx, b.Names().TimersStream()))
	}
}

// A store of blobs of an earlier release takes rollups, and with them deletions: it is
// updated and keeps what it has.
func TestProvisionEndsRollupsOfBlobs(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	_, js := testbus.JS(t, node)
	objects, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: b.Names().BlobsBucket()})
	bustest.OK(t, err)
	ref := codec.RefOf([]byte("content"))
	if _, err := objects.PutBytes(ctx, ref.String(), []byte("content")); err != nil {
		t.Fatal(err)
	}
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
	if _, err := objects.PutBytes(ctx, ref.String(), []byte("other")); err == nil {
		t.Error("a blob was replaced by a rollup")
	}
	if got, err := b.GetBlob(ctx, ref); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestStreamFromBeforeDeletionsIsKept: a log that nobody may delete from, as older commits
// made it, is taken as it is, and nothing counts as wrong.
func TestStreamFromBeforeDeletionsIsKept(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	old := []string{"deny_delete: false", "deny_delete: true"}
	testbus.Provisioned(t, node, old...)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	conf := testbus.Conf(t, "")
	if err := b.Provision(ctx, conf, 0); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Check(ctx, conf); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v, want nothing", found, err)
	}
	_, js := testbus.JS(t, node)
	if log, err := js.Stream(ctx, "REFOLD_LOG"); err != nil || !log.CachedInfo().Config.DenyDelete {
		t.Errorf("the log may be deleted from (%v)", err)
	}
}
