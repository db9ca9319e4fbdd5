package session_test

// Long conversations, against a provider that refuses what is too long for it: no run
// fails, every request is a conversation, and state and effects stay small.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// talk is a session that talks to a model with a small context.
type talk struct {
	*told
	rand    *rand.Rand
	most    int            // tokens that the provider accepts
	bytes   map[uint64]int // what events show, by sequence
	refused int
	cut     bool // something left the window
	compact int  // compactions that succeeded
}

// tokens counts the tokens of a request as the provider does: other than the fold.
func (w *talk) tokens(g *session.Generation) int {
	w.t.Helper()
	items, err := g.Items.Items()
	if err != nil {
		w.t.Fatal(err)
	}
	bytes := 300
	for _, it := range items {
		switch it.Shown {
		case session.ShownCleared:
			bytes += 90
		case session.ShownCut:
			bytes += min(int(it.Bytes), w.bytes[it.Seq])
		case session.ShownWhole:
			bytes += w.bytes[it.Seq]
		}
	}
	bytes += len(g.Compact) + w.bytes[g.Summary]
	if short := g.Cut > 0 || g.Compact != "" || strings.Contains(g.Items.Roles, "c") || hasShown(items); short != (g.V == session.WindowVersion) {
		w.t.Fatalf("version %d with %d items cut, roles %s", g.V, g.Cut, g.Items.Roles)
	}
	w.cut = w.cut || g.Cut > 0
	return bytes / 3
}

func hasShown(items []session.Item) bool {
	for _, it := range items {
		if it.Shown == session.ShownCut {
			return true
		}
	}
	return false
}

// isConversation says why a provider would refuse a list of items.
func isConversation(roles string, calls func(answer int) int) error {
	if strings.ContainsAny(roles[:1], "tc") {
		return fmt.Errorf("it begins with a result: %s", roles)
	}
	answers := 0
	for i := 0; i < len(roles); {
		if roles[i] != 'a' {
			if roles[i] != 'u' {
				return fmt.Errorf("item %d is a result of no call: %s", i, roles)
			}
			i++
			continue
		}
		results := 0
		for i++; i < len(roles) && strings.ContainsRune("tc", rune(roles[i])); i++ {
			results++
		}
		if want := calls(answers); results != want {
			return fmt.Errorf("answer %d has %d results, made %d calls: %s", answers, results, want, roles)
		}
		answers++
	}
	return nil
}

// step carries out the open generation or call, and reports whether the run goes on.
func (w *talk) step(calls map[uint64]int) {
	w.t.Helper()
	for _, e := range w.state.Open() {
		switch e.Class {
		case session.ClassLLM:
			w.answer(e, calls)
		case session.ClassTool:
			size := w.rand.IntN(3000)
			if w.rand.IntN(50) == 0 {
				size = 60_000
			}
			w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{
				"effect": e.Name, "status": "succeeded", "output": text(strings.Repeat("x", size)),
			}))
			w.bytes[w.seq] = size
		case session.ClassWake:
			if w.state.Run != nil && w.state.Turn.RetryAt > 0 {
				w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name}))
			}
			continue
		default:
			w.t.Fatalf("%s is open", e.Name)
		}
		return
	}
}

func (w *talk) answer(e session.Effect, calls map[uint64]int) {
	w.t.Helper()
	var g session.Generation
	if err := codec.Unmarshal(e.Payload, &g); err != nil {
		w.t.Fatal(err)
	}
	if len(e.Payload) > session.WindowListBytesMax+4<<10 {
		w.t.Fatalf("%s has %d bytes", e.Name, len(e.Payload))
	}
	items, _ := g.Items.Items()
	var answers []uint64
	for _, it := range items {
		if it.Role == session.RoleAssistant {
			answers = append(answers, it.Seq)
		}
	}
	if err := isConversation(g.Items.Roles, func(answer int) int { return calls[answers[answer]] }); err != nil {
		w.t.Fatalf("%s: %v", e.Name, err)
	}
	has := g.Compact != ""
	for _, it := range items {
		has = has || it.Role == session.RoleUser && it.Seq == w.state.Run.Seq
	}
	if !has {
		w.t.Fatalf("%s lacks the input of run %d", e.Name, w.state.Run.Number)
	}
	n := w.tokens(&g)
	if n > w.most {
		w.refused++
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
			"effect": e.Name, "status": "failed", "error": map[string]any{"code": "context_length_exceeded", "detail": "the prompt is too long"},
		}))
		return
	}
	usage := map[string]any{"input_tokens": n, "output_tokens": 10}
	if g.Compact != "" {
		w.summarize(e, usage)
		return
	}
	if w.rand.IntN(4) == 0 || w.state.Turn.Number > 30 {
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
			"effect": e.Name, "status": "ok", "text": text(strings.Repeat("w", 200)), "usage": usage,
		}))
		w.bytes[w.seq] = 200
		return
	}
	made := make([]any, 1+w.rand.IntN(3))
	for i := range made {
		made[i] = map[string]any{"tool_name": "boxp", "arguments": "{}"}
	}
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": e.Name, "calls": made, "usage": usage}))
	w.bytes[w.seq], calls[w.seq] = 8*len(made), len(made)
}

