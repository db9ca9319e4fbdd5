package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// Limits of a committer. What does not fit waits in the caller.
const (
	// roomBytes bounds what a committer holds, sent or not. Each write takes
	// writeRoomBytes of it and its data.
	roomBytes      = 64 << 20
	writeRoomBytes = roomBytes / writesMax
	writesMax      = 8192
	// batchLeast is from how many messages on an atomic batch pays (measured:
	// a batch of 8 costs one sync and a staging, 8 publishes cost 8 syncs).
	batchLeast = 8
	// batchMost and batchBytesMost bound one batch. The server takes 1,000
	// messages.
	batchMost      = 1000
	batchBytesMost = 8 << 20
	// checkedBytes is from how many bytes on the server's limit is compared: reading
	// the limit waits for the connection, and most writes are small. The connection
	// refuses a message that is too large anyway.
	checkedBytes = 4 << 10
	// wakesGap is from one group of wakes to the next at least, unless somebody waits
	// for a wake. Else only acknowledgements wait, and each group costs the server
	// 2.5 ms, whatever it holds.
	wakesGap = 100 * time.Millisecond
	// rejectedMax is how often a message goes out in a batch that is rejected
	// before it goes out alone.
	rejectedMax = 3
	// unreadMax is how often a name may be taken, and hold nothing that can be
	// read, until its write fails.
	unreadMax = 3
)

// write is one message to be stored. It belongs to the committer until its
// waiter is done.
type write struct {
	subject string
	data    []byte
	fenced  bool // its subject has no message, or that at after as its last: a conflict is compared
	after   uint64
	headers []string // names and values in turn, besides the fence
	awaited bool     // somebody waits for it: it goes out before the committer's gap is over
	order   string   // those of one order are stored in order, one after another; empty: any order

	of       *waiter
	rejected int  // batches with it that were rejected
	unread   int  // how often its name was taken and held nothing that can be read
	alone    bool // goes out in no batch any more

	seq       uint64 // where it is stored
	duplicate bool   // another message with its id was stored before
	existing  []byte // what the subject of a fenced one holds; nil: its own data
	err       error
}

// known reports whether a write has an outcome.
func (w *write) known() bool { return w.err != nil || w.seq > 0 }

// bytes is what a write counts for in a batch.
func (w *write) bytes() int { return len(w.data) + len(w.subject) + 256 }

// waiter is one call that waits for the outcome of its writes.
type waiter struct {
	ctx  context.Context
	room int           // what its writes take of the committer's
	left int           // writes without an outcome; the committer's goroutine only
	done chan struct{} // closed when none is left
}

// unknown returns the error of a call whose context has ended.
func (of *waiter) unknown() error { return fmt.Errorf("%w: %w", ErrUnknownOutcome, of.ctx.Err()) }

// committer stores messages of one stream, in groups: what waits while a group
// is under way goes out as the next one. Where the server syncs each message,
// a group is one atomic batch, so one sync; else it is single messages that
// wait for one another in nothing. One goroutine sends and hears (commit_loop.go).
type committer struct {
	journal *Journal
	stream  string
	pace    pace          // of its goroutine, once that runs
	fast    atomic.Bool   // pace has judged that single messages need no groups
	gap     time.Duration // from one group to the next at least; 0: none
	like    *committer    // with a gap: the committer of the same server whose judgement counts here too

	mu      sync.Mutex
	queue   []*write
	held    int // room that is taken
	started bool
	closed  bool
	room    chan struct{} // closed when some is given back; nil: nobody waits for that

	work chan struct{} // of capacity 1: something is queued
	end  chan struct{} // closed by close
}

func newCommitter(j *Journal, stream string) *committer {
	return &committer{journal: j, stream: stream, work: make(chan struct{}, 1), end: make(chan struct{})}
}

// commit stores writes and returns when each has its outcome, in its fields.
// An error means that none can be told: ctx ended (ErrUnknownOutcome) or the
// connection was closed (ErrClosed); the writes must not be looked at then.
func (c *committer) commit(ctx context.Context, writes []*write) error {
	of, err := c.begin(ctx, writes)
	if err != nil {
		return err
	}
	return c.wait(of)
}

// begin queues writes, when there is room, for wait to wait for. Without any
// it returns nil. More than all room goes in when nothing else is held.
func (c *committer) begin(ctx context.Context, writes []*write) (*waiter, error) {
	if len(writes) == 0 {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	of := &waiter{ctx: ctx, left: len(writes), done: make(chan struct{})}
	for _, w := range writes {
		w.of = of
		of.room += writeRoomBytes + len(w.data)
	}
	for {
		full, err := c.enqueue(of, writes)
		if full == nil {
			return of, err
		}
		select {
		case <-full:
		case <-ctx.Done():
			return nil, of.unknown()
		}
	}
}

// enqueue queues writes. If there is no room it returns a channel that is closed
// when some is given back, or when the committer is closed.
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
	select {
	case c.work <- struct{}{}:
	default:
	}
	return nil, nil //nolint:nilnil // there was room
}

// giveBack gives back the room of a call whose writes have their outcomes.
func (c *committer) giveBack(of *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= of.room
	c.tellRoom()
}

// tellRoom wakes the callers that wait for room. The lock is held.
func (c *committer) tellRoom() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// wait waits for what begin began. Its errors are those of commit.
func (c *committer) wait(of *waiter) error {
	if of == nil {
		return nil
	}
	select {
	case <-of.done:
		return nil
	case <-of.ctx.Done():
		return of.unknown()
	case <-c.end:
		return natsio.ErrClosed
	}
}

// close ends the committer; what waits in it ends with ErrClosed.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.end)
		c.tellRoom()
	}
}

// check refuses a payload that is over limit, or over what the server takes.
func (j *Journal) check(w *write, limit int) error {
	if len(w.data) > checkedBytes {
		limit = min(limit, int(j.conn.NC.MaxPayload()))
	}
	if len(w.data) > limit {
		return &natsio.MaxPayloadError{Subject: w.subject, Bytes: len(w.data), Limit: limit}
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

// errOrder says that a write was not tried, since one before it failed.
var errOrder = errors.New("not tried: what comes before it is not stored")
