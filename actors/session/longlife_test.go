package session_test

// A session lives for as long as its log: after a million events nothing is refused, and
// its state is as small as before. REFOLD_LONG_EVENTS says how many events are folded
// (make nightly: two million, a million runs of them in one session).

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// longEvents is how many events are folded, if REFOLD_LONG_EVENTS does not say.
const longEvents = 50_000

// life is a session that gets one run after the other.
type life struct {
	t     *testing.T
	state *session.State
	seq   uint64
	rand  *rand.Rand

	compactions int
}

func (w *life) fold(door session.Door, typ string, body any) {
	w.t.Helper()
	data, err := codec.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	payload, err := codec.Marshal(session.Envelope{Data: data, Type: typ, V: session.Version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq++
	if _, err := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: int64(w.seq), Payload: payload}); err != nil {
		w.t.Fatalf("event %d: %s: %v", w.seq, typ, err)
	}
}

// usage is what a provider would count for the open generation.
func (w *life) usage() *session.Usage {
	return &session.Usage{InputTokens: 300 + int64(w.state.WindowBytes)/3, OutputTokens: 50}
}

// answered passes the compaction before a turn, if there is one, and returns the name of
// the turn's generation.
func (w *life) answered(turn int) string {
	w.t.Helper()
	name := fmt.Sprintf("r%dt%d", w.state.Runs, turn)
	for number, is := w.state.OpenCompaction(); is; number, is = w.state.OpenCompaction() {
		w.fold(session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("%sk%d", name, number), Status: "ok", Text: &session.Content{Text: strings.Repeat("s", 2000)}, Usage: w.usage(),
		})
		w.compactions++
	}
	return name
}

// run requests a run with this config and submission, whose model calls a tool in each
// of its turns but the last.
func (w *life) run(config *session.RunConfig, submission string, turns int) {
	w.t.Helper()
	w.fold(session.DoorCtl, session.TypeRunRequested, session.RunRequested{
		Config: config, Input: session.Content{Text: "What became of it?"}, Submission: submission,
	})
	for turn := 1; turn < turns; turn++ {
		name := w.answered(turn)
		w.fold(session.DoorLLM, session.TypeToolCallsObserved, session.ToolCallsObserved{
			Calls: []session.ObservedCall{{Arguments: "{}", ToolName: "boxp"}}, Effect: name, Model: "m", Usage: w.usage(),
		})
		w.fold(session.DoorTool, session.TypeToolCallSettled, session.ToolCallSettled{
			Effect: name + "c0", Output: &session.Content{Text: strings.Repeat("x", w.rand.IntN(2000))}, Status: string(session.CallSucceeded),
		})
	}
	w.fold(session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{
		Effect: w.answered(turns), Status: "ok", Text: &session.Content{Text: "It is on its way."}, Usage: w.usage(),
	})
	if last := w.state.Last; w.state.Run != nil || last.Number != w.state.Runs || last.Lifecycle != session.Completed {
		w.t.Fatalf("run %d ended %+v", w.state.Runs, last)
	}
}

func TestLongLife(t *testing.T) {
	t.Parallel()
	events := fromEnv(t, "REFOLD_LONG_EVENTS", longEvents)
	for name, c := range map[string]struct {
		context    session.ContextConfig
		submits    bool
		turns      int
		stateBytes int // at most
	}{
		"turns with tools": {session.ContextConfig{Tokens: 8000}, false, 3, 32 << 10},
		"without tokens":   {session.ContextConfig{}, false, 3, 512 << 10},
		"submissions":      {session.ContextConfig{Tokens: 8000, Summary: &session.SummaryConfig{Off: true}}, true, 1, 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &life{t: t, state: session.New(loopInstall(t), "s1"), seq: 1, rand: rand.New(rand.NewPCG(1, 2))}
			config := &session.RunConfig{Provider: "p", Model: "m", Context: &c.context}
			begun, largest := time.Now(), 0
			for n := 0; w.state.Count < events; n++ {
				submission := ""
				if c.submits {
					submission = fmt.Sprintf("order-%056d", n)
				}
				w.run(config, submission, c.turns)
				if n%max(500, int(events/2000)) != 0 { // Check and Bytes take long
					continue
				}
				size := len(w.state.Bytes())
				largest = max(largest, size)
				if err := w.state.Check(); err != nil || size > c.stateBytes {
					t.Fatalf("after %d events: the state has %d bytes, want at most %d: %v", w.state.Count, size, c.stateBytes, err)
				}
			}
			took := time.Since(begun)
			t.Logf("%d events, %d runs, %d compactions, %d items of %d in the window, at most %d bytes of state, %d submissions: %.1f s, %.1f µs an event",
				w.state.Count, w.state.Runs, w.compactions, len(w.state.Items), w.state.ItemCount(), largest, len(w.state.Submissions), took.Seconds(),
				float64(took.Microseconds())/float64(w.state.Count))
		})
	}
}
