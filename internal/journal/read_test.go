package journal

// Reads against scripted replicas: rare events of a real cluster (a replica that lags, a
// message lost in transit) happen here every time.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// replica simulates the servers of a stream: the leader has all messages, and the one
// that answers direct reads has them up to behind.
type replica struct {
	t      *testing.T
	nc     *nats.Conn
	stream string

	mu     sync.Mutex
	has    []uint64 // sequences that the leader has
	behind uint64   // the last sequence that the replica has
	batch  int      // messages it sends for one request
	drop   func(seq uint64) bool
	direct int // requests that it answered
	leader int
}

func playReplica(t *testing.T, has []uint64) (*Journal, *replica) {
	t.Helper()
	node := bustest.Configured(t, "port: -1")
	conn, err := natsio.Connect(t.Context(), natsio.Options{URL: node.URL(), CoreOnly: true})
	bustest.OK(t, err)
	t.Cleanup(conn.Close)
	nc, err := nats.Connect(node.URL())
	bustest.OK(t, err)
	t.Cleanup(nc.Close)
	b := New(conn, new(streams.Streams), false)
	r := &replica{t: t, nc: nc, stream: b.names.LogStream(), has: has, behind: 1 << 62, batch: 1 << 20, drop: func(uint64) bool { return false }}
	for subject, answer := range map[string]nats.MsgHandler{
		b.directSubject(r.stream):            r.answerDirect,
		"$JS.API.STREAM.MSG.GET." + r.stream: r.answerLeader,
		// Nothing was erased.
		"$JS.API.STREAM.MSG.GET." + b.names.ErasedStream(): func(msg *nats.Msg) {
			if err := msg.Respond([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)); err != nil {
				t.Error(err)
			}
		},
	} {
		if _, err := r.nc.Subscribe(subject, answer); err != nil {
			t.Fatal(err)
		}
	}
	bustest.OK(t, r.nc.Flush())
	return b, r
}

func (r *replica) answerDirect(msg *nats.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.direct++
	var req getRequest
	if err := json.Unmarshal(msg.Data, &req); err != nil {
		r.t.Error(err)
	}
	say := func(header nats.Header, data string) {
		if err := r.nc.PublishMsg(&nats.Msg{Subject: msg.Reply, Header: header, Data: []byte(data)}); err != nil {
			r.t.Error(err)
		}
	}
	var found []uint64
	for _, seq := range r.has {
		if seq >= req.Seq && seq <= r.behind && (req.NextFor != "" || seq == req.Seq) {
			found = append(found, seq)
		}
	}
	if len(found) == 0 {
		say(nats.Header{subjects.HeaderStatus: {"404"}}, "")
		return
	}
	sent := found[:min(r.batch, max(req.Batch, 1), len(found))]
	last := uint64(0)
	for _, seq := range sent {
		if !r.drop(seq) {
			say(nats.Header{
				subjects.HeaderSubject: {"refold.9.in.s1"}, subjects.HeaderSequence: {fmt.Sprint(seq)},
				subjects.HeaderTimeStamp: {time.UnixMilli(int64(seq)).UTC().Format(time.RFC3339Nano)}, subjects.HeaderLastSequence: {fmt.Sprint(last)},
			}, fmt.Sprint(seq))
		}
		last = seq
	}
	if req.Batch > 0 {
		say(nats.Header{
			subjects.HeaderStatus: {"204"}, subjects.HeaderLastSequence: {fmt.Sprint(last)},
			subjects.HeaderNumPending: {fmt.Sprint(len(found) - len(sent))},
		}, "")
	}
}

