package cli

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
		fleet fleet
		want  map[string]int
	}{
		{"none", fleet{}, map[string]int{}},
		{"the same one", fleet{[]presence.Running{answers("A", "llm/p tool/host")}, []presence.BridgeHeard{heard("A", "llm/p", "tool/host")}}, map[string]int{"llm/p": 1, "tool/host": 1}},
		{"two, of which one is foreign", fleet{[]presence.Running{answers("A", "llm/p")}, []presence.BridgeHeard{heard("A", "llm/p"), heard("B", "llm/p")}}, map[string]int{"llm/p": 2}},
		{"a foreign one that says no instance", fleet{[]presence.Running{answers("", "llm/p")}, []presence.BridgeHeard{heard("B", "llm/p")}}, map[string]int{"llm/p": 1}},
		{"one that does not listen", fleet{[]presence.Running{answers("A", "llm/p")}, nil}, map[string]int{"llm/p": 1}},
	} {
		if got := c.fleet.served(); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
