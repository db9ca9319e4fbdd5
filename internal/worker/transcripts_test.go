package worker

// What is kept of sessions from one turn to the next: a turn reads from the log
// what is new and no more, and what is kept is bounded.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
)

// counting is a world that counts what is read.
type counting struct {
	*world
	requests []int // events in each
}

func (c *counting) Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	c.requests = append(c.requests, len(seqs))
	return c.world.Events(ctx, sid, seqs)
}

// longSession says n items of a session: what a user says, and what a model
// answers.
func longSession(t *testing.T, w *world, sid string, n int) (items []session.Item) {
	t.Helper()
	for i := range n {
		if i%2 == 0 {
			seq := w.say(t, session.DoorIn, sid, session.TypeRunRequested, session.RunRequested{Input: *text(fmt.Sprint("question ", i))})
			items = append(items, session.Item{Role: session.RoleUser, Seq: seq})
			continue
		}
		seq := w.say(t, session.DoorLLM, sid, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("r%dt1", i/2+1), Status: "ok", Text: text(fmt.Sprint("answer ", i)),
		})
		items = append(items, session.Item{Role: session.RoleAssistant, Seq: seq})
	}
	return items
}

func TestATurnReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	w := &counting{world: newWorld()}
	r := newReader(w)
	items := longSession(t, w.world, "s1", 1000)
	for _, turn := range []struct {
		name string
		to   int
		want []int // events in each request
	}{
		{"cold", 990, append(slices.Repeat([]int{eventsAtOnce}, 990/eventsAtOnce), 990%eventsAtOnce)},
		{"again", 990, nil},
		{"the next turn", 992, []int{2}},
		{"the last one", 1000, []int{8}},
	} {
		w.requests = nil
		g := generation("r500t1", items[:turn.to]...)
		request, fault, err := r.request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%s: %v, %v", turn.name, fault, err)
		}
		if len(request.Messages) != turn.to || !slices.Equal(w.requests, turn.want) {
			t.Errorf("%s: %d messages, requests for %v events, want %v", turn.name, len(request.Messages), w.requests, turn.want)
		}
	}
}

// What a bridge settled itself it need not read for the next turn.
func TestWhatWasSettledHereIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, q := &counting{world: newWorld()}, newQueue()
		b := startBridgeOn(t, w, w.world, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
			return executor.Answer{Text: fmt.Sprintf("seen %d", len(r.Messages))}, nil
		})})
		defer b.stop()
		items := longSession(t, w.world, "s1", 100)
		for run := range 3 {
			w.requests = nil
			seq := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("and?")})
			items = append(items, session.Item{Role: session.RoleUser, Seq: seq})
			effect := fmt.Sprintf("r%dt1", 51+run)
			q.ask(t, session.ClassLLM, "p", "s1", effect, generation(effect, items...))
			pass(time.Second / 10) // the connection is not lost meanwhile, as far as the bridge knows
			last, err := w.LastModelEvent(t.Context(), "s1")
			if err != nil || !strings.Contains(string(last.Payload), fmt.Sprintf("seen %d", len(items))) {
				t.Fatalf("run %d: %q, %v", run, last.Payload, err)
			}
			items = append(items, session.Item{Role: session.RoleAssistant, Seq: last.Seq})
			if want := []int{1}; run > 0 && !slices.Equal(w.requests, want) {
				t.Errorf("run %d: requests for %v events, want %v: what the user said", run, w.requests, want)
			}
		}
	})
}

// wordsAt are events of which it is not known what they say.
func wordsAt(seqs ...uint64) entries {
	all := make(entries, len(seqs))
	for i, seq := range seqs {
		all[i].seq = seq
	}
	return all
}

