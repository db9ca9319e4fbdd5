package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// A committer handles answers that a real server rarely gives. There is no server here.

// Error codes of servers.
const (
	codeNotLeader         jetstream.ErrorCode = 10009
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeDuplicateInFlight jetstream.ErrorCode = 10158
	codeTooLarge          jetstream.ErrorCode = 10054
	codeUnavailable       jetstream.ErrorCode = 10008
)

// testLoop returns the state of a committer that does not run.
func testLoop() *committerLoop {
	return newCommitterLoop(newCommitter(&Journal{conn: natsio.Unconnected(subjects.Names{}, slog.New(slog.DiscardHandler))}, "S"))
}

// testWrites returns writes of one caller: a fenced write and a notice of one session,
// alternately.
func (s *committerLoop) testWrites(n int) []*write {
	of := &waiter{ctx: context.Background(), left: n, done: make(chan struct{})}
	var all []*write
	for i := range n {
		w := &write{subject: fmt.Sprint("name", i), of: of, fenced: i%2 == 0}
		if !w.fenced {
			w.subject, w.order = "out", "session"
		}
		all = append(all, w)
	}
	of.room, s.held = n, s.held+n
	return all
}

// sent makes writes pending.
func (s *committerLoop) sent(writes ...*write) (number uint64) {
	for _, w := range writes {
		s.occupy(w.order)
	}
	return s.add(writes...).number
}

func refusal(code jetstream.ErrorCode) string {
	return fmt.Sprintf(`{"error":{"code":400,"err_code":%d,"description":"no"},"stream":"S","seq":0}`, code)
}

func TestBatchAnswerDecidesWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, answer string
		seqs         []uint64 // nil: nothing is settled
		ready        int      // that go out again
		alone        int      // of these, alone
		noBatch      bool
		paused       bool
	}{
		{"stored", `{"stream":"S","seq":14,"batch":"b","count":4}`, []uint64{11, 12, 13, 14}, 0, 0, false, false},
		{"the first is there", "", nil, 0, 0, false, false},
		{"all slots taken", refusal(natsio.CodeBatchesOpen), nil, 4, 0, true, false},
		{"no batches", refusal(natsio.CodeNoBatches), nil, 4, 0, true, false},
		{"incomplete", refusal(10176), nil, 4, 4, false, false},
		{"stream full", refusal(codeStoreFailed), nil, 4, 4, false, false},
		// What is unknown may be stored. An id that is would spoil another batch.
		{"no leader", refusal(codeNotLeader), nil, 4, 2, false, true},
		{"in flight", refusal(codeDuplicateInFlight), nil, 4, 2, false, true},
	} {
		s := testLoop()
		writes := s.testWrites(4)
		number := s.sent(writes...)
		s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(test.answer)})
		alone := 0
		for _, w := range s.ready {
			if w.alone {
				alone++
			}
		}
		if len(s.ready) != test.ready || alone != test.alone || !s.noBatch.IsZero() != test.noBatch || !s.until.IsZero() != test.paused {
			t.Errorf("%s: got %d ready, %d alone, no batch %v, paused %v, want %+v",
				test.name, len(s.ready), alone, !s.noBatch.IsZero(), !s.until.IsZero(), test)
		}
		if len(s.ready) > 0 && !slices.Equal(s.ready, writes) {
			t.Errorf("%s: what goes out again is in another order", test.name)
		}
		for i, seq := range test.seqs {
			if w := writes[i]; w.seq != seq || w.err != nil || s.held != 0 {
				t.Errorf("%s: write %d is at %d, %v, with %d of room taken, want %d", test.name, i, w.seq, w.err, s.held, seq)
			}
		}
		// Whatever comes later about it is about nothing.
		s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number+1), Data: []byte(refusal(codeStoreFailed))})
		if test.ready > 0 {
			s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(refusal(10176))})
			if len(s.ready) != test.ready {
				t.Errorf("%s: a second answer changed something", test.name)
			}
		}
	}
}

