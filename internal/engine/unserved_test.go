package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/presence"
)

var opened = []session.ViewEffect{
	{Effect: "r1t2c1", Class: session.ClassTool, Target: "mail"},
	{Effect: "r1t2c0", Class: session.ClassTool, Target: "host"},
	{Effect: "r1t2c2", Class: session.ClassTool, Target: "mail"},
	{Effect: "w1", Class: session.ClassWake, Target: "-"},
}

func TestUnserved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	heard := func(before time.Duration, targets ...string) presence.BridgeHeard {
		return presence.BridgeHeard{At: now.Add(-before), Heartbeat: presence.Heartbeat{Targets: targets}}
	}
	for _, c := range []struct {
		name    string
		open    []session.ViewEffect
		bridges []presence.BridgeHeard
		want    []string
	}{
		{"one is served", opened, []presence.BridgeHeard{heard(0, "tool/host"), heard(presence.SilentAfter, "tool/host")}, []string{"tool/mail"}},
		{"none is", opened, nil, []string{"tool/host", "tool/mail"}},
		{"its bridge is silent", opened, []presence.BridgeHeard{heard(presence.SilentAfter+1, "tool/host", "tool/mail")}, []string{"tool/host", "tool/mail"}},
		{"the name of another class", opened, []presence.BridgeHeard{heard(0, "tool/host", "llm/mail")}, []string{"tool/mail"}},
		{"only a wake is open", opened[3:], nil, nil},
		{"nothing is open", nil, nil, nil},
	} {
		if got := unserved(c.open, c.bridges, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A view has those troubles that bridges report for the targets of open effects.
func TestTroubles(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	said := func(code string, next int64) session.Trouble {
		return session.Trouble{Target: "tool/mail", Code: code, Since: 5, Next: next}
	}
	for _, c := range []struct {
		name   string
		said   session.Trouble
		before time.Duration
		want   bool
	}{
		{"it is tried again", said("network", 9), 0, true},
		{"it was settled as failed", said("auth", 0), 0, false},
		{"a key is missing", said(session.TroubleLacks, 0), 0, true},
		{"its tools changed", said(session.TroubleExecutor, 0), 0, true},
		{"the bridge is silent", said("network", 9), presence.SilentAfter + 1, false},
		{"nothing of the target is open", session.Trouble{Target: "llm/p", Code: "network", Next: 9}, 0, false},
	} {
		bridge := presence.BridgeHeard{At: now.Add(-c.before), Heartbeat: presence.Heartbeat{Targets: []string{"tool/mail"}, Troubles: []session.Trouble{c.said}}}
		got := troubles(opened, []presence.BridgeHeard{bridge, bridge}, now)
		if (len(got) == 1) != c.want || c.want && !slices.Equal(got[0].Effects, []string{"r1t2c1", "r1t2c2"}) {
			t.Errorf("%s: got %+v, want one: %v", c.name, got, c.want)
		}
	}
}

// TestViewSaysWhyAnApprovalIsInVain: the view of a session whose call waits for a
// person says that nobody serves the call's target, or that its deadline has passed.
func TestViewSaysWhyAnApprovalIsInVain(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, map[string]any{"tools": []any{toolOfX("pay", "effect", map[string]any{"approval": "always"})}}), s.run("s1"))
		s.deliver(s.say(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "pay", "arguments": "{}"}}}))
		state := s.actor.sessions["s1"].state
		now := time.UnixMilli(state.Clock)
		target := "tool/" + state.CallTarget(state.View().Batch.Calls[0].ToolID)
		for _, c := range []struct {
			name  string
			heard []presence.BridgeHeard
			sure  bool
			now   time.Time
			want  string
		}{
			{"served", []presence.BridgeHeard{{At: now, Heartbeat: presence.Heartbeat{Targets: []string{target}}}}, true, now, ""},
			{"nobody serves it", []presence.BridgeHeard{{At: now, Heartbeat: presence.Heartbeat{Targets: []string{"tool/other"}}}}, true, now, session.TroubleUnserved},
			{"its bridge is silent", []presence.BridgeHeard{{At: now.Add(-presence.SilentAfter - 1), Heartbeat: presence.Heartbeat{Targets: []string{target}}}}, true, now, session.TroubleUnserved},
			{"who serves is not known yet", nil, false, now, ""},
			{"its deadline has passed", nil, false, now.Add(25 * time.Hour), session.CodeApprovalExpired},
		} {
			v := state.View()
			addWhyNot(state, &v, c.heard, c.sure, c.now, c.now)
			if got := v.Batch.Calls[0]; got.Status != session.CallAwaiting || got.Code != c.want || (got.Detail == "") != (c.want == "") {
				t.Errorf("%s: got %s %q %q, want code %q", c.name, got.Status, got.Code, got.Detail, c.want)
			}
		}
	})
}

// Claims are read only if both a silent bridge and a live one serve the target of
// an open effect.
func TestOrphans(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	gone := presence.BridgeHeard{Instance: "a", At: now.Add(-presence.SilentAfter - 1), Heartbeat: presence.Heartbeat{Targets: []string{"tool/mail"}}}
	lives := presence.BridgeHeard{Instance: "b", At: now, Heartbeat: presence.Heartbeat{Targets: []string{"tool/mail", "tool/host"}}}
	for _, c := range []struct {
		bridges []presence.BridgeHeard
		want    int
	}{{nil, 0}, {[]presence.BridgeHeard{gone}, 0}, {[]presence.BridgeHeard{lives}, 0}, {[]presence.BridgeHeard{gone, lives}, 2}} {
		if got := orphans(opened, c.bridges, now); len(got) != c.want {
			t.Errorf("%+v: got %+v, want %d", c.bridges, got, c.want)
		}
	}
}

// A retry-safe call has no claim. That its bridge may be gone is reported as
// possible, and only of calls that were opened before.
func TestACallThatMayRunTwiceMayBeHeld(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		safe, unsafe := toolOfX("look", "effect", map[string]any{"retry_safe": true}), toolOfX("pay", "effect", map[string]any{"retry_safe": false})
		s.deliver(s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, map[string]any{"tools": []any{safe, unsafe}}), s.run("s1"))
		s.deliver(s.say(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{
			map[string]any{"tool_name": "look", "arguments": "{}"}, map[string]any{"tool_name": "pay", "arguments": "{}"},
		}}))
		state := s.actor.sessions["s1"].state
		open, asked, now := state.View().Open, time.UnixMilli(state.Clock), time.UnixMilli(state.Clock).Add(time.Minute)
		told := map[string]int{}
		for _, e := range open {
			for name, last := range map[string]time.Time{"before": asked.Add(-10 * time.Second), "after": asked.Add(time.Second), "lives": now} {
				gone := presence.BridgeHeard{Instance: "a", At: last, Heartbeat: presence.Heartbeat{Targets: []string{targetOf(e)}}}
				if trouble, ok := mayBeHeld(state, e, []presence.BridgeHeard{gone}, now); ok {
					told[e.Effect+" "+name]++
					if trouble.Code != session.TroubleSilent || trouble.Target != targetOf(e) {
						t.Errorf("told %+v", trouble)
					}
				}
			}
		}
		if want := map[string]int{"r1t1c0 after": 1}; !maps.Equal(told, want) {
			t.Errorf("told of %v, want %v (open: %+v)", told, want, open)
		}
	})
}
