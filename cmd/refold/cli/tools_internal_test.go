package cli

import (
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive/archivetest"
	"github.com/refold/refold/internal/prove/provetest"
)

// TestViewOfTurnThatAPauseHeldBack: a step hook answers while the run is paused, so the
// tools of the turn are decided when the run is resumed.
func TestViewOfTurnThatAPauseHeldBack(t *testing.T) {
	t.Parallel()
	for _, all := range provetest.Histories(t, "../../../actors/session/testdata/scenarios/68_steps_controlled.txt") {
		c, sid, err := client.OpenArchive(archivetest.Write(t, all[0]))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v, err := viewOf(t.Context(), c, sid, "r6t1")
		if err != nil || len(v.Tools) != 2 || v.Turn.Toolset == "" {
			t.Errorf("got %+v with the tools %+v (%v), want both tools", v.Turn, v.Tools, err)
		}
	}
}
