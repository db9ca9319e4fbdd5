package bus

import "encoding/json"

// Served are the targets that bridges serve, and by how many, as their
// heartbeats say: tool/host, llm/openai.
type Served map[string]int

// Serving returns what the bridges that were heard within GoneAfter serve. sure
// is false while this process has not listened for that long without a gap: a
// target that is missing may be served all the same.
func (m *Members) Serving() (served Served, sure bool) {
	served = make(Served)
	for _, member := range m.Live(GoneAfter) {
		var said struct {
			Kind    string   `json:"kind"`
			Targets []string `json:"targets"`
		}
		if json.Unmarshal(member.Body, &said) != nil || said.Kind != "bridge" {
			continue
		}
		for _, target := range said.Targets {
			served[target]++
		}
	}
	return served, m.Gone("") // whom nobody ever hears
}
