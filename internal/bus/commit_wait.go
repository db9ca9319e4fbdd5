package bus

import (
	"context"
	"fmt"
)

// commitment is what one caller waits for. A thousand wait at a time, so each
// waits on one channel only: that ctx ended, or that the committer was closed, is
// told on the same one.
type commitment struct {
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
	waiting int // commitments that are open
	stop    func() bool
}

// waiting is who waits for a committer. Its committer's lock guards it.
type waiting struct {
	open    []*commitment // in any order
	watched map[<-chan struct{}]*watch
	idle    <-chan struct{} // one that nobody waits with, kept for the next: most calls have the same context
}

// enlist notes that somebody waits. The lock is held.
func (c *committer) enlist(of *commitment) {
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
		w = &watch{stop: context.AfterFunc(of.ctx, func() { c.leave(ended) })}
		c.watched[ended] = w
	}
	w.waiting++
}

// leave ends what is waited for with a context that has ended. What was sent of it
// gets its outcome, and nobody hears of it.
func (c *committer) leave(ended <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, ended) // it looks after nothing any more; who comes now has a new one
	for i := len(c.open) - 1; i >= 0; i-- {
		if of := c.open[i]; of.ctx.Done() == ended && c.resolve(of, fmt.Errorf("%w: %w", ErrUnknownOutcome, of.ctx.Err())) {
			close(of.done)
		}
	}
}

// leaveAll ends all that is waited for: the committer is closed. The lock is held.
func (c *committer) leaveAll() {
	for len(c.open) > 0 {
		of := c.open[len(c.open)-1]
		c.resolve(of, ErrClosed)
		close(of.done)
	}
	for _, w := range c.watched {
		w.stop()
	}
	c.watched = nil
}

// resolve notes that a commitment is over; false if it was before. The lock is
// held, and who resolved it closes done.
func (c *committer) resolve(of *commitment, err error) bool {
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
func (c *committer) wait(of *commitment) error {
	if of == nil {
		return nil
	}
	<-of.done
	return of.err
}
