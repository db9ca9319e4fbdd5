package prompt

// What a model is shown of a transcript whose beginning left the window.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// With the tool that reads results, the lines name it and the calls.
func TestWindowNamesTheToolThatReads(t *testing.T) {
	t.Parallel()
	l := newLog()
	calls := l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t1a2", Calls: []session.ObservedCall{{ToolName: "look"}, {ToolName: "find"}, {ToolName: "dump"}, {ToolName: "short"}},
	})
	settled := func(effect string, output *session.Content) uint64 {
		return l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: effect, Status: "succeeded", Output: output})
	}
	g := generation("r1t2",
		session.Item{Role: session.RoleAssistant, Seq: calls},
		session.Item{Role: session.RoleTool, Seq: settled("r1t1c0", text("all of it")), Shown: session.ShownCleared},
		session.Item{Role: session.RoleTool, Call: 1, Seq: settled("r1t1c1", text(strings.Repeat("a", 2_000))), Shown: session.ShownCut, Bytes: 400},
		session.Item{Role: session.RoleTool, Call: 2, Seq: settled("r1t1c2", blob(l, strings.Repeat("b", 300<<10)))},
		session.Item{Role: session.RoleTool, Call: 3, Seq: settled("r1t1c3", text("c"))},
	)
	ref := session.ReadResultRef()
	cleared := "[The result of r1t1c0, 9 bytes of look, is cleared; read_result reads it again.]"
	for name, has := range map[string]func(*session.Generation){
		"offered": func(g *session.Generation) { g.Tools = []codec.Hash{ref} },
		"masked":  func(g *session.Generation) { g.Defined = []codec.Hash{ref} },
		"":        func(*session.Generation) {},
	} {
		g := g
		has(&g)
		r := New(l)
		r.tools.Put(ref, executor.Tool{Name: "read_result"}, 1)
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(name, fault, err)
		}
		m := request.Messages
		if (m[1].Text == cleared) != (name != "") {
			t.Errorf("%q: the cleared result is %q", name, m[1].Text)
		}
		for i, want := range []bool{false, true, true, false} {
			call := fmt.Sprintf("r1t1c%d", i)
			if got := strings.HasSuffix(m[1+i].Text, "\n[read_result reads all of the result of "+call+".]"); got != (want && name != "") {
				t.Errorf("%q: %s ends with %q", name, call, m[1+i].Text[max(0, len(m[1+i].Text)-80):])
			}
		}
	}
}

// The model is told how many messages left. A line stands in the place of a cleared
// result, and the beginning and the end in the place of a text that alone is too large.
func TestWindowIsShown(t *testing.T) {
	t.Parallel()
	l := newLog()
	long := strings.Repeat("a", 900) + strings.Repeat("z", 900)
	input := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text(long)})
	calls := l.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: "r1t1", Calls: []session.ObservedCall{{ToolName: "look"}, {ToolName: "find"}},
	})
	look := l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: "r1t1c0", Status: "succeeded", Output: text("all of it")})
	find := l.say(t, session.DoorTool, "s1", session.TypeToolCallSettled, session.ToolCallSettled{Effect: "r1t1c1", Status: "failed", Error: &session.Fault{Code: "gone"}})
	g := generation("r1t2",
		session.Item{Role: session.RoleUser, Seq: input, Shown: session.ShownCut, Bytes: 400},
		session.Item{Role: session.RoleAssistant, Seq: calls},
		session.Item{Role: session.RoleTool, Seq: look, Shown: session.ShownCleared},
		session.Item{Role: session.RoleTool, Call: 1, Seq: find, Shown: session.ShownCleared},
	)
	g.Cut, g.V = 12, session.WindowVersion
	r := New(l)
	for _, when := range []string{"from the log", "from the cache"} {
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(when, fault, err)
		}
		got := request.Messages
		want := []string{
			"[This conversation began earlier: its first 12 messages are not shown any more.]",
			got[1].Text,
			"",
			"[This result of look, 9 bytes, is not shown any more. Call the tool again if you need it.]",
			"[This result of find, 11 bytes, is not shown any more. Call the tool again if you need it.]",
		}
		texts := slices.Collect(func(yield func(string) bool) {
			for _, m := range got {
				if !yield(m.Text) {
					return
				}
			}
		})
		if !slices.Equal(texts, want) {
			t.Errorf("%s: got  %q\nwant %q", when, texts, want)
		}
		if roles := rolesOf(got); roles != "user user assistant tool tool" {
			t.Errorf("%s: the roles are %s", when, roles)
		}
		shown := got[1].Text
		if len(shown) > 600 || !strings.HasPrefix(shown, strings.Repeat("a", 300)) || !strings.HasSuffix(shown, strings.Repeat("z", 100)) {
			t.Errorf("%s: %d bytes of the input are shown: %s", when, len(shown), shown)
		}
		if got[3].Error || !got[4].Error {
			t.Errorf("%s: the results are shown as failed: %v, %v", when, got[3].Error, got[4].Error)
		}
	}
}

// The text of a summary's settlement stands in the first message of the conversation. A
// compaction ends with the request for the next summary. What precedes the conversation stays
// before both, and a skill of the config keeps the run's input as its arguments.
func TestSummariesAreShownAndRequested(t *testing.T) {
	t.Parallel()
	l := newLog()
	summary := l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t2k1", Status: "ok", Text: text("They counted.")})
	g := prompted(t, l, l.part(spaces.PromptUser, "example"), l.part(spaces.PromptSkill, "Greet $1.", "greet"))
	g.Prompt[1].Input = uint64(g.Items.Seqs[0])
	g.Cut, g.Summary, g.Compact, g.V = 7, summary, "Sum up.", session.WindowVersion
	r := New(l)
	for _, when := range []string{"from the log", "from the cache"} {
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(when, fault, err)
		}
		want := []executor.Message{
			{Role: "user", Text: "example"},
			{Role: "user", Text: "[This conversation began earlier: its first 7 messages are not shown any more.]\n\nA summary of them:\n\nThey counted."},
			{Role: "user", Text: "hello"},
			{Role: "user", Text: "Sum up."},
		}
		if diff := cmp.Diff(want, request.Messages); diff != "" || !request.Compact {
			t.Errorf("%s: compact %v (-want +got):\n%s", when, request.Compact, diff)
		}
		if want := "be careful\n\n" + space.ShownSkill("greet", "Greet hello."); request.System != want {
			t.Errorf("%s: system %q, want %q", when, request.System, want)
		}
	}
	g.Summary = uint64(g.Items.Seqs[0])
	if _, fault, err := r.Request(t.Context(), &g); err != nil || fault == nil || fault.Code != "transcript_unreadable" {
		t.Errorf("an input as a summary: got %v, %v", fault, err)
	}
}

func rolesOf(messages []executor.Message) string {
	var roles []string
	for _, m := range messages {
		roles = append(roles, m.Role)
	}
	return strings.Join(roles, " ")
}
