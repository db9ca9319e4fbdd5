package prompt

// Requests: every kind of item, the source of its text, and items that can't be
// read.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// conversation is a log with one event of each kind, and the generation that
// shows it.
func conversation(t *testing.T, l *fakeLog) session.Generation {
	t.Helper()
	user := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{
		Input: session.Content{Parts: []session.Content{*text("repair"), *blob(l, "a long text"), {Parts: []session.Content{*text("please")}}}},
	})
	second := l.add(session.DoorIn, "s1", []byte(` {"type":"RunRequested","data":{"input":{"text":"über"}}}`))
	calls := l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t2a3", Text: text("I look"), Opaque: raw(t, `[1]`),
		Calls: []session.ObservedCall{
			{ToolName: "stat", Arguments: `{"path": "a"}`, ProviderCallID: "x"},
			{ToolName: "shell", Arguments: "", ProviderCallID: "x"},
			{ToolName: "nope", Arguments: "{"},
			{ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"}, {ToolName: "grep", Arguments: "{}"},
		},
	})
	settled := func(b session.ToolCallSettled) uint64 {
		return l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, b)
	}
	failed := settled(session.ToolCallSettled{Effect: "r1t2c1", Status: "failed", Output: text("exit 1"), Error: &session.Fault{Code: "exit_status", Detail: "it failed"}})
	stat := settled(session.ToolCallSettled{Effect: "r1t2c0", Status: "succeeded", Output: text("a file")})
	empty := settled(session.ToolCallSettled{Effect: "r1t2c3", Status: "succeeded"})
	bare := settled(session.ToolCallSettled{Effect: "r1t2c4", Status: "outcome_unknown"})
	noDetail := settled(session.ToolCallSettled{Effect: "r1t2c5", Status: "cancelled", Error: &session.Fault{Code: "cancelled"}})
	large := settled(session.ToolCallSettled{Effect: "r1t2c6", Status: "succeeded", Output: blob(l, "much")})
	said := l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t3", Status: "ok", Text: text("done")})
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
	descriptor := l.put(`{"args_schema":{"type":"object"},"description":"looks","tool_name":"stat"}`)
	masked := l.put(`{"args_schema":{"type":"object"},"description":"runs","tool_name":"shell"}`)
	g.CacheTTL, g.Defined = "1h", []codec.Hash{masked.Hash, descriptor.Hash}
	g.System, g.ToolChoice, g.Params, g.Tools = "be careful", "auto", raw(t, `{"temperature":0.5}`), []codec.Hash{descriptor.Hash}
	g.Toolset, g.OutputTokensMax = codec.Sum([]byte("stat")), 700
	return g
}

func TestRequestHoldsTheConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		g := conversation(t, l)
		r := New(l)
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
			got, fault, err := r.Request(t.Context(), &g)
			if err != nil || fault != nil {
				t.Fatalf("%s: %v, %v", when, fault, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(executor.Request{}, "Renderings")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
			// The second time nothing is read.
			l.lose()
		}
		r.events.clear()
		if _, fault, _ := r.Request(t.Context(), &g); fault == nil || fault.Code != codeTranscript {
			t.Errorf("after clear: got %v, want %s", fault, codeTranscript)
		}
	})
}

// poison puts other bytes under the names of all blobs.
func (l *fakeLog) poison() {
	for ref := range l.blobs {
		l.blobs[ref] = []byte(`{"args_schema":{},"description":"false","tool_name":"false"}`)
	}
}

