package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// A lane handles deliveries that a real server rarely sends. There is no server here.

// testEpoch returns an epoch that records its acks.
func testEpoch(t *testing.T) (e *epoch, acks *[]string) {
	t.Helper()
	names, err := subjects.New("")
	bustest.OK(t, err)
	conn := natsio.Unconnected(names, slog.New(slog.DiscardHandler))
	conn.NC = new(nats.Conn)
	acks = new([]string)
	l := New(conn, new(streams.Streams)).Lane(0)
	l.ttl = time.Minute
	return &epoch{
		lane: l, number: 1, next: 1, inbox: &inbox{prefix: "inbox"}, owner: make(queue, windowEventsMax), log: conn.Log,
		window: newWindow(func(reply string) { *acks = append(*acks, reply) }),
	}, acks
}

// queue is a LaneOwner with room for a window.
type queue chan Delivery

func (queue) Epoch(uint64)           {}
func (queue) Skipped(uint64, string) {}
func (q queue) Deliver(d Delivery)   { q <- d }

// checkLater calls check for a time two lives of a pin from now, and for just before.
func checkLater(e *epoch) pullEnd {
	later := time.Now().Add(2 * e.lane.ttl)
	e.checked = later.Add(-e.lane.ttl / ttlPartTick)
	return e.check(context.Background(), later)
}

// delivery is a message as a consumer delivers it.
func delivery(seq, consumerSeq uint64) *nats.Msg {
	return &nats.Msg{
		Subject: "refold.0.in.s", Sub: &nats.Subscription{}, Data: []byte("x"),
		Reply: fmt.Sprintf("$JS.ACK.REFOLD_LOG.l0.1.%d.%d.1700000000000000000.0", seq, consumerSeq),
	}
}

func TestEpochAcceptsEventsInOrder(t *testing.T) {
	t.Parallel()
	sid := "s"
	for i := 0; subjects.Partition(sid) != 0; i++ {
		sid = fmt.Sprint("s", i)
	}
	for _, test := range []struct {
		name  string
		msgs  [][2]uint64 // stream sequence, consumer sequence
		acked int         // how many are acked before the last comes
		end   pullEnd
		taken []uint64
	}{
		{"in order", [][2]uint64{{6, 1}, {9, 2}}, 0, pullRuns, []uint64{6, 9}},
		{"does not begin at 1", [][2]uint64{{6, 2}}, 0, pullReset, nil},
		{"a gap", [][2]uint64{{6, 1}, {9, 3}}, 0, pullReset, []uint64{6}},
		{"begins again", [][2]uint64{{6, 1}, {7, 2}, {6, 1}}, 0, pullReset, []uint64{6, 7}},
		{"held, again", [][2]uint64{{6, 1}, {9, 2}, {6, 3}, {9, 4}}, 0, pullRuns, []uint64{6, 9}},
		{"acked, again", [][2]uint64{{6, 1}, {9, 2}, {6, 3}}, 1, pullReset, []uint64{6, 9}},
		{"held behind an acked one, again", [][2]uint64{{6, 1}, {9, 2}, {9, 3}}, 1, pullRuns, []uint64{6, 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, _ := testEpoch(t)
			end := pullRuns
			var taken []Delivery
			for i, m := range test.msgs {
				if i == len(test.msgs)-1 {
					for _, d := range taken[:test.acked] {
						d.Ack()
					}
				}
				msg := delivery(m[0], m[1])
				msg.Subject = "refold.0.in." + sid
				end = e.receive(msg)
				for queue := e.owner.(queue); len(queue) > 0; {
					taken = append(taken, <-queue)
				}
			}
			if end != test.end {
				t.Errorf("got end %q, want %q", end, test.end)
			}
			var seqs []uint64
			for _, d := range taken {
				seqs = append(seqs, d.Event.Seq)
			}
			if !slices.Equal(seqs, test.taken) {
				t.Errorf("got %v taken, want %v", seqs, test.taken)
			}
		})
	}
}

