package session_test

// ToolOverridesSet at its limits, and what it must leave alone.

import (
	"errors"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

// Each list has a maximal length, in either scope. A longer one is refused with the
// whole event.
func TestOverridesLimits(t *testing.T) {
	t.Parallel()
	install := largestInstall(t)
	longest := everyTool(install)
	for _, scope := range []string{session.ScopeSession, session.ScopeRun} {
		for _, list := range []string{"disable", "enable", "force"} {
			w := toldUnder(t, install)
			w.run(nil)
			w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": scope, list: longest}))
			before := w.state.Bytes()
			_, err := w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{
				"scope": scope, "disable": longest[:1], "enable": longest[1:2], "force": longest[2:3], list: append(slices.Clone(longest), longest[0]),
			})
			if !errors.Is(err, session.RejectLimitExceeded) {
				t.Errorf("%d names in %s of the %s: got %v, want %v", len(longest)+1, list, scope, err, session.RejectLimitExceeded)
			}
			if what := moreThanHead(t, before, w.state.Bytes()); what != "" {
				t.Errorf("%d names in %s of the %s: %s", len(longest)+1, list, scope, what)
			}
		}
	}
}

// everyTool returns the tool_ids of an install record that has as many tools as
// a list may have names.
func everyTool(install *session.Install) []string {
	var ids []string
	for _, tool := range install.Registry.Tools() {
		ids = append(ids, tool.ToolID)
	}
	return ids
}

// A name that the registry doesn't have, in any list of any event, rejects the
// whole event.
func TestUnknownNamesAreNotKept(t *testing.T) {
	t.Parallel()
	bad, good := []string{"stat", "host.nosuch"}, []string{"stat"}
	input := map[string]any{"text": "go"}
	for _, list := range []string{"active_tools", "disable", "enable", "force"} {
		config := merged(map[string]any{"provider": "openai", "model": "m", "disable": good, "enable": good, "force": good}, map[string]any{list: bad})
		steps := []any{map[string]any{"active_tools": good}, map[string]any{"active_tools": bad}}
		for typ, data := range map[string]any{
			session.TypeRunRequested:      map[string]any{"input": input, "submission": "s", "config": config},
			session.TypeSessionConfigured: merged(config, map[string]any{"queue_max": 3}),
			session.TypeToolOverridesSet:  map[string]any{"scope": "session", "disable": good, "enable": good, "force": bad},
			"run's " + session.TypeToolOverridesSet: map[string]any{
				"scope": "run", "disable": good, "enable": bad, "force": good,
			},
			"rules of " + session.TypeRunRequested:      map[string]any{"input": input, "config": map[string]any{"provider": "openai", "model": "m", "steps": steps}},
			"rules of " + session.TypeSessionConfigured: map[string]any{"steps": steps},
		} {
			w := ready(t)
			before := w.state.Bytes()
			if _, err := w.tell(session.DoorCtl, lastWord(typ), data); !errors.Is(err, session.RejectUnknownTool) {
				t.Errorf("%s with an unknown name in %s: got %v, want %v", typ, list, err, session.RejectUnknownTool)
			}
			if what := moreThanHead(t, before, w.state.Bytes()); what != "" {
				t.Errorf("%s with an unknown name in %s: %s", typ, list, what)
			}
		}
	}
}

// lastWord returns what stands after the last space.
func lastWord(text string) string {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == ' ' {
			return text[i+1:]
		}
	}
	return text
}

// A run's lists may be those of the session's config; setting the run's changes
// neither that config nor a queued run.
func TestOverridesOfARunAreItsOwn(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	config := map[string]any{"provider": "openai", "model": "m", "disable": []string{"stat", "grep"}, "force": []string{"shell"}}
	w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, config))
	for range 2 {
		w.must(w.tell(session.DoorIn, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}}))
	}
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": "run", "disable": []string{"glob"}, "force": []string{}}))
	for name, c := range map[string]struct {
		got           session.RunConfig
		disable, more []string
	}{
		"the active run":       {w.state.Run.Config, []string{"glob"}, nil},
		"the queued run":       {w.state.Queue[0].Config, []string{"stat", "grep"}, []string{"shell"}},
		"the session's config": {w.state.Config.Run, []string{"stat", "grep"}, []string{"shell"}},
	} {
		if !slices.Equal(c.got.Disable, c.disable) || !slices.Equal(c.got.Force, c.more) {
			t.Errorf("%s disables %v and forces %v, want %v and %v", name, c.got.Disable, c.got.Force, c.disable, c.more)
		}
	}
}