// A permanent problem is a fault, which ends the run; a temporary one is an error.
func TestPermanentProblemIsAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, l *fakeLog, g *session.Generation)
		code  string
	}{
		{"no items", func(_ *testing.T, _ *fakeLog, g *session.Generation) { g.Items = session.ListItems() }, codeTranscript},
		{"an event that is not there", func(t *testing.T, _ *fakeLog, g *session.Generation) { first(t, g, 99) }, codeTranscript},
		{"an event of another session", func(t *testing.T, l *fakeLog, g *session.Generation) {
			first(t, g, l.say(t, session.DoorIn, "s2", session.TypeRunRequested, session.RunRequested{Input: *text("secret")}))
		}, codeTranscript},
		{"bytes that are no event", func(_ *testing.T, l *fakeLog, g *session.Generation) {
			l.events[g.Items.Seqs[0]-1].Payload = []byte("x")
		}, codeTranscript},
		{"another kind of event", func(t *testing.T, _ *fakeLog, g *session.Generation) { first(t, g, listed(t, g.Items)[2].Seq) }, codeTranscript},
		{"an event that no model is shown", func(t *testing.T, l *fakeLog, g *session.Generation) {
			first(t, g, l.say(t, session.DoorCtl, "s1", session.TypeFactsSet, session.FactsSet{}))
		}, codeTranscript},
		{"a role of the future", func(_ *testing.T, _ *fakeLog, g *session.Generation) { g.Items.Roles = "c" + g.Items.Roles[1:] }, codeTranscript},
		{"a result without a turn", func(t *testing.T, _ *fakeLog, g *session.Generation) {
			g.Items = session.ListItems(listed(t, g.Items)[3:4]...)
		}, codeTranscript},
		{"a result of a call that was not made", func(t *testing.T, _ *fakeLog, g *session.Generation) {
			items := listed(t, g.Items)
			results := slices.IndexFunc(items, func(it session.Item) bool { return it.Role == session.RoleTool })
			g.Items = session.ListItems(slices.Insert(items, results, slices.Repeat(items[results:results+1], 8)...)...)
		}, codeTranscript},
		{"a blob that is not there", func(_ *testing.T, l *fakeLog, _ *session.Generation) { clear(l.blobs) }, codeToolNotRegistered},
		{"a content that is not there", func(_ *testing.T, l *fakeLog, g *session.Generation) {
			g.Tools, g.Defined = nil, nil
			clear(l.blobs)
		}, codeTranscript},
		{"a blob that was replaced", func(_ *testing.T, l *fakeLog, _ *session.Generation) { l.poison() }, codeToolNotRegistered},
		{"a content that was replaced", func(_ *testing.T, l *fakeLog, g *session.Generation) {
			g.Tools, g.Defined = nil, nil
			l.poison()
		}, codeTranscript},
		{"an image that was replaced", func(t *testing.T, l *fakeLog, g *session.Generation) {
			png := *blob(l, "\x89PNG")
			png.MediaType = "image/png"
			g.Tools, g.Defined = nil, nil
			g.Items = session.ListItems(session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: png})})
			l.poison()
		}, codeTranscript},
		{"a descriptor that is none", func(t *testing.T, l *fakeLog, g *session.Generation) {
			g.Tools = []codec.Hash{blob(l, "x").Blob.Hash}
		}, codeToolNotRegistered},
		{"a definition that is not there", func(_ *testing.T, _ *fakeLog, g *session.Generation) {
			g.Defined = []codec.Hash{codec.RefOf([]byte("x")).Hash}
		}, codeToolNotRegistered},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLog()
			g := conversation(t, l)
			c.spoil(t, l, &g)
			_, fault, err := New(l).Request(t.Context(), &g)
			if err != nil || fault == nil || fault.Code != c.code {
				t.Errorf("got %v, %v; want %s", fault, err, c.code)
			}
		})
	}
}

