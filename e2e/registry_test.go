package e2e_test

// Changes while a session lives: its registry, its lists, its profile, its host
// session. All take effect in the next turn, and a replay gives the same.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
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
// ready, in their order, and what is offered without one.
const (
	withHost    = "close_session shell read_file write_file grep glob stat exists list_dir"
	openaiHas   = withHost + " apply_patch"
	editorHas   = withHost + " edit_file"
	withoutHost = "open_session"
)

// TestABuiltinSessionsLife: no set-up at all, one profile for each provider,
// and a host session that its tools' real results open, close, lose, expire and
// break.
func TestABuiltinSessionsLife(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models(`
rules:
  - shown: {last: tool}
    say: "${result}"
  - shown: {asked: ^open, tools: {include: [open_session]}}
    calls: [{tool: open_session}]
  - shown: {asked: ^close, tools: {include: [close_session]}}
    calls: [{tool: close_session}]
  - shown: {asked: ^read, tools: {include: [read_file]}}
    calls: [{tool: read_file, arguments: {path: note.txt}}]
  - say: "hi"
`, "openai", "anthropic", "gemini")
	work := t.TempDir()
	startDaemon(t, "bridge", "--nats", s.url, "--tools", "host", "--workdir", work)
	heard := listen(t, s.nc, "refold.out.s1")
	runs := uint32(0)
	var want []string
	ask := func(provider, text string, more object, offered ...string) session.View {
		t.Helper()
		config := object{"provider": provider, "model": "m"}
		door := session.DoorIn
		for key, value := range more {
			config[key], door = value, session.DoorCtl
		}
		s.run(door, "s1", text, config)
		runs++
		want = append(want, offered...)
		s.wantEnd("s1", runs, session.Completed, "")
		return s.ended("s1", runs)
	}
	status := func(v session.View, want string) {
		t.Helper()
		if v.HostSession == nil || v.HostSession.Status != want {
			t.Errorf("run %d leaves the host session %+v, want %s", runs, v.HostSession, want)
		}
	}
	ask("openai", "hi", nil, withoutHost) // the first run there ever was
	status(ask("openai", "open", nil, withoutHost, openaiHas), "ready")
	ask("anthropic", "hi", nil, editorHas)
	ask("gemini", "hi", nil, editorHas)
	ask("openai", "hi", nil, openaiHas)
	// What is selected wins over the provider, and a run's own over that.
	s.say(session.DoorCtl, "s1", session.TypeToolProfileSelected, object{"profile": "openai"})
	s.say(session.DoorCtl, "s1", session.TypeToolProfileSelected, object{"profile": "none"})
	s.wantRejections(heard, "ToolProfileSelected unknown_profile")
	ask("gemini", "hi", nil, openaiHas)
	ask("gemini", "hi", object{"profile": "anthropic"}, editorHas)
	// Closed by its tool, and opened again.
	status(ask("openai", "close", nil, openaiHas, withoutHost), "closed")
	status(ask("openai", "open", nil, withoutHost, openaiHas), "ready")
	// Lost: the host's record of it is gone, or says that its time is over; the
	// next tool finds out.
	status(ask("openai", "read", nil, openaiHas, openaiHas), "ready") // there is no such file, but a host
	spoilRecords(t, work, os.Remove)
	status(ask("openai", "read", nil, openaiHas, withoutHost), "error")
	status(ask("openai", "open", nil, withoutHost, openaiHas), "ready")
	spoilRecords(t, work, func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Replace(string(data), `"ready"`, `"expired"`, 1)), 0o600)
	})
	status(ask("openai", "read", nil, openaiHas, withoutHost), "expired")
	status(ask("openai", "open", nil, withoutHost, openaiHas), "ready")
	// What its host says about it.
	for _, gone := range []string{"error", "expired", "closed", "none"} {
		s.say(session.DoorCtl, "s1", session.TypeHostSessionUpdated, object{"status": gone})
		ask("openai", "hi", nil, withoutHost)
	}
	status(ask("openai", "open", nil, withoutHost, openaiHas), "ready")
	s.wantOffered("s1", want...)
	// The registry is the built-in one, as everybody has it.
	reg, err := planner.Builtin().Registry()
	if err != nil {
		t.Fatal(err)
	}
	if v := s.ended("s1", runs); v.Registry != reg.Hash().String() || len(v.Tools) != 12 || strings.Join(names(v.Tools), " ") != openaiHas {
		t.Errorf("the view has the registry %s and offers %q", v.Registry, names(v.Tools))
	}
	verifyAll(t, s.url)
}

// spoilRecords changes what a host keeps of its sessions.
func spoilRecords(t *testing.T, work string, change func(path string) error) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(work, ".sessions", "h*.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("no records of host sessions: %v", err)
	}
	for _, path := range records {
		if err := change(path); err != nil {
			t.Fatal(err)
		}
	}
}

// names returns the tools that a view shows as offered, in their order.
func names(tools []session.ViewTool) []string {
	offered := make([]string, len(tools))
	n := 0
	for _, tool := range tools {
		if tool.Place > 0 {
			offered[tool.Place-1] = tool.ToolName
			n++
		}
	}
	return offered[:n]
}
