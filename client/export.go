package client

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// Export writes a session's history, up to the sequence `to` (0: the newest),
// as a scenario: the text that the tests of the fold read. A report of what
// went wrong is then a test.
func (c *Client) Export(ctx context.Context, sid string, to uint64) (string, error) {
	last, err := c.bus.LastSeq(ctx)
	if err != nil {
		return "", err
	}
	if to == 0 || to > last {
		to = last
	}
	file := &scenario.File{}
	var state *session.State
	var clock int64
	if to > 0 {
		for e, err := range c.bus.ReadSession(ctx, sid, 1, to, true) {
			if err != nil {
				return "", fmt.Errorf("read session %s: %w", sid, err)
			}
			if state == nil {
				install, err := (&installs{client: c}).before(ctx, e.Seq)
				if err != nil {
					return "", err
				}
				state, clock = session.New(install, sid), e.Time
				if err := addInstall(file, install, sid); err != nil {
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
	}
	if state == nil {
		return "", ErrNoSession
	}
	return file.Format(), nil
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

// addEvent folds an event and writes its step with what it left.
func addEvent(file *scenario.File, state *session.State, e session.Event) error {
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
	text := string(e.Payload)
	if canonical, err := codec.Canonicalize(e.Payload); err == nil {
		if asJSON, err := codec.ToJSON(canonical); err == nil {
			text = string(asJSON)
		}
		step.Input = fmt.Sprintf("event %s %s", e.Door, text)
	} else {
		step.Input = fmt.Sprintf("bytes %s %s", e.Door, hex.EncodeToString(e.Payload))
	}
	action, err := scenario.Read(step.Input, nil)
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	step.Want = scenario.Picture(before, state.View(), action.Settles, said)
	if strings.Contains(step.Input, "\n") {
		return fmt.Errorf("event %d: its JSON has a line break", e.Seq)
	}
	file.Steps = append(file.Steps, step)
	return nil
}
