package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// slowReset is a server whose resets take longer than it keeps a pin without requests.
type slowReset struct {
	LaneServer // of which a lane that waits for its turn needs nothing else
	takes      time.Duration

	mu       sync.Mutex
	resets   int       // under way
	most     int       // of them at a time
	kept     time.Time // the last request with the pin
	gap      time.Duration
	wrongPin bool
	answers  chan *nats.Msg
}

const slowPin = "pin"

func (s *slowReset) Reset(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	s.resets++
	s.most = max(s.most, s.resets)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.resets--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(s.takes):
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *slowReset) Listen(int) (string, <-chan *nats.Msg, func(), error) {
	return "inbox", s.answers, func() {}, nil
}

func (s *slowReset) Pull(reply string, r PullRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Pin != slowPin || r.Expires != time.Nanosecond {
		return errors.New("no request that keeps a pin and brings nothing")
	}
	now := time.Now()
	s.gap, s.kept = max(s.gap, now.Sub(s.kept)), now
	if s.wrongPin {
		s.answers <- &nats.Msg{Subject: reply, Header: nats.Header{subjects.HeaderStatus: {statusWrongPin}}}
	}
	return nil
}

// slowLanes returns lanes of one process, each with such a server.
func slowLanes(n int, ttl, takes time.Duration) (lanes []*Lane, servers []*slowReset) {
	s := New(natsio.Unconnected(subjects.Names{}, slog.New(slog.DiscardHandler)), new(streams.Streams))
	for i := range n {
		server := &slowReset{takes: takes, kept: time.Now(), answers: make(chan *nats.Msg, 8)}
		l := s.Lane(i)
		l.server, l.ttl = server, ttl
		lanes, servers = append(lanes, l), append(servers, server)
	}
	return lanes, servers
}

// A process takes eight lanes at once, and each reset takes most of the time that a pin
// lasts. The lanes are reset one after another, and no pin expires meanwhile.
func TestLanesAreResetInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl, takes = 2 * time.Second, 1200 * time.Millisecond
		lanes, servers := slowLanes(8, ttl, takes)
		begun := time.Now()
		var resetting sync.WaitGroup
		for i, l := range lanes {
			resetting.Go(func() {
				if pending, err := l.resetInTurn(t.Context(), slowPin); err != nil || pending != 1 {
					t.Errorf("lane %d: got %d %v, want 1", i, pending, err)
				}
				if s := servers[i]; time.Since(s.kept) >= ttl || s.gap >= ttl {
					t.Errorf("lane %d: its pin was kept %v ago, and for %v nothing was said", i, time.Since(s.kept), s.gap)
				}
			})
		}
		resetting.Wait()
		if got, want := time.Since(begun), 8*takes; got != want {
			t.Errorf("it took %v, want %v: one after the other", got, want)
		}
	})
}

// A process that has lost the pin, or whose context has ended, does not reset the lane,
// since that would disturb the next owner.
func TestLaneWithLostPinIsNotReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lanes, servers := slowLanes(3, 2*time.Second, time.Hour)
		servers[1].wrongPin = true
		lanes[0].resetMu <- struct{}{}
		if _, err := lanes[1].resetInTurn(t.Context(), slowPin); !errors.Is(err, errPinLost) {
			t.Errorf("got %v, want %v", err, errPinLost)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lanes[2].resetInTurn(ctx, slowPin); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of its context", err)
		}
		for i, s := range servers {
			if s.most != 0 {
				t.Errorf("lane %d was reset", i)
			}
		}
	})
}
