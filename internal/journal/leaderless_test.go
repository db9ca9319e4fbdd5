package journal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// A series of unanswered requests counts from its first. After a while without one, a
// new series begins.
func TestUnansweredSeriesBeginsAtItsFirstRequest(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var u unanswered
	for _, c := range []struct{ at, want time.Duration }{{0, 0}, {leaderless - 1, 0}, {leaderless + 1, 0}, {3 * leaderless, 3 * leaderless}, {4 * leaderless, 3 * leaderless}} {
		if got := u.since(begin.Add(c.at)).Sub(begin); got != c.want {
			t.Errorf("after %v: got the first %v after the beginning, want %v", c.at, got, c.want)
		}
	}
}

// A client that may ask is told at once, instead of after leaderless.
func TestCoreOnlyPublishSaysThatJetStreamIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node *bustest.Node
		want error
	}{
		"no JetStream":                 {bustest.Configured(t, "port: -1"), natsio.ErrNoJetStream},
		"no JetStream for the account": {bustest.Configured(t, "port: -1\njetstream { store_dir: \"DIR\" }\naccounts { A { users: [ { user: a, password: a } ] } }\nno_auth_user: a"), natsio.ErrNoJetStream},
	} {
		conn, err := natsio.Connect(t.Context(), natsio.Options{URL: c.node.URL(), CoreOnly: true})
		bustest.OK(t, err)
		defer conn.Close()
		j := New(conn, new(streams.Streams), true)
		defer j.Close()
		ctx, cancel := context.WithTimeout(t.Context(), leaderless/2)
		defer cancel()
		if _, err := j.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
