package session_test

// The largest prompt that a workspace may bring: it is asked for, also with a
// step's system text at its limit, and one byte more is refused at the sync.

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// documentOverhead is what a document takes of the prompt beside its text and
// its path.
const documentOverhead = int64(len("<document path=\"\">\n\n</document>\n\n"))

func TestLargestPromptFitsItsEffect(t *testing.T) {
	t.Parallel()
	const path = "handbook.md"
	largest := space.ShownBytesMax - space.SystemBytes - documentOverhead - int64(len(path))
	install := weaveInstallWith(t, map[string]any{"spaces": []any{map[string]any{"space": "a"}}})
	for _, c := range []struct {
		size   int64
		staged bool
	}{{largest, true}, {largest + 1, false}} {
		w := toldUnder(t, install)
		w.must(w.tell(session.DoorCtl, session.TypeWorkspaceSyncRequested, map[string]any{"workspace": "a", "apply": "immediate_if_idle"}))
		w.must(w.tell(session.DoorSpace, session.TypeWorkspaceSnapshotReady, map[string]any{"effect": "y1", "manifest": map[string]any{
			"v": 1, "kind": "workspace", "space": "a",
			"files":   []any{map[string]any{"path": path, "ref": codec.RefOf([]byte(path)).String(), "size": c.size, "media_type": "text/markdown"}},
			"context": []any{map[string]any{"group": "docs", "files": []any{0}}},
			"prompts": []any{map[string]any{"prompt_pack": "default", "parts": []any{map[string]any{"context": "docs"}}}},
		}}))
		if applied := len(w.state.Spaces.Applied) == 1; applied != c.staged {
			t.Fatalf("%d bytes: applied is %v, want %v", c.size, applied, c.staged)
		}
		if !c.staged {
			continue
		}
		w.run(map[string]any{"steps": []any{map[string]any{"when": "step == 0", "system": strings.Repeat("s", int(space.SystemBytes))}}})
		var asked session.Generation
		if err := codec.Unmarshal(w.open("r1t1").Payload, &asked); err != nil {
			t.Fatal(err)
		}
		if len(asked.Prompt) != 1 || int64(len(asked.System)) != space.SystemBytes {
			t.Errorf("asked are %d parts and %d bytes of system text", len(asked.Prompt), len(asked.System))
		}
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok", "text": text("done")}))
		if v := w.state.View(); v.Run != nil || v.Turn == nil || v.Turn.Workspace == nil || v.Turn.Workspace.PromptPack != "default" || v.Workspace.PromptPack != "default" {
			t.Errorf("the run is over: the view says %+v of its turn", v.Turn)
		}
	}
}
