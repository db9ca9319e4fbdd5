package worker

// Streaming deltas: joined, they are a prefix of the settlement's text, however the
// model splits it; and many pieces make few deltas.

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/prompt"
)

// heardText joins deltas, and fails if one is missing, or of another start.
func heardText(t *testing.T, live []string, start string) string {
	t.Helper()
	var all strings.Builder
	for n, payload := range live {
		var d delta
		if err := json.Unmarshal([]byte(payload), &d); err != nil {
			t.Fatalf("delta %d: %v", n, err)
		}
		if d.N != n || d.Effect != "r1t1" || d.Start != start {
			t.Fatalf("delta %d: got %s, want start %s", n, payload, start)
		}
		if len(d.Text) > deltaBytesMax || d.Text == "" {
			t.Fatalf("delta %d has %d bytes", n, len(d.Text))
		}
		all.WriteString(d.Text)
	}
	return all.String()
}

func TestJoinedDeltasAreTheText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(100) {
			liveDeltasOf(t, seed)
		}
	})
}

// liveDeltasOf cuts words into pieces by seed.
func liveDeltasOf(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	vocabulary := []string{"", "a", "two words ", "é", "\xc3", "\xa9", "🙂", "\xf0\x9f", "\x99\x82", "\xff\xff", "\u2028<", strings.Repeat("long é ", 9000)}
	pieces, waits := make([]string, rng.IntN(60)), make([]int, 60)
	for i := range pieces {
		pieces[i], waits[i] = vocabulary[rng.IntN(len(vocabulary))], rng.IntN(30)
		if rng.IntN(4) == 0 {
			pieces[i] = string(append([]byte(pieces[i]), byte(rng.IntN(256)), byte(rng.IntN(256))))
		}
	}
	w := newWorld()
	l := &liveDeltas{wire: w, sid: "s1", effect: "r1t1", start: "A", ctx: context.Background()}
	var said strings.Builder
	full := 0
	began := time.Now()
	for i, p := range pieces {
		l.add(p)
		said.WriteString(p)
		full += 1 + len(p)/deltaBytesMax
		if len(p) < 100 {
			full--
		}
		pass(time.Duration(waits[i]) * time.Millisecond)
	}
	took := time.Since(began)
	l.end()
	l.add("after its end")
	pass(time.Second)
	got, want := heardText(t, w.live, "A"), prompt.Valid(said.String())
	if !strings.HasPrefix(want, got) {
		t.Fatalf("seed %d: got %q, want the beginning of %q", seed, got, want)
	}
	if r, size := utf8.DecodeLastRuneInString(said.String()); (r != utf8.RuneError || size > 1) && got != want {
		t.Fatalf("seed %d: got %q, want %q", seed, got, want)
	}
	if most := full + 2 + int(took/deltaEvery); len(w.live) > most {
		t.Fatalf("seed %d: %d deltas in %v, want at most %d", seed, len(w.live), took, most)
	}
}

// The first text is published at once, later text within deltaEvery, even if no
// more follows.
func TestDeltasArePublishedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		l := &liveDeltas{wire: w, sid: "s1", effect: "r1t1", start: "A", ctx: ctx}
		for _, step := range []struct {
			say  string
			wait time.Duration
			want string
		}{{"one", 0, "one"}, {" two", 0, "one"}, {" three", deltaEvery, "one two three"}, {" four", deltaEvery, "one two three four"}} {
			l.add(step.say)
			pass(step.wait)
			synctest.Wait()
			if got := heardText(t, w.live, "A"); got != step.want {
				t.Errorf("%v after %q: got %q, want %q", step.wait, step.say, got, step.want)
			}
		}
		if len(w.live) != 3 {
			t.Errorf("got %d deltas, want 3: two pieces that came together are one", len(w.live))
		}
		cancel() // withdrawn: who watches is told otherwise
		for range 100 {
			l.add(strings.Repeat("x", deltaBytesMax))
		}
		l.end()
		if len(w.live) != 3 || cap(l.held) > 4*heldBytesMax {
			t.Errorf("after the end: %d deltas, %d bytes are held", len(w.live), cap(l.held))
		}
	})
}

// Nobody asked for the text of a summary: it is not published while it is written.
func TestSummariesAreNotStreamed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
			delta("They ")
			delta("counted.")
			return executor.Answer{Text: "They counted."}, nil
		})})
		w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		g := generation("r1t2k1", session.Item{Role: session.RoleUser, Seq: 1})
		g.Compact, g.V = "Sum up.", session.WindowVersion
		q.ask(t, session.ClassLLM, "p", "s1", "r1t2k1", g)
		pass(time.Minute)
		b.stop()
		if len(w.live) > 0 {
			t.Errorf("published: %q", w.live)
		}
		w.wantSettled(t, "r1t2k1 ok")
	})
}

// A model's own retry within one start is another start for followers; a request
// without a bridge has no followers.
func TestModelRetryRestartsDeltas(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var start string
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
			start = r.Start
			delta("begun")
			delta(" and brok")
			if !r.Anew() {
				t.Error("nobody is told")
			}
			delta("hel")
			delta("lo")
			return executor.Answer{Text: "hello"}, nil
		})})
		w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: 1}))
		pass(time.Minute)
		b.stop()
		var second delta
		if err := json.Unmarshal([]byte(w.live[1]), &second); err != nil {
			t.Fatal(err)
		}
		if got := heardText(t, w.live[:1], start); got != "begun" {
			t.Errorf("the first start: got %q", got)
		}
		if got := heardText(t, w.live[1:], second.Start); got != "hello" || second.Start <= start {
			t.Errorf("the second start: got %q of %s, after %s", got, second.Start, start)
		}
		w.wantSettled(t, "r1t1 ok")
	})
	if new(executor.Request).Anew() {
		t.Error("a request that no bridge made can tell somebody")
	}
	now := time.Now()
	for range 100 {
		first := NewULID(now)
		if second := laterULID(first, now.Add(-time.Hour)); second <= first {
			t.Fatalf("%s is not later than %s", second, first)
		}
	}
}
