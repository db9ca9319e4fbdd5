package worker

// What a model is shown: every kind of item, where its text comes from, and
// what happens when it can't be read.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

func text(s string) *session.Content { return &session.Content{Text: s} }

func blob(t *testing.T, w *world, s string) *session.Content {
	t.Helper()
	ref, err := w.PutBlob(t.Context(), []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return &session.Content{Blob: &ref, Size: int64(len(s))}
}

func raw(t *testing.T, text string) codec.Raw {
	t.Helper()
	r, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// conversation is a log with one of everything, and the generation that shows
// it.
func conversation(t *testing.T, w *world) session.Generation {
	t.Helper()
	user := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{
		Input: session.Content{Parts: []session.Content{*text("repair"), *blob(t, w, "a long text"), {Parts: []session.Content{*text("please")}}}},
	})
	w.mu.Lock()
	second := w.add(session.DoorIn, "s1", []byte(` {"type":"RunRequested","data":{"input":{"text":"über"}}}`))
	w.mu.Unlock()
	calls := w.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t2a3", Text: text("I look"), Opaque: raw(t, `[1]`),
		Calls: []session.ObservedCall{
			{ToolName: "stat", Arguments: `{"path": "a"}`, ProviderCallID: "x"},
			{ToolName: "shell", Arguments: "", ProviderCallID: "x"},
			{ToolName: "nope", Arguments: "{"},
			{ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"},
		},
	})
	settled := func(b session.ToolCallSettled) uint64 {
		return w.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, b)
	}
	failed := settled(session.ToolCallSettled{Effect: "r1t2c1", Status: "failed", Output: text("exit 1"), Error: &session.Fault{Code: "exit_status", Detail: "it failed"}})
	stat := settled(session.ToolCallSettled{Effect: "r1t2c0", Status: "succeeded", Output: text("a file")})
	empty := settled(session.ToolCallSettled{Effect: "r1t2c3", Status: "succeeded"})
	bare := settled(session.ToolCallSettled{Effect: "r1t2c4", Status: "outcome_unknown"})
	noDetail := settled(session.ToolCallSettled{Effect: "r1t2c5", Status: "cancelled", Error: &session.Fault{Code: "cancelled"}})
	large := settled(session.ToolCallSettled{Effect: "r1t2c6", Status: "succeeded", Output: blob(t, w, "much")})
	said := w.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t3", Status: "ok", Text: text("done")})
	g := generation("r2t1",
		session.Item{Role: session.RoleUser, Seq: user},
		session.Item{Role: session.RoleUser, Seq: second},
		session.Item{Role: session.RoleAssistant, Seq: calls},
		session.Item{Role: session.RoleTool, Call: 0, Seq: stat},
		session.Item{Role: session.RoleTool, Call: 1, Seq: failed},
		session.Item{Role: session.RoleTool, Call: 2, Seq: calls, Code: "tool_unknown", Detail: "no tool nope"},
		session.Item{Role: session.RoleTool, Call: 3, Seq: empty},
		session.Item{Role: session.RoleTool, Call: 4, Seq: bare},
		session.Item{Role: session.RoleTool, Call: 5, Seq: noDetail},
		session.Item{Role: session.RoleTool, Call: 6, Seq: large},
		session.Item{Role: session.RoleAssistant, Seq: said},
		session.Item{Role: session.RoleUser, Seq: second},
	)
	descriptor, err := w.PutBlob(t.Context(), []byte(`{"args_schema":{"type":"object"},"description":"looks","tool_name":"stat"}`))
	if err != nil {
		t.Fatal(err)
	}
	masked, err := w.PutBlob(t.Context(), []byte(`{"args_schema":{"type":"object"},"description":"runs","tool_name":"shell"}`))
	if err != nil {
		t.Fatal(err)
	}
	g.CacheTTL, g.Defined = "1h", []codec.Hash{masked.Hash, descriptor.Hash}
	g.System, g.ToolChoice, g.Params, g.Tools = "be careful", "auto", raw(t, `{"temperature":0.5}`), []codec.Hash{descriptor.Hash}
	g.Toolset, g.OutputTokensMax = codec.Sum([]byte("stat")), 700
	return g
}

func TestRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		g := conversation(t, w)
		r := newReader(w)
		want := &executor.Request{
			Session: "s1", Effect: "r2t1", Toolset: g.Toolset.String(), Model: "m", System: "be careful", ToolChoice: "auto", Params: json.RawMessage(`{"temperature":0.5}`),
			OutputTokensMax: 700, CacheTTL: "1h",
			Tools: []executor.Tool{{Name: "stat", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)}},
			Defined: []executor.Tool{
				{Name: "shell", Description: "runs", Schema: json.RawMessage(`{"type":"object"}`)},
				{Name: "stat", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)},
			},
			Messages: []executor.Message{
				{Role: "user", Text: "repair\na long text\nplease"},
				{Role: "user", Text: "über"},
				{Role: "assistant", Text: "I look", Opaque: json.RawMessage(`[1]`), Calls: []executor.MessageCall{
					{ID: "r1t2c0", Name: "stat", Arguments: `{"path": "a"}`}, {ID: "r1t2c1", Name: "shell"}, {ID: "r1t2c2", Name: "nope", Arguments: "{"},
					{ID: "r1t2c3", Name: "grep", Arguments: "{}"}, {ID: "r1t2c4", Name: "grep", Arguments: "{}"},
					{ID: "r1t2c5", Name: "grep", Arguments: "{}"}, {ID: "r1t2c6", Name: "grep", Arguments: "{}"},
				}},
				{Role: "tool", CallID: "r1t2c0", Text: "a file"},
				{Role: "tool", CallID: "r1t2c1", Text: "error: exit_status: it failed\nexit 1", Error: true},
				{Role: "tool", CallID: "r1t2c2", Text: "error: tool_unknown: no tool nope", Error: true},
				{Role: "tool", CallID: "r1t2c3", Text: "(no output)"},
				{Role: "tool", CallID: "r1t2c4", Text: "error: outcome_unknown", Error: true},
				{Role: "tool", CallID: "r1t2c5", Text: "error: cancelled", Error: true},
				{Role: "tool", CallID: "r1t2c6", Text: "much"},
				{Role: "assistant", Text: "done"},
				{Role: "user", Text: "über"},
			},
		}
		for _, when := range []string{"from the log", "from the cache"} {
			got, fault, err := r.request(t.Context(), &g)
			if err != nil || fault != nil {
				t.Fatalf("%s: %v, %v", when, fault, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(executor.Request{}, "Renderings")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
			// The second time nothing is read.
			w.mu.Lock()
			w.events, w.blobs = nil, nil
			w.mu.Unlock()
		}
		r.events.clear()
		if _, fault, _ := r.request(t.Context(), &g); fault == nil || fault.Code != codeTranscript {
			t.Errorf("after clear: got %v, want %s", fault, codeTranscript)
		}
	})
}

// poison puts other bytes under the names of all blobs.
func (w *world) poison() {
	for ref := range w.blobs {
		w.blobs[ref] = []byte(`{"args_schema":{},"description":"false","tool_name":"false"}`)
	}
}

