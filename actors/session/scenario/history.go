package scenario

import (
	"fmt"

	"github.com/refold/refold/actors/session"
)

// History is what a scenario publishes to one session: that of its last install record,
// if it pins several.
type History struct {
	Install []byte // the record
	Events  []session.Event
}

// beginMS is the time of a scenario's first event, in Unix milliseconds.
const beginMS = 1_000_000

// Play folds the steps of a scenario, and returns the history of each of its sessions
// that has events. It does not compare what the steps leave.
func (f *File) Play() (all []History, err error) {
	clock := int64(beginMS)
	var state *session.State
	var install *session.Install
	var h History
	end := func() {
		if len(h.Events) > 0 {
			all = append(all, h)
		}
	}
	for _, step := range f.Steps {
		var action Action
		if state == nil {
			action, err = Read(step.Input, nil)
		} else {
			action, err = Read(step.Input, install.Registry, state.View())
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", step.Line, err)
		}
		switch action.Kind {
		case KindClock:
			clock += action.Clock
		case KindInstall:
			record := action.Payload
			if record == nil {
				record = session.BuiltinInstall()
			}
			parsed, err := session.ParseInstall(record)
			if err != nil {
				continue // the scenario is about the error
			}
			end()
			install, state, h = parsed, session.New(parsed, sessionName), History{Install: record}
		case KindEvent:
			if state == nil {
				return nil, fmt.Errorf("line %d: no install record is pinned", step.Line)
			}
			e := session.Event{Session: sessionName, Door: action.Door, Seq: uint64(len(h.Events) + 2), Time: clock, Payload: action.Payload}
			_, _ = state.Evolve(e) // a rejected event is a part of the history
			h.Events = append(h.Events, e)
		}
	}
	end()
	return all, nil
}

// sessionName is that of a scenario's session.
const sessionName = "s1"
