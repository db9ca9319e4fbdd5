package bench

import (
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm/recorded"
)

// Window is how much of a long session's requests a prefix cache can hold, shown whole
// or as a window.
type Window struct {
	Shown   string // whole, cut, or cleared and cut, or cleared and summarised
	Turns   int    // requested generations
	Largest int64  // bytes of the largest request
	Held    Held
}

// Windows folds all conversations of a recording as one session, one after the other:
// without a context; with one of this many tokens, without clearing results and without
// summaries; with results cleared; and with summaries, too. definitions and system are
// those of Prefixes.
func Windows(file, definitions, system string, tokens int64, each func(Window) error) error {
	r, record, _, err := recorded.LoadInstall(file, definitions, nil)
	if err != nil {
		return err
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		return err
	}
	all, off := recorded.Conversation{ID: "all"}, &session.SummaryConfig{Off: true}
	for _, c := range r.Conversations() {
		all.System = c.System
		all.Runs = append(all.Runs, c.Runs...)
	}
	for _, c := range []struct {
		shown   string
		context *session.ContextConfig
	}{
		{"whole", nil},
		{"cut", &session.ContextConfig{Tokens: tokens, KeepTurns: session.TurnsMax, Summary: off}}, // keeps the results of all turns that it shows
		{"cleared, cut", &session.ContextConfig{Tokens: tokens, Summary: off}},
		{"summarised", &session.ContextConfig{Tokens: tokens}},
	} {
		own, config := install.Record, *install.Record.Config
		config.Context = c.context
		own.Config = &config
		f, err := newPrefixFold(&own, &all, session.ToolsMasked, system)
		if err == nil {
			err = f.play(&all)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.shown, err)
		}
		if err := each(Window{Shown: c.shown, Turns: f.turns, Largest: f.largest, Held: f.held}); err != nil {
			return err
		}
	}
	return nil
}
