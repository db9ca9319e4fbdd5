package bus

import "encoding/json"

// Served are the targets that bridges serve, and by how many, as their
// heartbeats say: tool/host, llm/openai.
type Served map[string]int

// Serving returns what those who were heard within GoneAfter serve: m is of
// bridges. sure
// is false while this process has not listened for that long without a gap: a
// target that is missing may be served all the same.
func (m *Members) Serving() (served Served, sure bool) {
	served = make(Served)
	for _, member := range m.Live(GoneAfter) {
		var said struct {
			Targets []string `json:"targets"`
		}
		if json.Unmarshal(member.Body, &said) != nil {
			continue
		}
		for _, target := range said.Targets {
			served[target]++
		}
	}
	return served, m.Gone("") // whom nobody ever hears
}
