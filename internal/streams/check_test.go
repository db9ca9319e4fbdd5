package streams_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
)

// TestChangedSettingsAreFound: somebody changes a setting of a stream on which a promise
// rests. Check names it, and Provision restores it or stops; an accepted one stays.
func TestChangedSettingsAreFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		stream, setting string
		change          func(*jetstream.StreamConfig)
		server, want    string
		restored        bool
	}{
		{"REFOLD_LOG", "max_age", func(c *jetstream.StreamConfig) { c.MaxAge = 6 * time.Hour }, "6h0m0s", "0s", false},
		{"REFOLD_LOG", "max_msgs_per_subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "5", "0", false},
		{"REFOLD_LOG", "max_msg_size", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 5 }, "5", "0", false},
		{"REFOLD_LOG", "sealed", func(c *jetstream.StreamConfig) { c.Sealed = true }, "true", "false", false},
		{"REFOLD_LOG", "sources", func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} }, `[{"name":"OTHER"}]`, "[]", false},
		{"REFOLD_LOG", "discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, "DiscardOld", "DiscardNew", true},
		{"REFOLD_FX", "max_age", func(c *jetstream.StreamConfig) { c.MaxAge = 3 * time.Minute }, "3m0s", "1h0m0s", true},
		{"REFOLD_FX", "duplicate_window", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second }, "1s", "2m0s", true},
		{"REFOLD_OUT", "subjects", func(c *jetstream.StreamConfig) { c.Subjects = []string{"refold.out.a*"} }, "[refold.out.a*]", "[refold.out.*]", true},
		{"REFOLD_FX", "subject_transform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "refold.fx.tool.*.*.*", Destination: "refold.fx.step.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"}
		}, "{Source:refold.fx.tool.*.*.* Destination:refold.fx.step.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}}", "none", false},
		{"REFOLD_FX", "max_consumers", func(c *jetstream.StreamConfig) { c.MaxConsumers = 3 }, "3", "0", false},
		{"REFOLD_OUT", "no_ack", func(c *jetstream.StreamConfig) { c.NoAck = true }, "true", "false", false},
		{"REFOLD_TIMERS", "max_bytes", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "1048576", "0", false},
		{"OBJ_REFOLD_BLOBS", "max_age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "1h0m0s", "0s", false},
	} {
		t.Run(tc.stream+"."+tc.setting, func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			b, ctx, conf := testbus.Provisioned(t, node), testbus.Context(t), testbus.Conf(t, "")
			if found, err := b.Check(ctx, conf); err != nil || len(found) > 0 {
				t.Fatalf("as provisioned: got %v, %v; want nothing", found, err)
			}
			_, js := testbus.JS(t, node)
			stream, err := js.Stream(ctx, tc.stream)
			bustest.OK(t, err)
			cfg := stream.CachedInfo().Config
			tc.change(&cfg)
			_, err = js.UpdateStream(ctx, cfg)
			bustest.OK(t, err)
			want := streams.Finding{Stream: tc.stream, Setting: tc.setting, Server: tc.server, Want: tc.want}
			found, err := b.Check(ctx, conf)
			found = onlyOf(found, tc.setting)
			if err != nil || len(found) != 1 || found[0] != want {
				t.Errorf("got %+v, %v; want %+v", found, err, want)
			}
			err = b.Provision(ctx, testbus.Conf(t, ""), 0)
			var changed *streams.SettingsError
			switch accept := "--accept-stream-settings " + tc.stream + "." + tc.setting; {
			case tc.restored && err != nil:
				t.Errorf("got %v, want it restored", err)
			case tc.restored:
				if found, err := b.Check(ctx, conf); err != nil || len(found) > 0 {
					t.Errorf("restored: got %v, %v; want nothing", found, err)
				}
			case !errors.As(err, &changed) || !strings.Contains(err.Error(), accept):
				t.Errorf("got %v, want a SettingsError that names %s", err, accept)
			}
			if tc.restored || tc.setting == "sealed" {
				return
			}
			accepts := testbus.Conf(t, "")
			bustest.OK(t, accepts.Accept(tc.stream+"."+tc.setting))
			if err := b.Provision(ctx, accepts, 0); err != nil {
				t.Errorf("accepted: got %v, want nil", err)
			}
		})
	}
}

// TestShortAgeIsNamed: an age below the window for duplicates takes that along, and it
// can't be restored alone.
func TestShortAgeIsNamed(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = 6*time.Second, 6*time.Second })
	err := b.Provision(ctx, testbus.Conf(t, ""), 0)
	var changed *streams.SettingsError
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), "--accept-stream-settings REFOLD_LOG.duplicate_window --accept-stream-settings REFOLD_LOG.max_age") {
		t.Errorf("got %v, want a SettingsError that names both settings", err)
	}
	accepts := testbus.Conf(t, "")
	bustest.OK(t, accepts.Accept("REFOLD_LOG.max_age"))
	bustest.OK(t, accepts.Accept("REFOLD_LOG.duplicate_window"))
	if err := b.Provision(ctx, accepts, 0); err != nil {
		t.Errorf("accepted: got %v, want nil", err)
	}
}

func onlyOf(all []streams.Finding, setting string) (some []streams.Finding) {
	for _, f := range all {
		if f.Setting == setting {
			some = append(some, f)
		}
	}
	return some
}

func TestAcceptNeedsKnownSetting(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"max_age", "REFOLD_LOG", "REFOLD_LOG.colour", "NONE.max_age"} {
		if err := testbus.Conf(t, "").Accept(name); err == nil || !strings.Contains(err.Error(), "STREAM.SETTING") {
			t.Errorf("%s: got %v, want how to name it", name, err)
		}
	}
}
