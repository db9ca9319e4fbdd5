package main

import (
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestPrioritiesAreParsed(t *testing.T) {
	t.Parallel()
	served := []string{"--model", "openai", "--model", "batch=openai", "--tools", "mail=services"}
	f, _, err := parse(append(served, "--slots", "8", "--priority", "llm/openai=2,tool/mail=1", "--priority", "llm/batch=-1"), settings.Environment{}, io.Discard, io.Discard)
	bustest.OK(t, err)
	got, err := f.priorities()
	if want := map[string]int{"llm/openai": 2, "tool/mail": 1, "llm/batch": -1}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, c := range []struct{ args, want string }{
		{"--priority llm/openai=1", "--priority llm/openai=1: targets that share no slots don't wait for one another: set with --slots"},
		{"--slots 4 --priority llm/opnai=1", "llm/opnai is not served here; served are: llm/openai, llm/batch, tool/mail"},
		{"--slots 4 --priority openai=1", "openai is not served here"},
		{"--slots 4 --priority llm/openai", "write TARGET=N"},
		{"--slots 4 --priority llm/openai=101", "write TARGET=N"},
		{"--slots 4 --priority llm/openai=1,llm/openai=2", "it has a priority already"},
		{"--slots 5000", "--slots: 0 to 4096"},
	} {
		if _, _, err := parse(append(served, strings.Fields(c.args)...), settings.Environment{}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
}
