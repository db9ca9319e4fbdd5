package bus

import (
	"encoding/json"
	"time"

	"github.com/refold/refold/actors/session"
)

// SilentAfter is how long nothing must have been heard of a bridge for people to
// be told so: two of its heartbeats were missed, and the third is late. Nothing
// is decided by it: that takes GoneAfter.
const SilentAfter = 3 * HeartbeatEvery

// Served are the targets that bridges serve, and by how many, as their
// heartbeats say: tool/host, llm/openai.
type Served map[string]int

// BridgeHeard is what a bridge's latest heartbeat said.
type BridgeHeard struct {
	Instance string            `json:"-"`
	At       time.Time         `json:"-"` // when
	Targets  []string          `json:"targets"`
	Troubles []session.Trouble `json:"troubles"` // of its targets
}

// Bridges returns the bridges that were ever heard and are remembered, by
// instance: m is of bridges. sure is false while this process has not listened
// for GoneAfter without a gap: there may be others.
func (m *Members) Bridges() (all []BridgeHeard, sure bool) {
	for _, member := range m.Known() {
		heard := BridgeHeard{Instance: member.Instance, At: member.Heard}
		if json.Unmarshal(member.Body, &heard) == nil {
			all = append(all, heard)
		}
	}
	return all, m.Gone("") // whom nobody ever hears
}

// Serving returns what those who were heard within GoneAfter serve: m is of
// bridges. sure is as Bridges has it: a target that is missing may be served all
// the same.
func (m *Members) Serving() (served Served, sure bool) {
	all, sure := m.Bridges()
	served, now := make(Served), m.now()
	for _, bridge := range all {
		if now.Sub(bridge.At) > GoneAfter {
			continue
		}
		for _, target := range bridge.Targets {
			served[target]++
		}
	}
	return served, sure
}
