package bench

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/subjects"
)

// Headers of an atomic batch.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

const (
	batchLeast   = 8    // smaller groups are not worth a batch's staging
	batchMax     = 1000 // the server's limit
	singlesMax   = 4000 // outstanding at a time; a server buffers 10,000
	answerWithin = 30 * time.Second
)

// message is a message to store.
type message struct {
	subject string
	id      string // Nats-Msg-Id; "": none
	due     string // of a schedule: the subject under which it fires; "": not a schedule
	fenced  bool   // the subject must be empty
	msgpack bool
	data    []byte
	stored  func() // called once it is stored; must not block
}

// committer stores messages in one stream, in groups: messages that wait while a
// group is being stored form the next one. It never waits to fill a group.
type committer struct {
	nc      *nats.Conn
	grouped bool // store atomic batches; else single publishes without waiting
	fail    func(error)
	inbox   string
	sub     *nats.Subscription
	wake    chan struct{} // of capacity 1
	free    chan struct{} // of capacity 1: an acknowledgement arrived
	ended   chan struct{}
	done    sync.WaitGroup

	mu      sync.Mutex
	waiting []message
	open    map[uint64]func() // by the number in the reply subject
	number  uint64
}

// newCommitter returns a committer that runs until close. If a message is not
// stored it calls fail, from any goroutine, and ends.
func newCommitter(nc *nats.Conn, grouped bool, fail func(error)) (*committer, error) {
	c := &committer{
		nc: nc, grouped: grouped, fail: fail, inbox: nc.NewInbox(), wake: make(chan struct{}, 1), free: make(chan struct{}, 1),
		ended: make(chan struct{}), open: make(map[uint64]func()),
	}
	var err error
	if c.sub, err = nc.Subscribe(c.inbox+".*", c.answer); err != nil {
		return nil, err
	}
	c.done.Go(c.run)
	return c, nil
}

// put queues messages and returns at once. The runs in flight bound the queue.
func (c *committer) put(messages ...message) {
	if len(messages) == 0 {
		return
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, messages...)
	c.mu.Unlock()
	signal(c.wake)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *committer) close() {
	close(c.ended)
	c.done.Wait()
	_ = c.sub.Unsubscribe() // fails on a closed connection only
}

func (c *committer) run() {
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return
		}
		for {
			c.yield()
			group := c.take()
			if len(group) == 0 {
				break
			}
			var err error
			if c.grouped && len(group) >= batchLeast {
				err = c.batch(group)
			} else {
				err = c.singles(group)
			}
			if err == nil && c.grouped {
				err = c.wait(0)
			}
			if err != nil {
				c.fail(err)
				return
			}
		}
	}
}

// yieldRounds is the number of yields before a batch, as in Refold.
const yieldRounds = 12

// yield yields to runnable goroutines, so that their messages join this
// batch.
func (c *committer) yield() {
	for range yieldRounds {
		if c.grouped {
			runtime.Gosched()
		}
	}
}

func (c *committer) take() []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	group := c.waiting[:min(len(c.waiting), batchMax)]
	c.waiting = c.waiting[len(group):]
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
	return group
}

// batch sends a group as one atomic batch.
func (c *committer) batch(group []message) error {
	id := nuid.Next()
	for i, m := range group {
		msg := m.msg()
		msg.Header[headerBatchID] = []string{id}
		msg.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		if i == len(group)-1 {
			msg.Header[headerBatchCommit] = []string{"1"}
			msg.Reply = c.expect(func() {
				for _, m := range group {
					m.stored()
				}
			})
		}
		if err := c.nc.PublishMsg(msg); err != nil {
			return err
		}
	}
	return nil
}

func (c *committer) singles(group []message) error {
	for _, m := range group {
		if err := c.wait(singlesMax); err != nil {
			return err
		}
		msg := m.msg()
		msg.Reply = c.expect(m.stored)
		if err := c.nc.PublishMsg(msg); err != nil {
			return err
		}
	}
	return nil
}

func (m message) msg() *nats.Msg {
	h := make(nats.Header, 4)
	if m.id != "" {
		h[subjects.HeaderMsgID] = []string{m.id}
	}
	if m.fenced {
		h[subjects.HeaderExpectLastSubject] = []string{"0"}
	}
	if m.due != "" {
		h[subjects.HeaderSchedule] = []string{subjects.ScheduleAt + time.Now().Add(10*time.Minute).UTC().Format(time.RFC3339)}
		h[subjects.HeaderScheduleTarget] = []string{m.due}
	}
	if m.msgpack {
		h[subjects.HeaderContentType] = []string{subjects.ContentTypeMsgpack}
	}
	return &nats.Msg{Subject: m.subject, Header: h, Data: m.data}
}

// expect registers a pending acknowledgement and returns its reply subject.
func (c *committer) expect(stored func()) (reply string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	c.open[c.number] = stored
	return c.inbox + "." + strconv.FormatUint(c.number, 10)
}

// wait waits until at most most acknowledgements are pending.
func (c *committer) wait(most int) error {
	for {
		c.mu.Lock()
		open := len(c.open)
		c.mu.Unlock()
		if open <= most {
			return nil
		}
		select {
		case <-c.free:
		case <-c.ended:
			return nil
		case <-time.After(answerWithin):
			return fmt.Errorf("%d publishes had no answer within %v", open, answerWithin)
		}
	}
}

// answer handles the acknowledgement of a single publish, or of a batch.
func (c *committer) answer(m *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, c.inbox+"."), 10, 64)
	if err != nil || len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) || bytes.Contains(m.Data, []byte(`"duplicate"`)) {
		c.fail(fmt.Errorf("a publish was refused: %s %s", m.Header.Get(subjects.HeaderStatus), m.Data))
		return
	}
	c.mu.Lock()
	stored := c.open[number]
	delete(c.open, number)
	c.mu.Unlock()
	if stored != nil {
		stored()
	}
	signal(c.free)
}