// Whatever a transcript holds, the next request can be built: what a model can't be
// shown whole is cut in the middle.
func TestTooLongTextsAreCut(t *testing.T) {
	t.Parallel()
	long := "begin" + strings.Repeat("é", ContentBytesMax/2) + "end"
	for _, c := range []struct {
		name  string
		input func(l *fakeLog) session.Content
		want  string
	}{
		{"a blob", func(l *fakeLog) session.Content { return *blob(l, long) }, "left out here; the whole is sha256-"},
		{"a blob that is longer than it says", func(l *fakeLog) session.Content {
			c := *blob(l, long)
			c.Size = 1
			return c
		}, "left out here; the whole is sha256-"},
		{"a blob that is not read", func(l *fakeLog) session.Content {
			return session.Content{Parts: []session.Content{*text("begin"), *blob(l, strings.Repeat(long, 4)), *text("end")}}
		}, "too many to be shown: more than 32 MiB"},
		{"parts", func(l *fakeLog) session.Content {
			return session.Content{Parts: []session.Content{*text("begin"), *blob(l, long[:6<<20]), *blob(l, long[5:6<<20]), *text("end")}}
		}, " bytes are left out here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLog()
			input := c.input(l)
			for _, g := range []session.Generation{
				generation("r1t1", session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: input})}),
				generation("r1t1", session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", session.TypeSteerRequested, session.SteerRequested{Input: input})}),
				generation("r1t2", session.Item{Role: session.RoleAssistant, Seq: l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Text: &input})}),
				batch(t, l, session.ToolCallSettled{Effect: "r1t1c2", Status: "succeeded", Output: &input}),
			} {
				request, fault, err := New(l).Request(t.Context(), &g)
				if err != nil || fault != nil {
					t.Fatal(err, fault)
				}
				shown := request.Messages[len(request.Messages)-1].Text
				if !strings.HasPrefix(shown, "begin") || !strings.HasSuffix(shown, "end") || !strings.Contains(shown, c.want) || !utf8.ValidString(shown) {
					t.Errorf("%s: shown are %d bytes, %.40q to %.40q", listed(t, g.Items)[0].Role, len(shown), shown, shown[max(0, len(shown)-40):])
				}
			}
		})
	}
}

// The latest texts are whole.
func TestEarlyTextsOfALongTranscriptAreCut(t *testing.T) {
	t.Parallel()
	l := newLog()
	c := *blob(l, strings.Repeat("x", ContentBytesMax))
	g := generation("r1t1")
	for range requestBytesMax/ContentBytesMax + 2 {
		seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: c})
		g.Items = also(t, g.Items, session.Item{Role: session.RoleUser, Seq: seq})
	}
	r := New(l)
	for _, when := range []string{"from the log", "from the cache"} {
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(when, err, fault)
		}
		for i, whole := range map[int]bool{0: false, 1: false, 2: false, 3: true, len(g.Items.Seqs) - 1: true} {
			if got := len(request.Messages[i].Text); whole != (got == ContentBytesMax) || got > ContentBytesMax {
				t.Errorf("%s: message %d has %d bytes", when, i, got)
			}
		}
	}
}

func TestBatchOfAnEffect(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]string{"r1t2": "r1t2", "r1t2a2": "r1t2", "r1t2c0": "r1t2c0", "r1t2c0a10": "r1t2c0"} {
		if got := batchOf(effect); got != want {
			t.Errorf("%s: got %s, want %s", effect, got, want)
		}
	}
}

func TestCacheEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c := NewCache[int, string](100)
	for i := range 10 {
		c.Put(i, fmt.Sprint(i), 20)
		if _, ok := c.Get(0); !ok {
			t.Errorf("0 was dropped after %d, though it is used", i)
		}
	}
	if _, ok := c.Get(5); ok || c.bytes != 100 || c.order.Len() != 5 {
		t.Errorf("5 is kept: %v; %d bytes, %d entries", ok, c.bytes, c.order.Len())
	}
	c.Put(0, "again", 20)
	if got, _ := c.Get(0); got != "0" || c.bytes != 100 {
		t.Errorf("put twice: got %q, %d bytes", got, c.bytes)
	}
	c.Put(77, "large", 26)
	if _, ok := c.Get(77); ok {
		t.Error("kept what is larger than a quarter")
	}
}
