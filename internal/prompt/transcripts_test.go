package prompt

// What is kept of sessions from one turn to the next: a turn reads from the log
// what is new and no more, and what is kept is bounded.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// longSession says n items of a session: what a user says, and what a model
// answers.
func longSession(t *testing.T, l *fakeLog, sid string, n int) (items []session.Item) {
	t.Helper()
	for i := range n {
		if i%2 == 0 {
			seq := l.say(t, session.DoorIn, sid, session.TypeRunRequested, session.RunRequested{Input: *text(fmt.Sprint("question ", i))})
			items = append(items, session.Item{Role: session.RoleUser, Seq: seq})
			continue
		}
		seq := l.say(t, session.DoorLLM, sid, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("r%dt1", i/2+1), Status: "ok", Text: text(fmt.Sprint("answer ", i)),
		})
		items = append(items, session.Item{Role: session.RoleAssistant, Seq: seq})
	}
	return items
}

func TestATurnReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	l := newLog()
	r := New(l)
	items := longSession(t, l, "s1", 1000)
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
		l.requests = nil
		g := generation("r500t1", items[:turn.to]...)
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%s: %v, %v", turn.name, fault, err)
		}
		if len(request.Messages) != turn.to || !slices.Equal(l.requests, turn.want) {
			t.Errorf("%s: %d messages, requests for %v events, want %v", turn.name, len(request.Messages), l.requests, turn.want)
		}
	}
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
