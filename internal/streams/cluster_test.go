package streams_test

// What happens to a cluster is told with the right cause.

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// TestLeadersThatMoveAreNoTrouble: the leaders of all streams step down. Nothing is told,
// since others lead soon, and no stream is missing.
func TestLeadersThatMoveAreNoTrouble(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	b, conf := testbus.Connect(t, nodes[0], ""), testbus.Conf(t, "")
	ctx, end := context.WithCancel(testbus.Context(t))
	defer end()
	bustest.OK(t, b.Provision(ctx, conf, 3))
	nc, _ := testbus.JS(t, nodes[0])
	for _, name := range b.Names().Streams() {
		if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+name, nil, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	bustest.OK(t, b.WatchStreams(ctx, conf, func(found []streams.Finding) {
		if len(found) > 0 {
			t.Errorf("leaders moved: found %q, want nothing", found)
		}
		end()
	}))
}

// TestTooManyHAAssets: servers that may have no more assets are named as the cause.
func TestTooManyHAAssets(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3, func(o *server.Options) { o.JetStreamLimits.MaxHAAssets = 3 })
	logged := new(testbus.Log)
	b := testbus.ConnectWith(t, natsio.Options{URL: nodes[0].URL(), Logger: slog.New(slog.NewTextHandler(logged, nil))})
	ctx, end := context.WithCancel(testbus.Context(t))
	provisioned := make(chan error, 1)
	go func() { provisioned <- b.Provision(ctx, testbus.Conf(t, ""), 3) }()
	bustest.Until(t, "it is told", func() bool { return len(logged.Lines("peers_missing")) > 0 })
	end()
	if err := <-provisioned; err == nil {
		t.Error("more streams than the servers may have are provisioned")
	}
	if line := logged.Lines("peers_missing")[0]; !strings.Contains(line, "max_ha_assets") {
		t.Errorf("logged %q, want the cause", line)
	}
}
