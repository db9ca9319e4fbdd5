package natsio_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// A server that does not take a connection again says why, and so do readiness and the
// log, which has the same refusal once a minute.
func TestRefusedReconnectIsTold(t *testing.T) {
	t.Parallel()
	both := []*server.User{{Username: "a", Password: "p"}, {Username: "b", Password: "p"}}
	one := both[:1]
	for _, c := range []struct {
		name, says    string
		refuse, allow bustest.Option
	}{
		{
			"connections", "maximum connections exceeded",
			func(o *server.Options) { o.MaxConn = 1 }, func(o *server.Options) { o.MaxConn = server.DEFAULT_MAX_CONNECTIONS },
		},
		{
			"user", "authorization violation",
			func(o *server.Options) { o.Users = one }, func(o *server.Options) { o.Users = both },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t, func(o *server.Options) { o.Users = both })
			var logs [2]testbus.Log
			var conns [2]*bus.Bus
			for i, user := range []string{"a", "b"} {
				url := strings.Replace(node.URL(), "nats://", "nats://"+user+":p@", 1)
				conns[i] = testbus.ConnectWith(t, natsio.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&logs[i], nil))})
			}
			node.Reload(c.refuse)
			var at int
			bustest.Until(t, "one is refused several times", func() bool {
				for i, conn := range conns {
					at = i
					if conn.Incarnation() > 4 {
						return true
					}
				}
				return false
			})
			var got []string
			bustest.Until(t, "readiness says why", func() bool {
				got = conns[at].NotReady(t.Context())
				return len(got) == 1 && strings.HasPrefix(got[0], "NATS is not connected: ") && strings.Contains(strings.ToLower(got[0]), c.says)
			})
			if told := logs[at].Lines("nats_refused"); len(told) != 1 || !strings.Contains(strings.ToLower(told[0]), c.says) {
				t.Errorf("logged %q, want once that %s", told, c.says)
			}
			if told := logs[at].Lines("nats_error"); len(told) > 0 {
				t.Errorf("logged %q with each attempt, want nothing", told)
			}
			node.Reload(c.allow)
			bustest.Until(t, "it is connected again", conns[at].IsConnected)
		})
	}
}
