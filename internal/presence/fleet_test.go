package presence_test

import (
	"maps"
	"testing"

	"github.com/refold/refold/internal/presence"
)

// TestServedCountsEachBridgeOnce: one that answers as a service and sends
// heartbeats, one that only sends heartbeats, and one that only answers.
func TestServedCountsEachBridgeOnce(t *testing.T) {
	t.Parallel()
	answers := func(instance, targets string) presence.Running {
		return presence.Running{Service: presence.Service{Metadata: map[string]string{"instance": instance, "targets": targets}}}
	}
	heard := func(instance string, targets ...string) presence.BridgeHeard {
		return presence.BridgeHeard{Instance: instance, Heartbeat: presence.Heartbeat{Targets: targets}}
	}
	for _, c := range []struct {
		name  string
		fleet presence.Fleet
		want  map[string]int
	}{
		{"none", presence.Fleet{}, map[string]int{}},
		{"the same one", presence.Fleet{[]presence.Running{answers("A", "llm/p tool/host")}, []presence.BridgeHeard{heard("A", "llm/p", "tool/host")}}, map[string]int{"llm/p": 1, "tool/host": 1}},
		{"two, of which one is foreign", presence.Fleet{[]presence.Running{answers("A", "llm/p")}, []presence.BridgeHeard{heard("A", "llm/p"), heard("B", "llm/p")}}, map[string]int{"llm/p": 2}},
		{"a foreign one that says no instance", presence.Fleet{[]presence.Running{answers("", "llm/p")}, []presence.BridgeHeard{heard("B", "llm/p")}}, map[string]int{"llm/p": 1}},
		{"one that does not listen", presence.Fleet{[]presence.Running{answers("A", "llm/p")}, nil}, map[string]int{"llm/p": 1}},
	} {
		if got := c.fleet.Served(); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
