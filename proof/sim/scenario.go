package sim

import (
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// scenario returns a session's history in the text form of package scenario.
func (r *referee) scenario(sid string) string {
	file := &scenario.File{Steps: []scenario.Step{{
		Prose: []string{"# The history of session " + sid + "."},
		Input: "install " + installRecord, Want: fmt.Sprintf("%d tools, rules %d\n", r.install.Registry.Len(), r.install.Rules),
	}}}
	state := session.New(r.install, sid)
	for i, e := range r.sessions[sid].events {
		if i > 0 && e.Time > r.sessions[sid].events[i-1].Time {
			passed := e.Time - r.sessions[sid].events[i-1].Time
			file.Steps = append(file.Steps, scenario.Step{Prose: []string{""}, Input: fmt.Sprintf("clock +%dms", passed)})
		}
		step := scenario.Step{Prose: []string{"", fmt.Sprintf("# sequence %d", e.Seq)}, Input: fmt.Sprintf("bytes %s %x", e.Door, e.Payload)}
		if canonical, err := codec.Canonicalize(e.Payload); err == nil {
			if text, err := codec.ToJSON(canonical); err == nil {
				step.Input = fmt.Sprintf("event %s %s", e.Door, text)
			}
		}
		before := state.View()
		notices, _ := state.Evolve(e)
		var published []scenario.Said
		for _, n := range notices {
			var one scenario.Said
			if err := json.Unmarshal(n.JSON(), &one); err != nil {
				panic(err)
			}
			published = append(published, one)
		}
		action, err := scenario.Read(step.Input, nil)
		if err != nil {
			panic(err)
		}
		step.Want = scenario.Picture(before, state.View(), action.Settles, published)
		file.Steps = append(file.Steps, step)
	}
	return file.Format()
}
