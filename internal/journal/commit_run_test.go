package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// A running committer from the inside: its room, and its reaction to a stream that
// answers as no real server can be made to.

func testJournal(t *testing.T, node *bustest.Node, mode natsio.Durability) (*Journal, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	o := natsio.Options{URL: node.URL(), Durability: mode}
	conn, err := natsio.Connect(ctx, o)
	bustest.OK(t, err)
	t.Cleanup(conn.Close)
	s, err := streams.New(ctx, conn, o)
	bustest.OK(t, err)
	j := New(conn, s, false)
	t.Cleanup(j.Close)
	j.Groups(mode == natsio.DurabilityAlways)
	return j, ctx
}

func provisionTest(t *testing.T, ctx context.Context, j *Journal) {
	t.Helper()
	conf, err := streams.ParseConf(streams.File, j.names)
	bustest.OK(t, err)
	bustest.OK(t, j.streams.Provision(ctx, conf, 1))
}

// noticeWrites returns the notices of a session from from to to.
func noticeWrites(t *testing.T, j *Journal, sid string, from, to int) []*write {
	t.Helper()
	var all []*write
	for n := from; n <= to; n++ {
		w, err := j.writeOf(&Output{Session: sid, Notice: fmt.Append(nil, n), N: uint64(n)})
		bustest.OK(t, err)
		all = append(all, w)
	}
	return all
}

// taken returns how much room is in use.
func (c *committer) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// settled waits until all calls except these have their outcomes.
func (c *committer) settled(t *testing.T, but ...*waiter) {
	t.Helper()
	room := 0
	for _, of := range but {
		room += of.room
	}
	bustest.Until(t, fmt.Sprintf("all but %d calls have an outcome", len(but)), func() bool { return c.taken() == room })
}

// A call that waits for an earlier one of its session gives up. No other call is
// affected.
func TestCommitterDropsWritesOfEndedCalls(t *testing.T) {
	t.Parallel()
	for _, mode := range []natsio.Durability{natsio.DurabilityAlways, natsio.DurabilityUnknown} {
		node := bustest.Server(t)
		j, ctx := testJournal(t, node, mode)
		provisionTest(t, ctx, j)
		node.Stop()
		ended, end := context.WithCancel(ctx)
		var waiting []*waiter
		begin := func(ctx context.Context, writes []*write) []*write {
			of, err := j.notices.begin(ctx, writes)
			bustest.OK(t, err)
			waiting = append(waiting, of)
			return writes
		}
		first := begin(ctx, noticeWrites(t, j, "s1", 1, 1))
		lost := begin(ended, noticeWrites(t, j, "s1", 2, 6))
		other := begin(ctx, noticeWrites(t, j, "s2", 1, 3))
		last := begin(ctx, noticeWrites(t, j, "s1", 7, 9))
		end()
		err := j.notices.wait(waiting[1])
		if err == nil { // the committer came to drop them before the context's end was told
			err = lost[0].err
		}
		if !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("got %v, want ErrUnknownOutcome", err)
		}
		if mode == natsio.DurabilityUnknown {
			// Behind the first, which is in the air: its room is free while the server is away.
			j.notices.settled(t, waiting[0], waiting[2], waiting[3])
		}
		node.Start()
		for i, of := range waiting {
			if err := j.notices.wait(of); err != nil && i != 1 {
				t.Errorf("call %d: %v", i, err)
			}
		}
		j.notices.settled(t) // those that nobody waits for have an end, too
		for _, w := range slices.Concat(first, other, last) {
			if w.err != nil || w.seq == 0 {
				t.Errorf("%s %s: got %d %v, want it stored", w.subject, w.data, w.seq, w.err)
			}
		}
		for _, w := range lost {
			if w.err != nil && !errors.Is(w.err, ErrUnknownOutcome) {
				t.Errorf("%s %s: got %v, want ErrUnknownOutcome", w.subject, w.data, w.err)
			}
		}
		j.Close()
	}
}

// A committer holds no more than its room; a caller with more writes waits.
func TestCommitterHoldsNoMoreThanItsRoom(t *testing.T) {
	t.Parallel()
	for _, mode := range []natsio.Durability{natsio.DurabilityAlways, natsio.DurabilityUnknown} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t, func(o *server.Options) { o.SyncAlways = false }) // it is about numbers
			j, ctx := testJournal(t, node, mode)
			provisionTest(t, ctx, j)
			node.Stop()
			var many []*write
			const sessions = 2048
			for i := range sessions {
				many = append(many, noticeWrites(t, j, fmt.Sprint("s", i), 1, writesMax/sessions)...)
			}
			begun, err := j.notices.begin(ctx, many)
			bustest.OK(t, err)
			ended, end := context.WithCancel(ctx)
			end()
			if err := j.notices.commit(ended, noticeWrites(t, j, "more", 1, 1)); !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("got %v, want ErrUnknownOutcome", err)
			}
			if got := j.notices.taken(); got != begun.room {
				t.Errorf("got %d bytes of room taken, want %d", got, begun.room)
			}
			var waiting sync.WaitGroup
			for i := range 20 {
				writes := noticeWrites(t, j, fmt.Sprint("late", i), 1, 1)
				waiting.Go(func() {
					if err := j.notices.commitOne(ctx, writes[0]); err != nil {
						t.Errorf("late %d: %v", i, err)
					}
				})
			}
			node.Start()
			bustest.OK(t, j.notices.wait(begun))
			waiting.Wait()
			// More than there is ever room for goes in by itself.
			for i := range many {
				many[i] = &write{subject: many[i].subject, data: many[i].data, headers: many[i].headers, order: many[i].order}
			}
			many = append(many, noticeWrites(t, j, "larger", 1, 100)...)
			if err := j.notices.commit(ctx, many); err != nil {
				t.Fatal(err) // what they are is the committer's still
			}
			for _, w := range many {
				if w.err != nil || w.seq == 0 {
					t.Fatalf("%s %s: got %d %v", w.subject, w.data, w.seq, w.err)
				}
			}
			last, err := j.LastNotice(ctx)
			if want := uint64(writesMax + 20 + 100); err != nil || last != want {
				t.Errorf("got %d notices, %v, want %d", last, err, want)
			}
			if got := j.notices.taken(); got != 0 {
				t.Errorf("got %d bytes of room taken, want none", got)
			}
		})
	}
}

func TestClosedCommitterEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	j, ctx := testJournal(t, node, natsio.DurabilityAlways)
	c := newCommitter(j, j.names.NoticesStream())
	c.started = true
	over := make(chan struct{})
	go func() {
		c.run()
		close(over)
	}()
	done := make(chan error)
	writes := noticeWrites(t, j, "s1", 1, 1)
	node.Stop()
	go func() { done <- c.commitOne(ctx, writes[0]) }()
	c.close()
	for what, ch := range map[string]<-chan struct{}{"its goroutine": over, "the committer": c.ended.Done()} {
		select {
		case <-ch:
		case <-ctx.Done():
			t.Fatalf("%s did not end", what)
		}
	}
	if err := <-done; !errors.Is(err, natsio.ErrClosed) {
		t.Errorf("got %v, want natsio.ErrClosed", err)
	}
}

// moody replaces the stream of notices and answers at random. It stores by message ids,
// and accepts no batches.
type moody struct {
	mu     sync.Mutex
	random *rand.Rand
	seqs   map[string]int // by message id
	stored []string       // subject and payload
	tries  map[string]int
}

func (m *moody) answer(msg *nats.Msg) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := nats.NewMsg(msg.Reply)
	id := msg.Header.Get(subjects.HeaderMsgID)
	m.tries[id]++
	mood := m.random.IntN(10)
	switch {
	case msg.Reply == "":
		return
	case msg.Header.Get(subjects.HeaderBatchID) != "":
		answer.Data = []byte(refusal(natsio.CodeNoBatches))
	case m.tries[id] < 4 && mood < 2:
		answer.Data = []byte(refusal(codeUnavailable))
	case m.tries[id] < 4 && mood < 4:
		answer.Header.Set(subjects.HeaderStatus, natsio.StatusNoResponders)
	default:
		if m.seqs[id] == 0 {
			m.stored = append(m.stored, msg.Subject+" "+string(msg.Data))
			m.seqs[id] = len(m.stored)
		}
		answer.Data = fmt.Appendf(nil, `{"stream":"REFOLD_OUT","seq":%d}`, m.seqs[id])
		if m.tries[id] < 4 && mood < 6 {
			answer.Data = []byte(refusal(codeNotLeader)) // stored all the same
		}
	}
	_ = msg.RespondMsg(answer)
}

// The notices of a session are stored in order and once, despite refusals, losses and
// unknown outcomes.
func TestCommitterKeepsNoticesInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			j, ctx := testJournal(t, node, []natsio.Durability{natsio.DurabilityUnknown, natsio.DurabilityAlways}[seed%2])
			// There is such a stream, and it does not hear what is published.
			if _, err := j.conn.JS.CreateStream(ctx, jetstream.StreamConfig{Name: j.names.NoticesStream(), Subjects: []string{"nothing"}}); err != nil {
				t.Fatal(err)
			}
			fake := &moody{random: rand.New(rand.NewPCG(seed, 1)), seqs: make(map[string]int), tries: make(map[string]int)}
			nc, err := nats.Connect(node.URL())
			bustest.OK(t, err)
			t.Cleanup(nc.Close)
			if _, err := nc.Subscribe(j.names.OutAll(), fake.answer); err != nil {
				t.Fatal(err)
			}
			bustest.OK(t, nc.Flush())
			const sessions, each = 3, 20
			var outputs []Output
			for n := range each {
				for i := range sessions {
					outputs = append(outputs, Output{Session: fmt.Sprint("s", i), Notice: fmt.Append(nil, n+1), N: uint64(n + 1)})
				}
			}
			bustest.OK(t, errors.Join(j.Store(ctx, outputs)...))
			fake.mu.Lock()
			defer fake.mu.Unlock()
			last := make(map[string]int)
			for _, text := range fake.stored {
				subject, n, _ := strings.Cut(text, " ")
				if last[subject]++; n != fmt.Sprint(last[subject]) {
					t.Fatalf("%s: got notice %s where %d is next", subject, n, last[subject])
				}
			}
			if got, want := len(fake.stored), sessions*each; got != want {
				t.Errorf("got %d stored, want %d", got, want)
			}
		})
	}
}
