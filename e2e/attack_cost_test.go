//go:build linux

package e2e_test

// Events that are made to be costly: they need more memory or time than a
// session-actor has, at every start again, since the log keeps them.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// hostile are registries that took a session-actor gigabytes or seconds, each
// of at most 200 KB.
func hostile() map[string]list {
	costly := func(schemas ...object) (tools list) {
		for i, schema := range schemas {
			tools = append(tools, tool(fmt.Sprintf("t%d", i), object{"args_schema": schema}))
		}
		return tools
	}
	// 1,200 patterns, each of them within its own limit.
	patterns := make([]object, 12)
	for i := range patterns {
		properties := object{}
		for p := range 100 {
			properties[fmt.Sprintf("property_%d", p)] = object{"type": "string", "description": strings.Repeat("a", 60), "pattern": `^\pL{400}$`}
		}
		patterns[i] = object{"type": "object", "properties": properties}
	}
	// A long name, which stands in the place of each schema below it.
	many := make(list, 1200)
	for i := range many {
		many[i] = object{"maxLength": i}
	}
	long := object{"properties": object{strings.Repeat("n", 40_000): object{"anyOf": many}}}
	// One place under as many spellings as there are references to it.
	refs := make(list, 600)
	for i := range refs {
		name := strings.NewReplacer("0", "~", "1", "~0").Replace(fmt.Sprintf("%012b", i))
		refs[i] = object{"$ref": "#/$defs/" + name}
	}
	aliases := object{"$defs": object{strings.Repeat("~", 12): object{"anyOf": many}}, "allOf": refs}
	return map[string]list{
		"patterns": costly(patterns...), "pointers": costly(long, long, long), "aliases": costly(aliases, aliases, aliases),
	}
}

// TestAttackRegistryCosts: a registry that would take gigabytes is refused
// early, when it arrives and when the session is folded again. Other sessions
// of the lane continue.
func TestAttackRegistryCosts(t *testing.T) {
	t.Parallel()
	const moreMax = 160 << 10 // of memory beside that of the same work without attacks, in KiB
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{}, "config": object{"provider": "scripted", "model": "m"}})
	s.models("rules:\n  - say: hi\n", "scripted")
	attacked := "s1"
	other := inLaneOf(attacked)
	heard := listen(t, s.nc, "refold.out."+attacked)
	// As large, and harmless.
	harmless := make(list, 12)
	for i := range harmless {
		harmless[i] = tool(fmt.Sprintf("t%d", i), object{"description": strings.Repeat("a", 15_000)})
	}
	s.say(session.DoorCtl, attacked, session.TypeToolRegistrySet, object{"tools": harmless})
	for _, sid := range []string{attacked, other} {
		s.run(session.DoorIn, sid, "hello", nil)
		s.wantEnd(sid, 1, session.Completed, "")
	}
	before := s.memoryPeak()

	var want []string
	for _, tools := range hostile() {
		s.say(session.DoorCtl, attacked, session.TypeToolRegistrySet, object{"tools": tools})
		want = append(want, "ToolRegistrySet invalid_registry")
	}
	s.run(session.DoorIn, other, "are you there?", nil)
	s.wantEnd(other, 2, session.Completed, "")
	s.wantRejections(heard, want...)
	if after := s.memoryPeak(); after > before+moreMax {
		t.Errorf("the session-actor took %d MiB before and %d MiB after, want at most %d MiB more", before>>10, after>>10, moreMax>>10)
	}

	// The log keeps them: who folds it again pays no more.
	s.actor.kill()
	s.actor.start()
	for _, sid := range []string{attacked, other} {
		run := uint32(2)
		if sid == other {
			run = 3
		}
		s.run(session.DoorIn, sid, "and now?", nil)
		s.wantEnd(sid, run, session.Completed, "")
	}
	if after := s.memoryPeak(); after > before+moreMax {
		t.Errorf("the session-actor took %d MiB before and %d MiB when it was started again, want at most %d MiB more", before>>10, after>>10, moreMax>>10)
	}
	verifyAll(t, s.url)
}

// inLaneOf returns another session of the lane that a session is in.
func inLaneOf(sid string) string {
	lane := subjects.Lane(subjects.Partition(sid))
	for i := 0; ; i++ {
		other := fmt.Sprintf("other%d", i)
		if subjects.Lane(subjects.Partition(other)) == lane {
			return other
		}
	}
}

// memoryPeak returns the most memory that the session-actor had at once, in
// KiB.
func (s *system) memoryPeak() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.actor.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, " kB")
	kib, err := strconv.Atoi(strings.TrimSpace(peak))
	if err != nil {
		s.t.Fatalf("no VmHWM in %s: %v", status, err)
	}
	s.t.Logf("the session-actor took %d KiB at most", kib)
	return kib
}
