package journal_test

// Concurrent calls of one process are stored in batches where the server syncs every
// message, and one by one elsewhere. Either way everything is stored once, and every
// caller gets its own outcome. A plain client reads what is really in a stream.

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// modes are servers that sync each message, and servers that do not.
var modes = map[string]natsio.Durability{"batches": natsio.DurabilityAlways, "singles": natsio.DurabilityUnknown}

// storing is a bus with its streams, and a plain client.
type storing struct {
	t    *testing.T
	mode natsio.Durability
	node *bustest.Node
	b    *bus.Bus
	js   jetstream.JetStream
}

func inModes(t *testing.T, f func(*testing.T, *storing)) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newStoring(t, bustest.Server(t), mode))
		})
	}
}

func newStoring(t *testing.T, node *bustest.Node, mode natsio.Durability) *storing {
	t.Helper()
	s := &storing{t: t, mode: mode, node: node, b: connectAs(t, node.URL(), mode)}
	bustest.OK(t, s.b.Provision(testbus.Context(t), testbus.Conf(t, ""), 1))
	_, s.js = testbus.JS(t, node)
	return s
}

func connectAs(t testing.TB, url string, mode natsio.Durability) *bus.Bus {
	t.Helper()
	b := testbus.ConnectWith(t, natsio.Options{URL: url, Durability: mode})
	b.Groups(mode == natsio.DurabilityAlways)
	return b
}

// kept is one message of a stream.
type kept struct {
	seq           uint64
	subject, text string
	batch         string // its id; empty: it was stored alone
}

// count returns how many messages a stream holds.
func (s *storing) count(stream string) int {
	s.t.Helper()
	info, err := s.js.Stream(testbus.Context(s.t), stream)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(info.CachedInfo().State.Msgs)
}

// all returns what a stream holds, in order.
func (s *storing) all(stream string) []kept {
	s.t.Helper()
	ctx := testbus.Context(s.t)
	left := s.count(stream)
	if left == 0 {
		return nil
	}
	consumer, err := s.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute, // a busy machine may be silent for the default of five seconds
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := s.js.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name); err != nil {
			s.t.Error(err)
		}
	}()
	// A busy machine may be silent for longer than two heartbeats; ctx bounds it.
	it, err := consumer.Messages(jetstream.WithMessagesErrOnMissingHeartbeat(false))
	if err != nil {
		s.t.Fatal(err)
	}
	defer it.Stop()
	var found []kept
	for range left {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			s.t.Fatal(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			s.t.Fatal(err)
		}
		found = append(found, kept{meta.Sequence.Stream, m.Subject(), string(m.Data()), m.Headers().Get(subjects.HeaderBatchID)})
	}
	return found
}

// once returns the messages of a stream by subject, each of which must hold one.
func (s *storing) once(stream string) map[string]kept {
	s.t.Helper()
	found := make(map[string]kept)
	for _, k := range s.all(stream) {
		if other, twice := found[k.subject]; twice {
			s.t.Errorf("%s is stored at %d and at %d", k.subject, other.seq, k.seq)
		}
		found[k.subject] = k
	}
	return found
}

// effects returns n effects with names of their own.
func effects(n int) []session.Effect {
	var all []session.Effect
	for i := range n {
		all = append(all, effect(fmt.Sprintf("r1t%dc0", i+1), fmt.Sprint("effect ", i+1)))
	}
	return all
}

func asked(sid string, all []session.Effect) []journal.Output {
	var outputs []journal.Output
	for i := range all {
		outputs = append(outputs, journal.Output{Session: sid, Effect: &all[i]})
	}
	return outputs
}

func told(sid string, from, to int) []journal.Output {
	var outputs []journal.Output
	for n := from; n <= to; n++ {
		outputs = append(outputs, journal.Output{Session: sid, Notice: fmt.Append(nil, n), N: uint64(n)})
	}
	return outputs
}

// batches counts messages by the batch they came in.
func batches(found []kept) map[string]int {
	counts := make(map[string]int)
	for _, k := range found {
		if k.batch != "" {
			counts[k.batch]++
		}
	}
	return counts
}

// inTurn checks that the notices of each session are numbered from 1 on, in order.
func inTurn(t *testing.T, found []kept, sessions, each int) {
	t.Helper()
	last := make(map[string]int)
	for _, k := range found {
		last[k.subject]++
		if got, want := k.text, fmt.Sprint(last[k.subject]); got != want {
			t.Errorf("%s: got notice %s at %d, want %s", k.subject, got, k.seq, want)
		}
	}
	if len(last) != sessions || len(found) != sessions*each {
		t.Errorf("got %d notices of %d sessions, want %d of each of %d", len(found), len(last), each, sessions)
	}
}

// load is many concurrent calls of all kinds. Each has its own name, except the claims,
// which have two callers each.
type load struct {
	s    *storing
	n    int // calls of each kind
	said func()

	mu      sync.Mutex
	seqs    map[uint64]string // what Publish stored where
	winners map[string]string // what won each claim
}