// The server's count of deliveries differs from ours. For a moment that is because of
// its quorum, for longer it is a loss.
func TestLastingMismatchResetsTheLane(t *testing.T) {
	t.Parallel()
	heartbeat := func(last uint64) *nats.Msg {
		return &nats.Msg{Subject: "inbox.1", Header: nats.Header{
			subjects.HeaderStatus: {statusHeartbeat}, natsio.HeaderLastConsumer: {fmt.Sprint(last)},
		}}
	}
	e, _ := testEpoch(t)
	later := func() pullEnd { return checkLater(e) }
	e.receive(delivery(6, 1))
	e.receive(heartbeat(1))
	if got := later(); got != pullRuns {
		t.Errorf("the same count: got %q, want none", got)
	}
	e.receive(heartbeat(2))
	if got := e.check(context.Background(), time.Now()); got != pullRuns {
		t.Errorf("another count, just now: got %q, want none", got)
	}
	e.receive(delivery(7, 2))
	if got := later(); got != pullRuns {
		t.Errorf("what it counted has come: got %q, want none", got)
	}
	e.receive(heartbeat(3))
	if got := later(); got != pullReset {
		t.Errorf("another count, for long: got %q, want %q", got, pullReset)
	}
}

// A refused request means that this process is not the owner any more.
func TestRefusedRequestEndsTheEpoch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		request    uint64 // 2 is to fill the window, 3 keeps the pin
		code, text string
		want       pullEnd
		open       bool // the request that fills the window is open still
	}{
		{2, "408", "Request Timeout", pullRuns, false},
		{3, "408", "Request Timeout", pullRuns, true},
		{2, "409", "Message Size Exceeds MaxBytes", pullRuns, false},
		{2, "409", "Batch Completed", pullRuns, false},
		{2, "409", "Leadership Change", pullLost, false},
		{2, "409", "Consumer Deleted", pullLost, false},
		{2, "503", "", pullLost, false},
		{1, "409", "Leadership Change", pullRuns, true},
		{2, "423", "Nats-Wrong-Pin-Id", pullLost, true},
		{3, "423", "Nats-Pin-Id mismatch", pullLost, true},
	} {
		t.Run(fmt.Sprint(test.request, test.code, test.text), func(t *testing.T) {
			t.Parallel()
			e, _ := testEpoch(t)
			e.sent, e.filling, e.asked = 3, 2, 10
			got := e.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", test.request), Header: nats.Header{
				subjects.HeaderStatus: {test.code}, subjects.HeaderDescription: {test.text},
			}})
			if got != test.want {
				t.Errorf("got end %q, want %q", got, test.want)
			}
			if got := e.filling != 0; got != test.open {
				t.Errorf("got open %t, want %t", got, test.open)
			}
		})
	}
}

// A request without an answer is lost, and no other is sent while it is open.
func TestUnansweredRequestResetsTheLane(t *testing.T) {
	t.Parallel()
	e, _ := testEpoch(t)
	e.sent, e.filling, e.asked, e.filled = 1, 1, 10, time.Now()
	if got := e.check(context.Background(), time.Now()); got != pullRuns {
		t.Errorf("an open request: got %q, want none", got)
	}
	if got := checkLater(e); got != pullReset {
		t.Errorf("a request without an answer: got %q, want %q", got, pullReset)
	}
	e.receive(&nats.Msg{Subject: "inbox.1", Header: nats.Header{subjects.HeaderStatus: {statusTimeout}}})
	if got := checkLater(e); got != pullRuns {
		t.Errorf("an answered request: got %q, want none", got)
	}
}

// The server reported pending events at the reset, and none arrives.
func TestMissingFirstEventResetsTheLane(t *testing.T) {
	t.Parallel()
	e, _ := testEpoch(t)
	e.begun = time.Now()
	if got := checkLater(e); got != pullRuns {
		t.Errorf("nothing is to come: got %q, want none", got)
	}
	e.hasPending = true
	if got := e.check(context.Background(), time.Now()); got != pullRuns {
		t.Errorf("just begun: got %q, want none", got)
	}
	if got := checkLater(e); got != pullReset {
		t.Errorf("it did not come: got %q, want %q", got, pullReset)
	}
	e.receive(delivery(6, 1))
	if got := checkLater(e); got != pullRuns {
		t.Errorf("it came: got %q, want none", got)
	}
}

