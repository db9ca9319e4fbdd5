package journal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leaderless is how long a stream may have no leader before a user who leaves
// JetStream alone takes it for missing. Servers elect one within ten seconds.
const leaderless = 30 * time.Second

// unanswered records when publishes began to get no answer. A user who leaves
// JetStream alone keeps one.
type unanswered struct {
	mu          sync.Mutex
	first, last time.Time
}

// since records an unanswered request at now and returns the time of the first one
// of its series. A series ends when none is recorded for leaderless.
func (u *unanswered) since(now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.last) > leaderless {
		u.first = now
	}
	u.last = now
	return u.first
}

// whyNoStream tells a stream that is not there, which is final, from one that
// has no leader just now, which err stands for.
func (j *Journal) whyNoStream(ctx context.Context, stream string, err error) error {
	if j.unanswered != nil {
		if now := time.Now(); now.Sub(j.unanswered.since(now)) > leaderless {
			return jetstream.ErrStreamNotFound
		}
		return err
	}
	if _, missing := j.conn.JS.Stream(ctx, stream); errors.Is(missing, jetstream.ErrStreamNotFound) {
		return missing
	}
	return err
}