// run makes all calls, and returns when each has returned nil.
func (l *load) run() {
	s, ctx := l.s, testbus.Context(l.s.t)
	l.seqs, l.winners = make(map[uint64]string), make(map[string]string)
	var calls sync.WaitGroup
	call := func(what string, f func() error) {
		calls.Go(func() {
			if err := f(); err != nil {
				s.t.Errorf("%s: %v", what, err)
			}
			if l.said != nil {
				l.said()
			}
		})
	}
	for i := range l.n {
		name, sid := fmt.Sprintf("r1t%dc0", i+1), fmt.Sprintf("s%d", i%7)
		call("ask "+name, func() error { return ask(ctx, s.b, "ask", effect(name, name)) })
		call("notify", func() error { return s.b.Notify(ctx, fmt.Sprint("alone", i), 1, []byte("1")) })
		call("publish "+name, func() error {
			id := name
			if i%2 == 0 {
				id = ""
			}
			seq, err := s.b.Publish(ctx, session.DoorIn, sid, []byte(name), id)
			l.mu.Lock()
			defer l.mu.Unlock()
			if other, taken := l.seqs[seq]; taken && err == nil {
				err = fmt.Errorf("sequence %d is also that of %s", seq, other)
			}
			l.seqs[seq] = name
			return err
		})
		for by := range 2 {
			body := fmt.Sprintf(`{"by":"%d"}`, by)
			call("claim "+name, func() error { return l.claim(name, body) })
		}
	}
	for i := range 8 { // sessions of an owner that stores slices
		sid := fmt.Sprint("slice", i)
		for from := 1; from <= 20; from += 10 {
			if from > 1 {
				calls.Wait() // a session has one slice under way
			}
			call(sid, func() error {
				return errors.Join(s.b.Store(ctx, slices.Concat(asked(sid, effects(from+9)), told(sid, from, from+9)))...)
			})
		}
	}
	calls.Wait()
}

func (l *load) claim(name, body string) error {
	won, holder, err := l.s.b.Claim(testbus.Context(l.s.t), claimOf("ask", name, 1), []byte(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch winner, known := l.winners[name]; {
	case err != nil:
		return err
	case won != (string(holder) == body):
		return fmt.Errorf("got won %v with holder %s, want it of %s", won, holder, body)
	case known && winner != string(holder):
		return fmt.Errorf("got holder %s here and %s there", holder, winner)
	}
	l.winners[name] = string(holder)
	return nil
}

// check checks what is stored.
func (l *load) check() {
	t, s := l.s.t, l.s
	t.Helper()
	events := s.all("REFOLD_LOG")
	if len(events) != l.n {
		t.Errorf("got %d events, want %d", len(events), l.n)
	}
	for _, k := range events {
		if got := l.seqs[k.seq]; got != k.text {
			t.Errorf("event %d is %s, and Publish said that it is %q", k.seq, k.text, got)
		}
	}
	fx, names := s.once("REFOLD_FX"), testbus.Names(t, "")
	if got, want := len(fx), 2*l.n+8*20; got != want {
		t.Errorf("got %d effects and claims, want %d", got, want)
	}
	for name, winner := range l.winners {
		subject, err := names.Claim(claimOf("ask", name, 1))
		bustest.OK(t, err)
		if got := fx[subject].text; got != winner {
			t.Errorf("claim of %s: got %q stored, want %q as was told", name, got, winner)
		}
	}
	var slicesOnly []kept
	alone := make(map[string]bool)
	for _, k := range s.all("REFOLD_OUT") {
		if sid, err := names.ParseOut(k.subject); err == nil && sid[0] == 'a' {
			if alone[sid] {
				t.Errorf("the notice of %s is stored twice", sid)
			}
			alone[sid] = true
			continue
		}
		slicesOnly = append(slicesOnly, k)
	}
	inTurn(t, slicesOnly, 8, 20)
	if len(alone) != l.n {
		t.Errorf("got %d single notices, want %d", len(alone), l.n)
	}
}

func TestConcurrentCallsStoreEverythingOnce(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		l := &load{s: s, n: 200}
		l.run()
		l.check()
		for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT"} {
			counts := batches(s.all(stream))
			// A slice that meets no other is one batch, and one that does is in a larger one.
			if got, want := len(counts) > 0, s.mode == natsio.DurabilityAlways; got != want {
				t.Errorf("%s: got batches %v, want some: %v", stream, counts, want)
			}
			for id, n := range counts {
				if n < 8 || n > 1000 {
					t.Errorf("%s: batch %s has %d messages, want 8 to 1000", stream, id, n)
				}
			}
		}
	})
}

// Fewer than batchLeast messages are sent singly. A single one is sent at once.
func TestSmallGroupsAreNotBatched(t *testing.T) {
	t.Parallel()
	s := newStoring(t, bustest.Server(t), natsio.DurabilityAlways)
	ctx := testbus.Context(t)
	heard, err := s.js.Conn().SubscribeSync("refold.fx.>")
	bustest.OK(t, err)
	bustest.OK(t, s.js.Conn().Flush())
	for _, test := range []struct {
		n    int
		want []int // messages per batch
	}{{1, nil}, {7, nil}, {8, []int{8}}, {1000, []int{1000}}, {1900, []int{900, 1000}}} {
		before := s.count("REFOLD_FX")
		bustest.OK(t, ask(ctx, s.b, fmt.Sprint("n", test.n), effects(test.n)...))
		stored := s.all("REFOLD_FX")[before:]
		var got []int
		for _, n := range batches(stored) {
			got = append(got, n)
		}
		slices.Sort(got)
		if len(stored) != test.n || !slices.Equal(got, test.want) {
			t.Errorf("%d asked: got %d in batches of %v, want %v", test.n, len(stored), got, test.want)
		}
		// The first of a batch hears that there is no room for it, the last what became of it.
		for range test.n {
			m, err := heard.NextMsgWithContext(ctx)
			bustest.OK(t, err)
			h := m.Header
			asks := h.Get(subjects.HeaderBatchID) == "" || h.Get(subjects.HeaderBatchSequence) == "1" || h.Get(subjects.HeaderBatchCommit) != ""
			if asks != (m.Reply != "") {
				t.Fatalf("%s, %v: got the reply subject %q, want one: %v", m.Subject, h, m.Reply, asks)
			}
		}
	}
}