func (r *replica) answerLeader(msg *nats.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader++
	var req getRequest
	if err := json.Unmarshal(msg.Data, &req); err != nil {
		r.t.Error(err)
	}
	answer := `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	for n, seq := range r.has {
		if seq == req.Seq || req.NextFor != "" && seq > req.Seq || req.LastFor != "" && n == len(r.has)-1 {
			answer = fmt.Sprintf(`{"message":{"subject":"refold.9.in.s1","seq":%d,"data":"eA==","time":%q}}`, seq, time.UnixMilli(int64(seq)).UTC().Format(time.RFC3339Nano))
			break
		}
	}
	if err := msg.Respond([]byte(answer)); err != nil {
		r.t.Error(err)
	}
}

func readSeqs(t *testing.T, b *Journal, from, to uint64, leader bool) []uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var got []uint64
	for e, err := range b.ReadSession(ctx, "s1", from, to, leader) {
		bustest.OK(t, err)
		if e.Time != int64(e.Seq) {
			t.Errorf("event %d: got time %d", e.Seq, e.Time)
		}
		got = append(got, e.Seq)
	}
	return got
}

func TestReadFromALaggingReplica(t *testing.T) {
	t.Parallel()
	has := []uint64{3, 5, 8, 13, 21}
	b, r := playReplica(t, has)
	r.behind = 8
	if got, want := readSeqs(t, b, 1, 0, false), has[:3]; !slices.Equal(got, want) {
		t.Errorf("without the leader: got %v, want %v", got, want)
	}
	if r.leader != 0 {
		t.Errorf("the leader was asked %d times, want 0", r.leader)
	}
	if got := readSeqs(t, b, 1, 0, true); !slices.Equal(got, has) {
		t.Errorf("with the leader: got %v, want %v", got, has)
	}
	if got, want := readSeqs(t, b, 5, 13, true), has[1:4]; !slices.Equal(got, want) {
		t.Errorf("from 5 to 13: got %v, want %v", got, want)
	}
	if got, want := readSeqs(t, b, 5, 12, true), has[1:3]; !slices.Equal(got, want) {
		t.Errorf("from 5 to 12: got %v, want %v", got, want)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	events, err := b.EventsAt(ctx, []uint64{21, 3, 13})
	if err != nil || len(events) != 3 || events[0].Seq != 21 || events[1].Seq != 3 || events[2].Seq != 13 {
		t.Errorf("events at sequences: got %+v %v", events, err)
	}
}

func TestReadInSmallBatches(t *testing.T) {
	t.Parallel()
	var has []uint64
	for seq := range uint64(2*aloneMax + 4) {
		has = append(has, seq+1)
	}
	b, r := playReplica(t, has)
	r.batch = 3
	if got := readSeqs(t, b, 0, 0, true); !slices.Equal(got, has) {
		t.Errorf("got %v, want %v", got, has)
	}
	// Batches of three while more than aloneMax are left, then those one by one.
	requests := func(left int) (n int) {
		for ; left > 0; n++ {
			if left > aloneMax {
				left -= r.batch
			} else {
				left--
			}
		}
		return n
	}
	if want := 1 + requests(len(has)-1); r.direct != want || r.leader != 1 {
		t.Errorf("got %d requests and asked the leader %d times, want %d and 1", r.direct, r.leader, want)
	}
	r.direct = 0
	if got, want := readSeqs(t, b, 2, 0, false), has[1:]; !slices.Equal(got, want) {
		t.Errorf("from 2: got %v, want %v", got, want)
	}
	if want := aloneMax + requests(len(has)-1-aloneMax); r.direct != want {
		t.Errorf("from 2: got %d requests, want %d", r.direct, want)
	}
	if got, want := readSeqs(t, b, 2, 4, true), has[1:4]; !slices.Equal(got, want) {
		t.Errorf("from 2 to 4: got %v, want %v", got, want)
	}
	if r.leader != 1 {
		t.Errorf("the leader was asked, though the replica had the end")
	}
}

// Every lost message is detected, at any position, and read again.
func TestBatchesWithGapsAreReadAgain(t *testing.T) {
	t.Parallel()
	var has []uint64
	for n := range uint64(aloneMax + 4) {
		has = append(has, 2*n+2)
	}
	for _, lost := range has {
		b, r := playReplica(t, has)
		times := 0
		r.drop = func(seq uint64) bool {
			if seq == lost {
				times++
			}
			return seq == lost && times <= 2
		}
		if got := readSeqs(t, b, 0, 0, true); !slices.Equal(got, has) {
			t.Errorf("%d lost: got %v, want %v", lost, got, has)
		}
		if times < 3 {
			t.Errorf("%d lost: it was asked for %d times, want 3", lost, times)
		}
	}
}

func TestFirstSeqsOfALaggingReplica(t *testing.T) {
	t.Parallel()
	b, r := playReplica(t, []uint64{5, 8})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for behind, want := range map[uint64]uint64{4: 0, 5: 5, 8: 5} {
		r.behind = behind
		if got, err := b.FirstSeqs(ctx, []string{"s1", "s1"}); err != nil || !slices.Equal(got, []uint64{want, want}) {
			t.Errorf("up to %d: got %v %v, want %d twice", behind, got, err, want)
		}
	}
	if r.leader != 0 {
		t.Errorf("the leader was asked %d times, want 0", r.leader)
	}
}

// A lost answer delays only the caller that waits for it.
func TestLostAnswerDelaysOnlyItsCaller(t *testing.T) {
	t.Parallel()
	b, r := playReplica(t, []uint64{1, 2})
	asked := make(chan struct{})
	r.drop = func(seq uint64) bool {
		if seq == 1 {
			close(asked)
		}
		return seq == 1
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan error, 1)
	go func() {
		_, err := b.EventsAt(ctx, []uint64{1})
		first <- err
	}()
	<-asked
	if events, err := b.EventsAt(t.Context(), []uint64{2}); err != nil || events[0].Seq != 2 {
		t.Errorf("got %+v %v", events, err)
	}
	if events, err := b.EventsAt(t.Context(), []uint64{2, 3}); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("an event that the log lacks: got %+v %v, want natsio.ErrNotFound", events, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller of the lost answer: got %v, want that it waited until its context ended", err)
	}
}
