package main

// The example does what its README says: three agents are asked, each in a session of its own.

import (
	"strings"
	"testing"
)

func TestTheLeadAsksItsTeam(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), t.TempDir(), "Do bees sleep?", &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`agent_finder {"input":"Do bees sleep?"} succeeded` + "\n",
		`agent_reader {"input":"I found [\"Sleep in honey bees (1983)\"]"} succeeded` + "\n", `agent_critic {"input":"I found`,
		"Yes. They rest for hours at night. One paper is little.\n", "study has 3 children\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, it lacks %q", out.String(), want)
		}
	}
}