// What can never be read is a fault, which ends the run; what can't be read
// now is an error.
func TestRequestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, w *world, g *session.Generation)
		code  string
	}{
		{"no items", func(_ *testing.T, _ *world, g *session.Generation) { g.Items = nil }, codeTranscript},
		{"an event that is not there", func(_ *testing.T, _ *world, g *session.Generation) { g.Items[0].Seq = 99 }, codeTranscript},
		{"an event of another session", func(t *testing.T, w *world, g *session.Generation) {
			g.Items[0].Seq = w.say(t, session.DoorIn, "s2", session.TypeRunRequested, session.RunRequested{Input: *text("secret")})
		}, codeTranscript},
		{"bytes that are no event", func(_ *testing.T, w *world, g *session.Generation) { w.events[g.Items[0].Seq-1].Payload = []byte("x") }, codeTranscript},
		{"another kind of event", func(_ *testing.T, _ *world, g *session.Generation) { g.Items[0].Seq = g.Items[2].Seq }, codeTranscript},
		{"an event that no model is shown", func(t *testing.T, w *world, g *session.Generation) {
			g.Items[0].Seq = w.say(t, session.DoorCtl, "s1", session.TypeFactsSet, session.FactsSet{})
		}, codeTranscript},
		{"a role of the future", func(_ *testing.T, _ *world, g *session.Generation) { g.Items[0].Role = "critic" }, codeTranscript},
		{"a result without a turn", func(_ *testing.T, _ *world, g *session.Generation) { g.Items = g.Items[3:4] }, codeTranscript},
		{"a result of a call that was not made", func(_ *testing.T, _ *world, g *session.Generation) { g.Items[3].Call = 7 }, codeTranscript},
		{"a blob that is not there", func(_ *testing.T, w *world, _ *session.Generation) { clear(w.blobs) }, codeToolNotRegistered},
		{"a content that is not there", func(_ *testing.T, w *world, g *session.Generation) {
			g.Tools, g.Defined = nil, nil
			clear(w.blobs)
		}, codeTranscript},
		{"a blob that was replaced", func(_ *testing.T, w *world, _ *session.Generation) { w.poison() }, codeToolNotRegistered},
		{"a content that was replaced", func(_ *testing.T, w *world, g *session.Generation) {
			g.Tools, g.Defined = nil, nil
			w.poison()
		}, codeTranscript},
		{"an image that was replaced", func(t *testing.T, w *world, g *session.Generation) {
			png := *blob(t, w, "\x89PNG")
			png.MediaType = "image/png"
			g.Tools, g.Defined, g.Items = nil, nil, g.Items[:1]
			g.Items[0].Seq = w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: png})
			w.poison()
		}, codeTranscript},
		{"a descriptor that is none", func(t *testing.T, w *world, g *session.Generation) {
			g.Tools = []codec.Hash{blob(t, w, "x").Blob.Hash}
		}, codeToolNotRegistered},
		{"a definition that is not there", func(_ *testing.T, _ *world, g *session.Generation) {
			g.Defined = []codec.Hash{codec.RefOf([]byte("x")).Hash}
		}, codeToolNotRegistered},
		{"a content that is too large", func(t *testing.T, w *world, g *session.Generation) {
			g.Items = g.Items[:1]
			g.Items[0].Seq = w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *blob(t, w, strings.Repeat("x", contentBytesMax+1))})
		}, codeRequestTooLarge},
		{"a content that is larger than it says", func(t *testing.T, w *world, g *session.Generation) {
			c := *blob(t, w, strings.Repeat("x", contentBytesMax+1))
			c.Size = 1
			g.Items = g.Items[:1]
			g.Items[0].Seq = w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: c})
		}, codeRequestTooLarge},
		{"a transcript that is too large", func(t *testing.T, w *world, g *session.Generation) {
			c := *blob(t, w, strings.Repeat("x", contentBytesMax))
			g.Items = nil
			for range requestBytesMax/contentBytesMax + 1 {
				seq := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: c})
				g.Items = append(g.Items, session.Item{Role: session.RoleUser, Seq: seq})
			}
		}, codeRequestTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			g := conversation(t, w)
			c.spoil(t, w, &g)
			_, fault, err := newReader(w).request(t.Context(), &g)
			if err != nil || fault == nil || fault.Code != c.code {
				t.Errorf("got %v, %v; want %s", fault, err, c.code)
			}
		})
	}
}

// A generation that can't be asked fails, but only by the bridge that holds
// its claim; one that can't be read now is offered again.
func TestRefusedGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(), newQueue()
		away := &logless{world: w, left: 3}
		b := startBridgeOn(t, away, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
			t.Error("asked")
			return executor.Answer{}, nil
		})})
		g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: 99})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", g)
		pass(time.Minute)
		b.stop()
		if got, want := fmt.Sprint(w.settlements(t)), "[r1t1 failed transcript_unreadable]"; got != want {
			t.Errorf("settled: got %s, want %s", got, want)
		}
		if len(w.claims) != 1 {
			t.Errorf("claims: got %v, want ours", w.claims)
		}
		if _, returned := q.counts(); returned != 3 {
			t.Errorf("given back %d times, want 3: the log was away as often", returned)
		}
	})
}

// logless is a world whose log is away at first.
type logless struct {
	*world
	left int
}

func (l *logless) Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	if l.left > 0 {
		l.left--
		return nil, errors.New("away")
	}
	return l.world.Events(ctx, sid, seqs)
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]string{"r1t2": "r1t2", "r1t2a2": "r1t2", "r1t2c0": "r1t2c0", "r1t2c0a10": "r1t2c0"} {
		if got := placeOf(effect); got != want {
			t.Errorf("%s: got %s, want %s", effect, got, want)
		}
	}
}

// A cache holds no more than it may, and drops what was not used for longest.
func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache[int, string](100)
	for i := range 10 {
		c.put(i, fmt.Sprint(i), 20)
		if _, ok := c.get(0); !ok {
			t.Errorf("0 was dropped after %d, though it is used", i)
		}
	}
	if _, ok := c.get(5); ok || c.bytes != 100 || c.order.Len() != 5 {
		t.Errorf("5 is kept: %v; %d bytes, %d entries", ok, c.bytes, c.order.Len())
	}
	c.put(0, "again", 20)
	if got, _ := c.get(0); got != "0" || c.bytes != 100 {
		t.Errorf("put twice: got %q, %d bytes", got, c.bytes)
	}
	c.put(77, "large", 26)
	if _, ok := c.get(77); ok {
		t.Error("kept what is larger than a quarter")
	}
	c.clear()
	if _, ok := c.get(0); ok || c.bytes != 0 || len(c.at) != 0 {
		t.Error("clear left something")
	}
}
