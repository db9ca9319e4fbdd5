package journal

import (
	"context"
	"fmt"

	"github.com/refold/refold/internal/natsio"
)

// waiter is what one caller waits for. A thousand wait at a time, so each
// waits on one channel only: that ctx ended, or that the committer was closed, is
// told on the same one.
type waiter struct {
	ctx  context.Context
	left int           // writes without an outcome; the committer's goroutine only
	done chan struct{} // closed when it is over: none is left, or err says why that can't be told
	err  error

	// These are the committer's, under its lock.
	over bool
	at   int // its place among the open ones, from 1; 0: none
}

// watch looks after one context for all who wait with it.
type watch struct {
	waiting int // waiters that are open
	stop    func() bool
}

// waiters are the pending calls of a committer, guarded by its lock.
type waiters struct {
	open    []*waiter // in any order
	watched map[<-chan struct{}]*watch
	idle    <-chan struct{} // one that nobody waits with, kept for the next: most calls have the same context
}

// add notes that somebody waits. The lock is held.
func (c *committer) add(of *waiter) {
	c.open = append(c.open, of)
	of.at = len(c.open)
	ended := of.ctx.Done()
	if ended == nil {
		return
	}
	w := c.watched[ended]
	if w == nil {
		if c.watched == nil {
			c.watched = make(map[<-chan struct{}]*watch)
		}
		w = &watch{stop: context.AfterFunc(of.ctx, func() { c.cancel(ended) })}
		c.watched[ended] = w
	}
	w.waiting++
}

// cancel ends what is waited for with a context that has ended. What was sent of it
// gets its outcome, and nobody hears of it.
func (c *committer) cancel(ended <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, ended) // it looks after nothing any more; who comes now has a new one
	for i := len(c.open) - 1; i >= 0; i-- {
		if of := c.open[i]; of.ctx.Done() == ended && c.resolve(of, fmt.Errorf("%w: %w", ErrUnknownOutcome, of.ctx.Err())) {
			close(of.done)
		}
	}
}

// cancelAll ends all that is waited for: the committer is closed. The lock is held.
func (c *committer) cancelAll() {
	for len(c.open) > 0 {
		of := c.open[len(c.open)-1]
		c.resolve(of, natsio.ErrClosed)
		close(of.done)
	}
	for _, w := range c.watched {
		w.stop()
	}
	c.watched = nil
}

// resolve notes that a waiter is over; false if it was before. The lock is
// held, and who resolved it closes done.
func (c *committer) resolve(of *waiter, err error) bool {
	if of.over {
		return false
	}
	of.over, of.err = true, err
	if of.at == 0 {
		return true
	}
	last := c.open[len(c.open)-1]
	c.open[of.at-1], last.at = last, of.at
	c.open[len(c.open)-1] = nil
	c.open = c.open[:len(c.open)-1]
	ended := of.ctx.Done()
	w := c.watched[ended]
	if w == nil {
		return true
	}
	if w.waiting--; w.waiting == 0 && ended != c.idle {
		if other := c.watched[c.idle]; other != nil && other.waiting == 0 {
			other.stop()
			delete(c.watched, c.idle)
		}
		c.idle = ended
	}
	return true
}

// wait waits for what begin began. Its errors are those of commit.
func (c *committer) wait(of *waiter) error {
	if of == nil {
		return nil
	}
	<-of.done
	return of.err
}
