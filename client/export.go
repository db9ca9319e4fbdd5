package client

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// Export returns a session's history, up to the sequence `to` (0: the newest), as
// a scenario: the text format of the fold's tests. So the report of a fault is
// also a test.
func (c *Client) Export(ctx context.Context, sid string, to uint64) (string, error) {
	file := &scenario.File{}
	var state *session.State
	var clock int64
	for e, err := range c.Read(ctx, sid, 0, to) {
		if err != nil {
			return "", err
		}
		if state == nil {
			if state, err = c.begin(ctx, e); err != nil {
				return "", err
			}
			clock = e.Time
			if err := addInstall(file, state.InstallRecord(), sid); err != nil {
				return "", err
			}
		}
		if passed := e.Time - clock; passed > 0 {
			file.Steps = append(file.Steps, scenario.Step{Prose: []string{""}, Input: fmt.Sprintf("clock +%dms", passed)})
			clock = e.Time
		}
		if err := addEvent(file, state, e); err != nil {
			return "", err
		}
	}
	if state == nil {
		return "", ErrNoSession
	}
	text := file.Format()
	// A line that parses differently would test something else.
	same := func(a, b scenario.Step) bool { return a.Input == b.Input && a.Want == b.Want }
	if again, err := scenario.Parse(text); err != nil || !slices.EqualFunc(again.Steps, file.Steps, same) {
		return "", fmt.Errorf("session %s can't be written as a scenario: a notice about an event has several lines", sid)
	}
	return text, nil
}

// addInstall writes the first step: the record that the session pinned.
func addInstall(file *scenario.File, install *session.Install, sid string) error {
	packed, err := codec.Marshal(install.Record)
	if err != nil {
		return err
	}
	text, err := codec.ToJSON(packed)
	if err != nil {
		return err
	}
	file.Steps = append(file.Steps, scenario.Step{
		Prose: []string{"# The history of session " + sid + "."},
		Input: "install " + string(text),
		Want:  fmt.Sprintf("%d tools, rules %d\n", install.Registry.Len(), install.Rules),
	})
	return nil
}

// addEvent folds an event and adds its step with the resulting state.
func addEvent(file *scenario.File, state *session.State, e session.Event) error {
	if err := state.Foldable(); err != nil {
		return err
	}
	before := state.View()
	notices, _ := state.Evolve(e)
	var said []scenario.Said
	for _, n := range notices {
		var s scenario.Said
		if err := json.Unmarshal(n.JSON(), &s); err != nil {
			return err
		}
		said = append(said, s)
	}
	step := scenario.Step{Prose: []string{"", fmt.Sprintf("# sequence %d", e.Seq)}}
	if text, ok := asJSON(e.Payload); ok {
		step.Input = fmt.Sprintf("event %s %s", e.Door, text)
	} else {
		step.Input = fmt.Sprintf("bytes %s %s", e.Door, hex.EncodeToString(e.Payload))
	}
	action, err := scenario.Read(step.Input, nil)
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	step.Want = scenario.Picture(before, state.View(), action.Settles, said)
	file.Steps = append(file.Steps, step)
	return nil
}

// asJSON returns an event's payload as JSON that folds to the same state. ok is
// false if there is none, and the scenario needs the bytes.
func asJSON(payload []byte) (text []byte, ok bool) {
	if len(payload) > session.EventBytesMax {
		return nil, false // the session's rejection has its length
	}
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return nil, false
	}
	text, err = codec.ToJSON(canonical)
	if err != nil || len(text) > session.EventBytesMax || bytes.ContainsRune(text, '\n') {
		return nil, false
	}
	again, err := codec.FromJSON(text)
	return text, err == nil && bytes.Equal(again, canonical)
}
