package e2e_test

// A registry that changes while a session lives takes effect in the next turn, and
// a replay gives the same.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestRegistrySetWhileABatchIsOpen: the batch keeps the registry of its turn,
// also for its later group, except for a tool that the new one lacks; the next
// turn offers the new one. In between another session-actor takes over: it
// finds both registries in the log, by all events or by a snapshot that names
// them.
func TestRegistrySetWhileABatchIsOpen(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		registrySet(t, func(s *system) {
			s.actor.kill()
			s.actor.start()
		})
	})
	t.Run("drained", func(t *testing.T) {
		t.Parallel()
		registrySet(t, func(s *system) {
			// A session that has moved on enough is snapshotted.
			var last uint64
			for range 20 {
				last = s.say(session.DoorCtl, "s1", session.TypeFactsSet, object{"facts": object{"a": "b"}})
			}
			s.at("s1", last)
			if err := s.actor.drain(30 * time.Second); err != nil {
				t.Error(err)
			}
			if out := verifyAll(t, s.url); !strings.Contains(out, fmt.Sprintf("snapshot at %d", last)) {
				t.Errorf("replay knows no snapshot at %d: %s", last, out)
			}
			s.actor.start()
		})
	})
}

const registryScript = `
rules:
  - shown: {last: user, asked: first, tools: {include: [slow, search, late, gone]}}
    calls: [{tool: slow}, {tool: search}, {tool: late}, {tool: gone}]
  - shown:
      asked: first
      results: [{tool: slow, error: false}, {tool: search, error: false}, {tool: late, error: false}, {tool: gone, error: true, text: tool_disabled}]
      tools: {include: [fresh, search, late], exclude: [slow, gone, spare]}
    calls: [{tool: fresh}, {tool: slow}, {tool: search}]
  - shown:
      asked: first
      results: [{tool: fresh, error: false}, {tool: slow, error: true, text: tool_unknown}, {tool: search, error: true, text: invalid_arguments}]
    say: Done.
  - say: Done.
`

// registrySet plays the session; takeOver is called while its batch is open.
func registrySet(t *testing.T, takeOver func(s *system)) {
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{}, "config": object{"provider": "scripted", "model": "m"}})
	s.models(registryScript, "scripted")
	hold := make(chan struct{})
	l := &lab{hold: map[string]chan struct{}{"slow": hold}}
	s.tools(l)
	heard := listen(t, s.nc, "refold.out.s1")
	first := list{tool("slow", nil), tool("late", object{"parallel_safe": false}), tool("gone", object{"parallel_safe": false}), tool("search", nil)}
	s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, object{"tools": first})
	s.run(session.DoorIn, "s1", "first", nil)
	s.view("s1", "the open batch", func(v session.View) bool { return v.WaitsFor == "tools" && l.ran() != "" })
	search := tool("search", object{"description": "Another one.", "args_schema": object{"type": "object", "required": list{"q"}}})
	late := tool("late", object{"executor": object{"kind": "effect", "target": "elsewhere"}})
	fresh := list{tool("fresh", nil), tool("spare", nil), search, late}
	s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, object{"tools": fresh})
	s.say(session.DoorCtl, "s1", session.TypeToolOverridesSet, object{"scope": "run", "disable": list{"spare"}})
	// Refused: a list of the run names a tool that it lacks; and no registry at all.
	s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, object{"tools": list{tool("fresh", nil)}})
	s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, object{"tools": list{tool("fresh", object{"executor": object{"kind": "effect", "target": ""}})}})
	s.say(session.DoorCtl, "s1", session.TypeToolOverridesSet, object{"scope": "session", "disable": list{"gone"}})
	s.wantRejections(heard, "ToolRegistrySet invalid_registry", "ToolRegistrySet invalid_registry", "ToolOverridesSet unknown_tool")
	takeOver(s)
	close(hold)
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantOffered("s1", "gone late search slow", "fresh late search", "fresh late search")
	s.wantCalls("s1", "slow", "search", "late", "fresh")
	// The run's lists ended with it; the session's stay, deny wins over force.
	s.say(session.DoorCtl, "s1", session.TypeToolOverridesSet, object{"scope": "session", "disable": list{"lab.fresh"}, "force": list{"fresh", "spare"}})
	s.run(session.DoorIn, "s1", "second", nil)
	s.wantEnd("s1", 2, session.Completed, "")
	s.say(session.DoorCtl, "s1", session.TypeToolOverridesSet, object{"scope": "session", "disable": list{}})
	s.run(session.DoorIn, "s1", "third", nil)
	s.wantEnd("s1", 3, session.Completed, "")
	s.wantOffered("s1", "gone late search slow", "fresh late search", "fresh late search", "late search spare", "fresh late search spare")
	verifyAll(t, s.url)
}

// What the profiles of the built-in registry offer while a host session is
// ready, in their order, and what is offered without one; read_result with either.
const (
	withHost    = "close_session shell read_file write_file grep glob stat exists list_dir"
	openaiHas   = withHost + " apply_patch read_result"
	editorHas   = withHost + " edit_file read_result"
	withoutHost = "open_session read_result"
)