// A process that was suspended ignores the messages that it missed: another process may
// own the lane, and a reset would disturb it.
func TestSuspendedEpochDoesNotReset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		lack func(e *epoch, now time.Time)
	}{
		{"a request without an answer", func(e *epoch, now time.Time) { e.sent, e.filling, e.asked, e.filled = 1, 1, 10, now }},
		{"the first event did not come", func(e *epoch, now time.Time) { e.begun, e.hasPending = now, true }},
		{"another count of deliveries", func(e *epoch, now time.Time) { e.next, e.mismatchSince = 2, now }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, _ := testEpoch(t)
			now := time.Now()
			test.lack(e, now)
			e.check(context.Background(), now)
			now = now.Add(2 * e.lane.ttl)
			if got := e.check(context.Background(), now); got != pullRuns {
				t.Errorf("first check after it stood still: got %q, want none", got)
			}
			var got pullEnd
			for range 2 * ttlPartTick {
				if now = now.Add(e.lane.ttl / ttlPartTick); got == pullRuns {
					got = e.check(context.Background(), now)
				}
			}
			if got != pullReset {
				t.Errorf("it still did not come, for the life of a pin: got %q, want %q", got, pullReset)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	var acks []string
	w := newWindow(func(reply string) { acks = append(acks, reply) })
	for i := range uint64(5) {
		reply := fmt.Sprint("r", i)
		if got := w.add(heldEvent{seq: 10 * (i + 1), reply: reply, bytes: 100}); got != i {
			t.Fatalf("event %d got number %d", i, got)
		}
	}
	step := func(number uint64, want ...string) {
		t.Helper()
		acks = nil
		w.done(number)
		if !slices.Equal(acks, want) {
			t.Errorf("done %d: acked %v, want %v", number, acks, want)
		}
	}
	step(1)
	step(2)
	step(0, "r0", "r1", "r2")
	step(0)
	for seq, want := range map[uint64]bool{10: false, 30: false, 40: true, 45: false, 50: true, 60: false} {
		if got := w.holds(seq); got != want {
			t.Errorf("holds %d: got %t, want %t", seq, got, want)
		}
	}
	if events, bytes := w.room(); events != windowEventsMax-2 || bytes != windowBytesMax-200 {
		t.Errorf("got room for %d events, %d bytes with 2 events of 100 bytes held", events, bytes)
	}
	w.take(3)
	if w.settled() {
		t.Error("settled with an event in the owner's hands")
	}
	step(3, "r3")
	if !w.settled() {
		t.Error("not settled, though what the owner got is acked")
	}
	w.close()
	if w.take(4) {
		t.Error("an event was taken after close")
	}
	if got := w.end(); got != "r3" {
		t.Errorf("the last ack was %q, want r3", got)
	}
	step(4)
}

// otherConnection is a server whose client reconnects when the test says.
type otherConnection struct {
	LaneServer
	made  uint64
	acked []string
}

func (s *otherConnection) Reconnects() uint64 { return s.made }

func (s *otherConnection) Ack(reply string) error {
	s.acked = append(s.acked, reply)
	return nil
}

// A delivery of one connection is not acked over the next one.
func TestEpochAcksOverItsConnectionOnly(t *testing.T) {
	t.Parallel()
	e, _ := testEpoch(t)
	server := &otherConnection{}
	e.lane.server, e.window = server, newWindow(e.ack)
	for i, seq := range []uint64{6, 9} {
		m := delivery(seq, uint64(i+1))
		m.Subject = fmt.Sprintf("refold.%d.in.s", subjects.Partition("s"))
		e.receive(m)
	}
	received(t, e.owner.(queue)).Ack()
	server.made++
	received(t, e.owner.(queue)).Ack()
	if want := []string{delivery(6, 1).Reply}; !slices.Equal(server.acked, want) {
		t.Errorf("acked %q, want %q", server.acked, want)
	}
}