// Against a reference that keeps all: what is found is right, the bounds hold,
// and the sessions used last are whole.
func TestTranscriptsAreBounded(t *testing.T) {
	t.Parallel()
	size := (&entry{text: strings.Repeat("x", 100)}).bytes()
	rng := rand.New(rand.NewPCG(3, 0))
	c := newTranscripts(50 * size)
	all, began := map[string]map[uint64]*entry{}, map[string]uint64{}
	for range 5000 {
		sid := fmt.Sprintf("s%d", rng.IntN(8))
		if all[sid] == nil {
			all[sid] = map[uint64]*entry{}
		}
		seqs := make([]uint64, 1+rng.IntN(12))
		began[sid] += uint64(rng.IntN(6)) // a window only moves on
		for i := range seqs {
			seqs[i] = began[sid] + uint64(i)
		}
		found := wordsAt(seqs...)
		missing := c.look(sid, found)
		for _, seq := range seqs {
			s := found.of(seq)
			if s == nil != slices.Contains(missing, seq) || s != nil && s != all[sid][seq] {
				t.Fatalf("%s %d: got %p, have %p, missing %v", sid, seq, s, all[sid][seq], missing)
			}
		}
		for _, seq := range missing {
			if all[sid][seq] == nil {
				all[sid][seq] = &entry{text: strings.Repeat("x", 100)}
			}
			c.put(sid, seq, all[sid][seq])
		}
		if again := c.look(sid, wordsAt(seqs...)); len(again) > 0 {
			t.Fatalf("%s: %v is not kept, of 50 that fit", sid, again)
		}
		entries, bytes := 0, 0
		sessions := 0
		for of := c.ring.next; of != &c.ring; of = of.next {
			if sessions++; c.at[of.sid] != of {
				t.Fatalf("%s is in the ring and can't be found", of.sid)
			}
			entries += len(of.entries)
			for _, s := range of.entries {
				bytes += s.entry.bytes()
			}
		}
		if got := c.counts(); got.Bytes != bytes || got.Entries != entries || bytes > c.bytesMax || len(c.at) != sessions {
			t.Fatalf("%+v, and there are %d entries of %d bytes", got, entries, bytes)
		}
	}
	large := &entry{text: strings.Repeat("x", 20*size)}
	c.put("s1", 999, large)
	if missing := c.look("s1", wordsAt(999)); len(missing) != 1 {
		t.Error("kept what is larger than a quarter")
	}
	c.clear()
	if got := c.counts(); got.Bytes != 0 || got.Entries != 0 || len(c.at) != 0 {
		t.Errorf("clear left %+v", got)
	}
}

// A session whose window moves on is not kept from its beginning.
func TestTranscriptsForgetWhatIsNotShown(t *testing.T) {
	t.Parallel()
	c := newTranscripts(eventsCacheBytes)
	for seq := range uint64(1000) {
		c.put("s1", seq+1, &entry{})
	}
	c.look("s1", wordsAt(990, 995, 1000))
	if got := c.counts(); got.Entries != 11 {
		t.Errorf("%d events are kept, want those from the first one shown on", got.Entries)
	}
}

// A thousand items, read from a server.
func BenchmarkColdTranscript(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { coldTranscript(b, n) })
	}
}

func coldTranscript(b *testing.B, n int) {
	nc, items := storedSession(b, n)
	g := generation("r900t1", items...)
	b.ReportAllocs()
	for b.Loop() {
		request, fault, err := newReader(NewNATS(nc)).request(b.Context(), &g)
		if err != nil || fault != nil || len(request.Messages) != n {
			b.Fatal(request, fault, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/transcript")
}

// storedSession stores a session of n items on a server, with as many events of
// others between.
func storedSession(b *testing.B, n int) (*bus.Bus, []session.Item) {
	b.Helper()
	nc := newNatsWire(b, bustest.Server(b)).Bus
	var items []session.Item
	for i := range n {
		typ, door, role, body := session.TypeRunRequested, session.DoorIn, session.RoleUser, any(session.RunRequested{Input: *text(strings.Repeat("word ", 100))})
		if i%2 == 1 {
			typ, door, role = session.TypeGenerationSettled, session.DoorLLM, session.RoleAssistant
			body = session.GenerationSettled{Effect: fmt.Sprintf("r%dt1", i), Status: "ok", Text: text(strings.Repeat("word ", 100))}
		}
		payload, err := session.Envelope{Type: typ, V: session.Version}.With(body)
		if err != nil {
			b.Fatal(err)
		}
		seq, err := nc.Publish(b.Context(), door, "s1", payload, "")
		if err == nil && i%3 == 0 {
			_, err = nc.Publish(b.Context(), door, fmt.Sprintf("other-%d", i%7), payload, "")
		}
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, session.Item{Role: role, Seq: seq})
	}
	return nc, items
}
