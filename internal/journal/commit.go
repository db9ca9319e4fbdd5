package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// Limits of a committer. A caller whose writes don't fit waits.
const (
	// roomBytes bounds the writes without an outcome. Each takes writeRoomBytes and
	// the size of its data.
	roomBytes      = 64 << 20
	writeRoomBytes = roomBytes / writesMax
	writesMax      = 8192
	// batchLeast is the smallest atomic batch that pays (measured: a batch of 8 costs
	// one sync and a staging, 8 publishes cost 8 syncs).
	batchLeast = 8
	// batchMost and batchBytesMost bound one batch. The server takes 1,000
	// messages.
	batchMost      = 1000
	batchBytesMost = 8 << 20
	// checkedBytes is the payload size from which check compares the server's limit.
	// Reading that limit takes the connection's lock, and most writes are small. The
	// connection refuses a message that is too large anyway.
	checkedBytes = 4 << 10
	// wakesGap is the least time between two groups of wakes, unless a wake is awaited.
	// Otherwise only acknowledgements wait for wakes, and a group of any size costs the
	// server 2.5 ms.
	wakesGap = 100 * time.Millisecond
	// rejectedMax is how many rejected batches may contain a message before it is
	// sent alone.
	rejectedMax = 3
	// unreadMax is how often a name may be taken but unreadable before its write
	// fails.
	unreadMax = 3
)

// write is one message to be stored. The committer owns it until its waiter is done.
type write struct {
	subject string
	data    []byte
	fenced  bool // stored only if the last message of its subject is at sequence after (0: none); a conflict is compared
	after   uint64
	headers []string // names and values alternate; without the fence
	awaited bool     // a caller waits for it: it does not wait for the committer's gap
	order   string   // writes of one order are stored in order, one after another; empty: any order
	needs   *needed  // it is held back until these writes have their outcomes; nil: it is not

	of       *waiter
	rejected int  // rejected batches with it
	unread   int  // how often its name was taken but unreadable
	alone    bool // not sent in a batch any more

	seq       uint64 // where it is stored
	duplicate bool   // another message with its id was stored before
	existing  []byte // of a fenced write: what its subject holds; nil: its own data
	foreign   bool   // existing is of another system
	err       error
}

// known reports whether a write has an outcome.
func (w *write) known() bool { return w.err != nil || w.seq > 0 }

// bytes returns the size of a write in a batch.
func (w *write) bytes() int { return len(w.data) + len(w.subject) + 256 }

// waiter is one call that waits for the outcome of its writes.
type waiter struct {
	ctx  context.Context
	room int           // bytes of the committer's room that its writes take
	left int           // writes without an outcome; the committer's goroutine only
	done chan struct{} // closed when left is 0
	then func()        // called after that; must not block; nil: nothing is
	next *committer    // holds back writes until then; nil: none does
}

// hasEnded reports whether all writes have their outcomes.
func (of *waiter) hasEnded() bool {
	select {
	case <-of.done:
		return true
	default:
		return false
	}
}

// unknown returns the error of a call whose context has ended.
func (of *waiter) unknown() error { return fmt.Errorf("%w: %w", ErrUnknownOutcome, of.ctx.Err()) }

// committer stores messages of one stream. Writes that arrive while a group is pending
// form the next group: one atomic batch, which costs one sync. If single messages prove
// fast, it sends these, and they don't wait for each other (commit_pace.go). One
// goroutine sends and receives (commit_loop.go).
type committer struct {
	journal  *Journal
	stream   string
	pace     pace          // owned by the goroutine once it runs
	slowFrom time.Duration // the constant of this name, except in tests
	gap      time.Duration // least time between two groups; 0: none

	handling sync.Mutex     // held except while the goroutine waits
	loop     *committerLoop // state of the goroutine; nil: it has not begun

	mu      sync.Mutex
	queue   []*write
	held    int // bytes of room in use
	started bool
	closed  bool
	room    chan struct{} // closed when room is released; nil: no caller waits for room

	work  chan struct{}   // of capacity 1: queue is not empty, or writes are held back no more
	ended context.Context // ends with close
	end   func()
}

