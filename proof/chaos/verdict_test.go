package chaos

// Verdicts: each rule is broken once, which must be found, and allowed ends
// must pass.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// whole is the end of a run of two turns: a call that may not run twice, then
// one that may, then an answer.
func whole() *End {
	return &End{
		Runs: []RunEnd{{Lifecycle: "completed"}},
		Calls: []Call{
			{Effect: "r1t1c0", Status: "succeeded", Executed: 1},
			{Effect: "r1t2c0", Status: "succeeded", Executed: 1, RetrySafe: true},
		},
		Transcript: []Item{
			{Role: session.RoleUser, Text: "do it"},
			{Role: session.RoleAssistant, Text: "I do"}, {Role: session.RoleTool, Text: "done"},
			{Role: session.RoleAssistant, Text: "I look"}, {Role: session.RoleTool, Text: "seen"},
			{Role: session.RoleAssistant, Text: "it is done"},
		},
		Notices: []Notice{{1, "SessionOpened", "{}"}, {2, "RunStarted", "{}"}, {3, "RunFinished", "{}"}},
		Traced:  []string{"r1", "r1t1", "r1t1a1"},
	}
}

// lost is what may be left when the bridge died while it carried out the first
// call: the model was told, and gave up.
func lost() *End {
	e := whole()
	e.Runs = []RunEnd{{Lifecycle: "failed", Code: "script_mismatch"}}
	e.Calls = []Call{{Effect: "r1t1c0", Status: "outcome_unknown", Executed: 1}}
	e.Transcript = e.Transcript[:3]
	e.Traced = e.Traced[:2]
	e.Transcript[2] = Item{Role: session.RoleTool, Text: "outcome_unknown", Unknown: true}
	return e
}

func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(*End)
		from  func() *End
		part  Part
		want  string
	}{
		{"an unsafe call ran twice", func(e *End) { e.Calls[0].Executed = 2 }, whole, Bridge, "r1t1c0, not retry-safe, was settled succeeded and carried out 2 times"},
		{"a settled call never ran", func(e *End) { e.Calls[0].Executed = 0 }, whole, Bridge, "carried out 0 times"},
		{"a retry-safe one never ran", func(e *End) { e.Calls[1].Executed = 0 }, whole, Bridge, "r1t2c0, retry-safe"},
		{"one of unknown outcome ran twice", func(e *End) { e.Calls[0].Executed = 2 }, lost, Bridge, "settled outcome_unknown and carried out 2 times"},
		{"a cancelled one ran twice", func(e *End) { e.Calls[0] = Call{Effect: "r1t1c0", Executed: 2} }, lost, Bridge, "settled by the session and carried out 2 times"},
		{"an outcome is unknown and no bridge died", func(*End) {}, lost, SessionActor, "no bridge was killed"},
		{"it ran and nobody asked", func(e *End) { e.Unasked = []string{"s1.r1t9c0"} }, whole, Bridge, "s1.r1t9c0 was carried out"},
		{"another end", func(e *End) { e.Runs[0].Lifecycle = "failed" }, whole, Bridge, "the runs ended"},
		{"no end", func(e *End) { e.Runs = nil }, lost, Bridge, "0 runs ended"},
		{"a call was left out", func(e *End) { e.Calls = e.Calls[:1] }, whole, Bridge, "r1t2c0 was not published"},
		{"another text", func(e *End) { e.Transcript[4].Text = "unseen" }, whole, Bridge, "item 5 of the transcript"},
		{"a result is missing", func(e *End) { e.Transcript = slices.Delete(e.Transcript, 4, 5) }, whole, Bridge, "item 5 of the transcript"},
		{"an item twice", func(e *End) { e.Transcript = append(e.Transcript, e.Transcript[5]) }, whole, Bridge, "goes on after item 6"},
		{"an end too early", func(e *End) { e.Transcript = e.Transcript[:5] }, whole, Bridge, "ends before item 6"},
		{"another text before the unknown one", func(e *End) { e.Transcript[1].Text = "I don't" }, lost, Bridge, "item 2 of the transcript"},
		{"something is open", func(e *End) { e.Open = []string{"r1t2c0"} }, whole, Bridge, "r1t2c0 is open"},
		{"a notice is missing", func(e *End) { e.Notices = slices.Delete(e.Notices, 1, 2) }, whole, Bridge, "notice 3 comes after notice 1"},
		{"a notice tells two things", func(e *End) { e.Notices = append(e.Notices, Notice{2, "RunStarted", "{1}"}) }, whole, Bridge, "has two contents"},
		{"a run ended twice", func(e *End) { e.Notices = append(e.Notices, Notice{4, "RunFinished", "{}"}) }, whole, Bridge, "2 runs have a RunFinished"},
		{"quarantine", func(e *End) { e.Notices = append(e.Notices, Notice{0, "SessionQuarantined", "{}"}) }, whole, Bridge, "quarantined"},
		{"another span", func(e *End) { e.Spans = []string{"the span r1 was not exported"} }, whole, Bridge, "the span r1 was not exported"},
		{"a run without a span", func(e *End) { e.Traced = e.Traced[1:] }, whole, Bridge, "the span r1 of the trial without a kill is missing"},
		{"a span more", func(e *End) { e.Traced = append(e.Traced, "r1t2") }, whole, Bridge, "the span r1t2 is not in the trial without a kill"},
		{"another fold", func(e *End) { e.Replay = []string{"state differs"} }, whole, Bridge, "replay: state differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := c.from()
			c.spoil(end)
			got := strings.Join(Check(c.part == Bridge, whole(), end), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestCheckAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*End)
		from   func() *End
		part   Part
	}{
		{"the same", func(*End) {}, whole, SessionActor},
		{"a retry-safe call twice", func(e *End) { e.Calls[1].Executed = 2 }, whole, Bridge},
		{"an unknown outcome", func(*End) {}, lost, Bridge},
		{"an unknown outcome of what never ran", func(e *End) { e.Calls[0].Executed = 0 }, lost, Bridge},
		{"a model that goes on after it", func(e *End) {
			e.Transcript = append(e.Transcript, Item{Role: session.RoleAssistant, Text: "again"})
			e.Calls = append(e.Calls, Call{Effect: "r1t2c0", Status: "succeeded", Executed: 1})
		}, lost, Bridge},
		{"the same notice twice", func(e *End) { e.Notices = append(e.Notices, e.Notices[2]) }, whole, SessionActor},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := c.from()
			c.change(end)
			if faults := Check(c.part == Bridge, whole(), end); len(faults) > 0 {
				t.Errorf("got %q, want nothing", faults)
			}
		})
	}
}
