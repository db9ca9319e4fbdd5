package client

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
)

// A reader of one session looks for more events when a notice or a progress of the
// session is heard, and when this client publishes one. Some events are told by neither,
// such as a pause, and messages may be lost: so it also looks after pollMin, and then
// less often, down to each pollMax. A look costs the server one lookup.
const (
	pollMin = 50 * time.Millisecond
	pollMax = time.Second
)

// Events yields a session's events (those of all sessions if sid is empty) from a
// sequence of the log on, and then new ones as they arrive, until ctx ends or the
// reader stops; when ctx ends, it yields the error of ctx last. It goes on after a lost
// connection.
//
// One session is read without a consumer, by any user who may read the log and hear
// notices. All sessions need the rights of an operator.
func (c *Client) Events(ctx context.Context, sid string, from uint64) iter.Seq2[session.Event, error] {
	if sid == "" {
		return c.bus.FollowEvents(ctx, from)
	}
	return func(yield func(session.Event, error) bool) {
		if err := c.followEvents(ctx, sid, max(from, 1), func(e session.Event) bool { return yield(e, nil) }); err != nil {
			yield(session.Event{}, err)
		}
	}
}

// followEvents calls each with the events of a session until it returns false.
func (c *Client) followEvents(ctx context.Context, sid string, next uint64, each func(session.Event) bool) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	n := &news{came: make(chan struct{}, 1)}
	defer c.listen(sid, n)()
	notice := func(payload []byte) {
		for _, of := range noticesIn(sid, payload) {
			n.put(of.Seq)
		}
	}
	if err := c.bus.FollowSession(inner, sid, func() { n.put(0) }, notice, nil); err != nil {
		return fmt.Errorf("follow the events of %s: %w", sid, err)
	}
	wait := pollMin
	read := func(leader bool) (more bool, err error) {
		for e, err := range c.bus.ReadSession(ctx, sid, next, 0, leader) {
			if err != nil {
				return false, err
			}
			next, wait = e.Seq+1, pollMin
			if !each(e) {
				return false, nil
			}
		}
		return true, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for leader := true; ; leader = false {
		more, err := read(leader)
		if more && err == nil && next <= n.seq.Load() {
			more, err = read(true) // the replica that answered lags
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("follow the events of %s: %w", sid, err)
		case !more:
			return nil
		}
		timer.Reset(wait)
		select {
		case <-n.came:
			wait = pollMin
		case <-timer.C:
			wait = min(2*wait, pollMax)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// news tells a reader that the log has more of its session.
type news struct {
	came chan struct{} // holds one if there may be more
	seq  atomic.Uint64 // of the newest event that was heard of
}

// put tells of the event at seq; 0: of any.
func (n *news) put(seq uint64) {
	for was := n.seq.Load(); was < seq && !n.seq.CompareAndSwap(was, seq); was = n.seq.Load() {
	}
	select {
	case n.came <- struct{}{}:
	default:
	}
}

// listen tells n of the events of a session that this client publishes, until stop is
// called.
func (c *Client) listen(sid string, n *news) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers[sid] == nil {
		c.readers[sid] = map[*news]bool{}
	}
	c.readers[sid][n] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.readers[sid], n); len(c.readers[sid]) == 0 {
			delete(c.readers, sid)
		}
	}
}

// published tells the readers of a session of an event.
func (c *Client) published(sid string, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.readers[sid] {
		n.put(seq)
	}
}