// summarize settles a compaction: now and then with what is no summary.
func (w *talk) summarize(e session.Effect, usage map[string]any) {
	w.t.Helper()
	if w.compact > 0 && w.rand.IntN(8) == 0 {
		w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
			"effect": e.Name, "calls": []any{map[string]any{"tool_name": "boxp", "arguments": "{}"}}, "usage": usage,
		}))
		return
	}
	size := 100 + w.rand.IntN(3000)
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
		"effect": e.Name, "status": "ok", "text": text(strings.Repeat("s", size)), "usage": usage,
	}))
	if got := w.state.Window.Summary; got != w.seq {
		w.t.Fatalf("%s: the summary is that of event %d, not %d", e.Name, got, w.seq)
	}
	w.bytes[w.seq] = size
	w.compact++
}

// A session of 2,000 turns with a model of 8,000 tokens never fails, with or without a
// stated size of the context. If nothing is refused, the list of items stays small.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context     map[string]any
		most, turns int // tokens that the provider accepts, turns of the session
		state       int // bytes of the state
	}{
		"tokens":                {map[string]any{"tokens": 8000}, 8000, 2000, 256 << 10},
		"tokens, another model": {map[string]any{"tokens": 8000, "summary": map[string]any{"provider": "p2", "model": "m2", "tokens_max": 500}}, 8000, 2000, 256 << 10},
		"tokens, no summary":    {map[string]any{"tokens": 8000, "summary": map[string]any{"off": true}}, 8000, 2000, 256 << 10},
		"refusals alone":        {map[string]any{}, 8000, 2000, 256 << 10},
		"refusals, no summary":  {map[string]any{"summary": map[string]any{"off": true}}, 8000, 2000, 256 << 10},
		"references alone":      {map[string]any{}, 1 << 40, 2500, 768 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &talk{told: toldUnder(t, loopInstall(t)), rand: rand.New(rand.NewPCG(1, 2)), most: c.most, bytes: map[uint64]int{}}
			calls, turns := map[uint64]int{}, 0
			for turns < c.turns {
				w.time += 1000
				w.run(map[string]any{"context": c.context})
				w.bytes[w.seq] = 2
				for w.state.Run != nil {
					w.step(calls)
				}
				turns += int(w.state.Turn.Number)
				if last := w.state.Last; last.Lifecycle != session.Completed {
					t.Fatalf("run %d: %s %s after %d turns", last.Number, last.Lifecycle, last.Code, turns)
				}
				if size := len(w.state.Bytes()); size > c.state {
					t.Fatalf("after %d turns the state has %d bytes", turns, size)
				}
				w.told = w.restored()
			}
			if !w.cut || name == "refusals alone" && w.refused == 0 || strings.Contains(name, "no summary") != (w.compact == 0) {
				t.Errorf("nothing was cut (%v), or nothing refused (%d), or %d compactions", w.cut, w.refused, w.compact)
			}
			t.Logf("%d turns, %d refused, %d compactions, %d items of %d in the window", turns, w.refused, w.compact, len(w.state.Items), w.state.ItemCount())
		})
	}
}

// The input and the steers of a run never leave its window, so a run with too many of them
// ends. The session goes on.
func TestRunWithTooManySteersEnds(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, loopInstall(t))
	w.run(map[string]any{"context": map[string]any{}, "turns_max": 1000})
	for range 400 {
		for range session.SteersMax {
			if w.state.Last == nil && len(w.state.Run.Steers) < session.SteersMax {
				w.must(w.tell(session.DoorIn, session.TypeSteerRequested, map[string]any{"input": text("more")}))
			}
		}
		if w.state.Last != nil {
			break
		}
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": generationName(w.state), "status": "ok", "text": text("well")}))
		if err := w.state.Check(); err != nil {
			t.Fatalf("after %d items: %v", w.state.ItemCount(), err)
		}
	}
	if last := w.state.Last; last == nil || last.Number != 1 || last.Code != session.CodeTranscriptFull {
		t.Fatalf("the run ended as %+v", last)
	}
	if w.state.Run != nil { // what steers it did not take
		w.must(w.tell(session.DoorIn, session.TypeRunCancelRequested, map[string]any{}))
	}
	w.run(map[string]any{"context": map[string]any{}})
	for range 10 {
		if w.state.Run != nil {
			w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": generationName(w.state), "status": "ok", "text": text("well")}))
		}
	}
	if last := w.state.Last; last.Lifecycle != session.Completed || len(w.state.Items) > session.ItemsMax/2 {
		t.Errorf("the next run ended as %+v, with %d items", last, len(w.state.Items))
	}
}