func newCommitter(j *Journal, stream string) *committer {
	c := &committer{journal: j, stream: stream, slowFrom: slowFrom, work: make(chan struct{}, 1)}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// commit stores writes and returns when each has its outcome, in its fields. After
// an error no outcome is known: ctx ended (ErrUnknownOutcome) or the committer was
// closed (ErrClosed). The caller must not read the writes then.
func (c *committer) commit(ctx context.Context, writes []*write) error {
	of, err := c.begin(ctx, writes)
	if err != nil {
		return err
	}
	return c.wait(of)
}

// begin queues writes when there is room. The caller waits for them with wait. Without
// writes it returns nil. Writes larger than all room are queued when it is unused.
func (c *committer) begin(ctx context.Context, writes []*write) (*waiter, error) {
	return c.beginBefore(ctx, writes, nil, nil)
}

// beginBefore is begin for writes that must be stored before others of next. then is
// called when all have their outcomes, if it is not nil, and if beginBefore returns a
// waiter.
func (c *committer) beginBefore(ctx context.Context, writes []*write, next *committer, then func()) (*waiter, error) {
	if len(writes) == 0 {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	of := &waiter{ctx: ctx, left: len(writes), done: make(chan struct{}), then: then, next: next}
	for _, w := range writes {
		w.of = of
		of.room += writeRoomBytes + len(w.data)
	}
	for {
		full, err := c.enqueue(of, writes)
		switch {
		case err != nil:
			return nil, err
		case full == nil:
			return of, nil
		}
		select {
		case <-full:
		case <-ctx.Done():
			return nil, of.unknown()
		}
	}
}

// enqueue queues writes. If there is no room it returns a channel that is closed when
// room is released or the committer is closed.
func (c *committer) enqueue(of *waiter, writes []*write) (full <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, natsio.ErrClosed
	case c.held > 0 && c.held+of.room > roomBytes:
		if c.room == nil {
			c.room = make(chan struct{})
		}
		return c.room, nil
	}
	c.queue = append(c.queue, writes...)
	c.held += of.room
	if !c.started {
		c.started = true
		go c.run()
	}
	c.signal()
	return nil, nil //nolint:nilnil // there was room
}

// isCrowded reports whether half of the room is in use.
func (c *committer) isCrowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held > roomBytes/2
}

// signal wakes the committer's goroutine.
func (c *committer) signal() {
	select {
	case c.work <- struct{}{}:
	default:
	}
}

// release releases the room of a call whose writes have their outcomes.
func (c *committer) release(of *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= of.room
	c.signalRoom()
}

// signalRoom wakes the callers that wait for room. The lock is held.
func (c *committer) signalRoom() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// wait waits for the writes of a begin. Its errors are those of commit.
func (c *committer) wait(of *waiter) error {
	if of == nil {
		return nil
	}
	select {
	case <-of.done:
		return nil
	case <-of.ctx.Done():
		return of.unknown()
	case <-c.ended.Done():
		return natsio.ErrClosed
	}
}

// close ends the committer. Waiting calls return ErrClosed.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.end()
		c.signalRoom()
	}
}

// check returns an error of natsio.Conn.Fits if the payload exceeds limit, or the
// server's.
func (j *Journal) check(w *write, limit int) error {
	if len(w.data) > min(limit, checkedBytes) {
		return j.conn.Fits(w.subject, len(w.data), limit)
	}
	return nil
}

// commitOne stores one write and returns its error.
func (c *committer) commitOne(ctx context.Context, w *write) error {
	if err := c.commit(ctx, []*write{w}); err != nil {
		return err
	}
	return w.err
}

// errOrder means that a write was not sent, since an earlier one of its order failed.
var errOrder = errors.New("not sent: an earlier message of the session was not stored")
