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
	// commitWritesMax and commitBytesMax bound what a committer holds, sent or
	// not.
	commitWritesMax = 8192
	commitBytesMax  = 64 << 20
	// batchLeast is from how many messages on an atomic batch pays (measured:
	// a batch of 8 costs one sync and a staging, 8 publishes cost 8 syncs).
	batchLeast = 8
	// batchMost and batchBytesMost bound one batch. The server takes 1,000
	// messages.
	batchMost      = 1000
	batchBytesMost = 8 << 20
	// checkedBytes is from how many bytes on the server's limit is looked at:
	// that waits for the connection, and most writes are small. The connection
	// refuses what is too large even so.
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
	subject     string
	data        []byte
	id          string // Nats-Msg-Id; empty: none
	msgpack     bool   // what data is, for who reads it
	traceParent string // header; empty: none
	fenced      bool   // its subject has no message, or that at after as its last: a conflict is compared
	after       uint64
	schedule    string      // when it comes back, as a message of target; empty: it is no schedule
	target      string      // subject of that message
	headers     [][2]string // besides those that the fields above make; at most headersOwn
	awaited     bool        // somebody waits for it: it goes out before the committer's gap is over
	order       string      // those of one order are stored in order, one after another; empty: any order

	of       *waiter
	rejected int  // batches with it that were rejected
	unread   int  // how often its name was taken and held nothing that can be read
	alone    bool // goes out in no batch any more

	seq       uint64 // where it is stored
	duplicate bool   // another message with its id was stored before
	existing  []byte // what the subject of a fenced one holds; nil: its own data
	err       error
}

// bytes is what a write counts for.
func (w *write) bytes() int { return len(w.data) + len(w.subject) + 256 }

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

	mu sync.Mutex
	waiters
	queue       []*write
	writes      int // queued or sent
	size        int // their bytes
	started     bool
	closed      bool
	awaitingAck bool          // nothing is sent before answers come, and then the queue is looked at: work need not be told
	work        chan struct{} // something is queued
	room        chan struct{} // closed when there is room again; nil: nobody waits for some
	end         chan struct{} // closed by close
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
// it returns nil.
func (c *committer) begin(ctx context.Context, writes []*write) (*waiter, error) {
	if len(writes) == 0 {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	of := &waiter{ctx: ctx, left: len(writes), done: make(chan struct{})}
	size := 0
	for _, w := range writes {
		w.of = of
		size += w.bytes()
	}
	if err := c.enqueue(of, writes, size); err != nil {
		return nil, err
	}
	return of, nil
}

// enqueue waits for room and queues. A slice larger than all room goes in when
// nothing else is held.
func (c *committer) enqueue(of *waiter, writes []*write, size int) error {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return natsio.ErrClosed
		case c.writes == 0, c.writes+len(writes) <= commitWritesMax && c.size+size <= commitBytesMax:
			c.add(of)
			c.queue = append(c.queue, writes...)
			c.writes += len(writes)
			c.size += size
			if !c.started {
				c.started = true
				go c.run()
			}
			awaitingAck := c.awaitingAck
			c.mu.Unlock()
			if awaitingAck {
				return nil
			}
			select {
			case c.work <- struct{}{}:
			default:
			}
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-of.ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnknownOutcome, of.ctx.Err())
		}
	}
}

// close ends the committer; what waits in it ends with ErrClosed.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.end)
		c.cancelAll()
		c.tellRoom()
	}
}

// tellRoom wakes who waits for room. The lock is held.
func (c *committer) tellRoom() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// check refuses a payload that is over limit, or over what the server takes.
func (j *Journal) check(w *write, limit int) error {
	if len(w.data) > limit {
		return &natsio.MaxPayloadError{Subject: w.subject, Bytes: len(w.data), Limit: limit}
	}
	if len(w.data) <= checkedBytes {
		return nil
	}
	if most := int(j.conn.NC.MaxPayload()); len(w.data) > most {
		return &natsio.MaxPayloadError{Subject: w.subject, Bytes: len(w.data), Limit: most}
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