// After a failure, no later write of its order and caller is sent; all others are.
func TestFailureSkipsLaterWritesOfItsOrder(t *testing.T) {
	t.Parallel()
	s := testLoop()
	mine, others := s.testWrites(8), s.testWrites(4)
	number := s.sent(mine[1])
	s.ready = slices.Concat(mine[2:], others)
	s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(refusal(codeTooLarge))})
	var over *natsio.MaxPayloadError
	if !errors.As(mine[1].err, &over) {
		t.Errorf("got %v, want a natsio.MaxPayloadError", mine[1].err)
	}
	for i, w := range mine[2:] {
		if failed := errors.Is(w.err, errOrder); failed == w.fenced || slices.Contains(s.ready, w) != w.fenced {
			t.Errorf("write %d: got %v, and that it goes out %v", i+2, w.err, slices.Contains(s.ready, w))
		}
	}
	if got, want := len(s.ready), 3+4; got != want {
		t.Errorf("got %d ready, want %d", got, want)
	}
	if got, want := s.held, 8+4; got != want || mine[0].of.left != 4 {
		t.Errorf("got %d of room taken and %d left of the caller's, want %d and 4", got, mine[0].of.left, want)
	}
}

// Writes without an answer are sent again, oldest first.
func TestUnansweredWritesAreSentAgainInOrder(t *testing.T) {
	t.Parallel()
	s := testLoop()
	all := s.testWrites(6)
	for i, w := range all {
		number := s.sent(w)
		if i == 3 {
			continue // this one is sent just now
		}
		s.pending.open[number].sent = time.Now().Add(-natsio.RequestTimeout)
	}
	s.retryUnanswered(natsio.RequestTimeout)
	if want := slices.Concat(all[:3], all[4:]); !slices.Equal(s.ready, want) {
		t.Errorf("got %d ready, want those that are late, in order", len(s.ready))
	}
	if s.outstanding != 1 || s.until.IsZero() {
		t.Errorf("got %d in the air, paused %v, want 1 and a pause", s.outstanding, !s.until.IsZero())
	}
	s.retryUnanswered(0) // the connection was made anew
	if len(s.ready) != 6 || s.outstanding != 0 || len(s.pending.sentBy(time.Now())) != 0 {
		t.Errorf("got %d ready and %d in the air, want 6 and none", len(s.ready), s.outstanding)
	}
}

// A reply subject is reused after a stored message. A repeated answer to that message is
// not mistaken for the answer to the next one, which is sent again with another subject.
func TestRepeatedAnswerIsIgnored(t *testing.T) {
	t.Parallel()
	for _, twice := range []string{`{"stream":"S","seq":1}`, `{"stream":"S","seq":1,"duplicate":true}`, `{"stream":"S","seq":2}`} {
		s := testLoop()
		all := s.testWrites(4)
		hear := func(number uint64, answer string) {
			s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(answer)})
		}
		first := s.sent(all[0])
		hear(first, `{"stream":"S","seq":1}`)
		if second := s.sent(all[1]); second != first {
			t.Errorf("what is sent behind one that is stored has number %d, want %d", second, first)
		}
		hear(first, `{"stream":"S","seq":2}`)
		if all[0].seq != 1 || all[1].seq != 2 || s.outstanding != 0 {
			t.Errorf("got %d and %d stored with %d in the air, want 1, 2 and none", all[0].seq, all[1].seq, s.outstanding)
		}
		third := s.sent(all[2])
		hear(third, twice)
		if all[2].seq != 0 || all[2].err != nil || s.outstanding != 0 || !s.until.IsZero() || !slices.Equal(s.ready, all[2:3]) {
			t.Errorf("%s for another: got %d, %v with %d in the air, want it to go out again at once", twice, all[2].seq, all[2].err, s.outstanding)
		}
		again := s.sent(all[2])
		if again == third {
			t.Errorf("%s for another: it is sent again under its number", twice)
		}
		hear(third, `{"stream":"S","seq":3}`)
		hear(again, `{"stream":"S","seq":1,"duplicate":true}`)
		if all[2].seq != 1 || !all[2].duplicate || s.outstanding != 0 {
			t.Errorf("got %d, duplicate %v with %d in the air, want 1, true and none", all[2].seq, all[2].duplicate, s.outstanding)
		}
		if next := s.sent(all[3]); next == again {
			t.Error("a number is used again behind a duplicate")
		}
	}
}

// A reply subject is not reused after a timeout, a refusal, or a batch.
func TestSubjectsOfFailedWritesAreNotReused(t *testing.T) {
	t.Parallel()
	s := testLoop()
	all := s.testWrites(9)
	seen := map[uint64]string{}
	number := func(what string, writes ...*write) uint64 {
		n := s.sent(writes...)
		if before, is := seen[n]; is {
			t.Errorf("what is sent behind %s has the number of %s", what, before)
		}
		seen[n] = what
		return n
	}
	s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number("nothing", all[0])), Data: []byte(refusal(codeTooLarge))})
	number("a refusal", all[2])
	s.retryUnanswered(0)
	s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number("what timed out", all[4:6]...)), Data: []byte(`{"stream":"S","seq":2,"count":2}`)})
	stored := number("a batch", all[6])
	s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", stored), Data: []byte(`{"stream":"S","seq":3}`)})
	if batch := s.sent(all[7:]...); batch == stored {
		t.Error("a batch has the number of a single message")
	}
}

// A denial fails its write, and the other writes of its batch are sent again.
func TestDenialFreesTheRestOfItsBatch(t *testing.T) {
	t.Parallel()
	s := testLoop()
	all := s.testWrites(6)
	s.sent(all[:5]...)
	s.sent(all[5])
	denied := &natsio.PermissionError{Op: "publish", Subject: "name2"}
	s.deny(denied)
	if !errors.Is(all[2].err, denied) || s.outstanding != 1 {
		t.Errorf("got %v with %d in the air, want the denial and 1", all[2].err, s.outstanding)
	}
	if want := slices.Concat(all[:2], all[3:5]); !slices.Equal(s.ready, want) || !all[0].alone {
		t.Errorf("got %d ready, want the other 4, alone", len(s.ready))
	}
	s.deny(&natsio.PermissionError{Op: "publish", Subject: "elsewhere"})
	if s.outstanding != 1 {
		t.Error("a denial of something else ended a pending publish")
	}
}

// During the lookup of a notice no other notice of its session is sent, since the stream
// may be available again at any moment.
func TestLookupHoldsBackItsOrder(t *testing.T) {
	t.Parallel()
	s := testLoop()
	all := s.testWrites(4)
	s.lookUp(all[1:2], errors.New("stands for no leader"))
	l := <-s.lookups
	if _, busy := s.orders["session"]; !busy {
		t.Error("the next notice would be sent")
	}
	s.ready = all[3:]
	s.finishLookup(l)
	if _, busy := s.orders["session"]; busy || s.lookingUp != 0 || !slices.Equal(s.ready, []*write{all[1], all[3]}) {
		t.Errorf("got busy %v and %d ready, want the notice in front of the next", s.orders, len(s.ready))
	}
}

// A write that is queued while a group is pending does not wake the committer. The
// group's answer does, and then the whole queue is sent.
func TestPendingGroupHoldsBackTheQueue(t *testing.T) {
	t.Parallel()
	for _, groups := range []bool{true, false} {
		s := testLoop()
		s.pace.fast = !groups
		told := func() bool { return s.queued() != nil }
		if !told() {
			t.Errorf("groups %t: what is queued first is not told", groups)
		}
		number := s.sent(s.testWrites(1)...)
		if told() == groups {
			t.Errorf("groups %t, with one pending: got told %t", groups, told())
		}
		s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(`{"stream":"S","seq":1}`)})
		if !told() {
			t.Errorf("groups %t: what is queued after the answer is not told", groups)
		}
	}
}

// A caller returns when it has its outcome, its context has ended, or the committer is
// closed.
func TestCommitterResolvesEveryWaiter(t *testing.T) {
	t.Parallel()
	s := testLoop()
	s.started = true // by nobody
	begin := func(ctx context.Context) *waiter {
		of, err := s.begin(ctx, []*write{{subject: "name"}})
		bustest.OK(t, err)
		return of
	}
	told := func(what string, of *waiter, want error) {
		t.Helper()
		if err := s.committer.wait(of); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	one, end := context.WithCancel(t.Context())
	first, second, forever := begin(one), begin(one), begin(context.Background())
	s.settle(&write{of: first})
	told("stored", first, nil)
	end()
	told("its context ended", second, ErrUnknownOutcome)
	told("its context ended", second, context.Canceled)
	told("begun after its context ended", begin(one), context.Canceled)
	s.close()
	told("closed", forever, natsio.ErrClosed)
	s.settle(&write{of: forever}) // it is stored after all
	if _, err := s.begin(t.Context(), []*write{{subject: "name"}}); !errors.Is(err, natsio.ErrClosed) {
		t.Errorf("begun after the end: got %v, want natsio.ErrClosed", err)
	}
}
