package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/scripted"
)

// The conversation that adopts a workspace during a run: its session and its model.
const (
	workspaceSession = "workspace"
	workspaceModel   = "workspace"
)

// The space of that conversation, and the target that reads it.
const (
	spaceName   = "rooms"
	spaceTarget = "folder"
)

// syncRunMS leaves time for a read after each of two kills: an effect whose
// bridge died is delivered again after half a minute.
const syncRunMS = 300_000

// spaceFiles are the workspace.
const spaceFiles = `
-- agent.workspace.json --
{
  "v": 1,
  "prompts": {"default": "prompts/rooms.md"},
  "tools": {"default": "tools/rooms.json"},
  "context": {"docs": ["docs/*.md"]}
}
-- prompts/rooms.md --
You look after meeting rooms, in session {{session}}.
-- tools/rooms.json --
["open_session", "read_file"]
-- docs/rooms.md --
# Rooms

Blue has eight seats.
`

// workspaceScript is the model: its first turn has neither prompt nor catalog,
// its second turn has both, in the same run.
const workspaceScript = `
model: workspace
turns:
  - shown: {last: user, tools: {include: [open_session], exclude: [workspace_read]}}
    say: I open a session on the host first.
    calls: [{tool: open_session}]
  - shown:
      system: ["You look after meeting rooms, in session workspace."]
      tools: {include: [read_file, workspace_read], exclude: [shell, open_session]}
      results: [{tool: open_session, error: false}]
    say: There is a document now.
    calls:
      - {tool: workspace_read, arguments: {path: docs/rooms.md}}
      - {tool: read_file, arguments: {path: go.mod}}
  - shown:
      results:
        - {tool: workspace_read, error: false, text: Blue has eight seats.}
        - {tool: read_file, error: false}
    say: Blue has eight seats.
`

// adoptedMarks is the length of End.Spaces if nothing is wrong: a sync that
// stages, an apply, a sync without a change; the applied space, and its registry.
// Two turns have a prompt, the first has none.
const (
	adoptedMarks = 5
	adoptedTurns = 2
)

// Paths of the workspace in the directory of a trial.
func spaceIn(dir string) string { return filepath.Join(dir, "space") }
func gateIn(dir string) string  { return filepath.Join(dir, "adopted") }

// workspaceConversation returns the conversation.
func workspaceConversation() Conversation {
	return Conversation{
		ID: workspaceSession, Session: workspaceSession, Says: []string{"How many seats has Blue?"}, Ends: completes, Adopts: true, Marks: adoptedMarks, Prompt: adoptedTurns,
		Config: []byte(`{"provider":"` + workspaceModel + `","model":"` + workspaceModel + `"}`),
	}
}

// prepareWorkspace writes the space's files into a trial's directory.
func prepareWorkspace(dir string) error {
	if err := os.MkdirAll(spaceIn(dir), 0o755); err != nil {
		return err
	}
	return scripted.Unpack(txtar.Parse([]byte(spaceFiles)), spaceIn(dir))
}

// serveWorkspace registers the model and the reader of the workspace with a bridge.
func serveWorkspace(b *bridge.Bridge, dir string) error {
	script, err := scripted.Parse(workspaceModel, []byte(workspaceScript))
	if err != nil {
		return err
	}
	return errors.Join(
		b.Model(workspaceModel, gated{scripted.NewModel(script), gateIn(dir)}),
		b.Space(spaceTarget, bridge.Folder{Dir: spaceIn(dir)}),
	)
}

// gated is a model that answers once a file exists: until then its turn is open.
type gated struct {
	executor.Model
	path string
}

// Generate waits for the file, and then calls the model.
func (g gated) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for {
		if _, err := os.Stat(g.path); err == nil {
			return g.Model.Generate(ctx, r, delta)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		}
	}
}

// adopt syncs the workspace while the run's first turn is open, to be applied
// before the second, and lets the turn end once the apply is pending.
func (t *trial) adopt(ctx context.Context) error {
	if err := t.openTurn(ctx); err != nil {
		return err
	}
	err := t.sync(ctx, "sync-1", client.SyncOptions{
		Apply: spaces.ModeNextStep, Grant: &spaces.Grant{Space: spaceName, Target: spaceTarget, RunMS: syncRunMS},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(gateIn(t.dir), nil, 0o600)
}

// sync requests a sync, and waits for its end.
func (t *trial) sync(ctx context.Context, id string, o client.SyncOptions) error {
	o.ID = id
	var seq uint64
	err := t.retry(ctx, func(ctx context.Context) (err error) {
		seq, err = t.client.Sync(ctx, t.explorer.conversation.Session, spaceName, o)
		return err
	})
	if err != nil {
		return err
	}
	return until(ctx, "no end of a sync", func() bool {
		view, err := t.view(ctx)
		return err == nil && view.Seq >= seq && len(view.Syncs) == 0
	})
}

// spacesOf lists the spaces of a session, and the notices about them.
func spacesOf(s *session.State, notices []Notice) (all []string) {
	for _, n := range notices {
		if strings.HasPrefix(n.Type, "Workspace") {
			all = append(all, n.Type+" "+n.Text)
		}
	}
	if s.Spaces == nil {
		return all
	}
	for _, p := range s.Spaces.Applied {
		all = append(all, fmt.Sprintf("applied %s %s", p.Space, p.Hash))
	}
	for _, p := range slices.Concat(s.Spaces.Pending, s.Spaces.Staged) {
		all = append(all, fmt.Sprintf("pending or staged %s %s", p.Pin.Space, p.Pin.Hash))
	}
	return append(all, "composed "+s.Spaces.Composed.String())
}

// promptOf names a generation and the prompt before its transcript.
func promptOf(payload []byte) (text string, ok bool) {
	var g session.Generation
	if codec.Unmarshal(payload, &g) != nil || g.PromptMark == nil {
		return "", false
	}
	return g.Effect + " " + g.PromptMark.String(), true
}

// sameSpaces compares spaces. If an outcome is unknown, turns may be missing.
func sameSpaces(want, got *End, unknown bool) (faults []string) {
	if !slices.Equal(want.Spaces, got.Spaces) {
		faults = append(faults, fmt.Sprintf("the spaces are %q, without a kill %q", got.Spaces, want.Spaces))
	}
	n := len(want.Prompts)
	if unknown {
		n = min(n, len(got.Prompts))
	}
	if !slices.Equal(want.Prompts[:n], got.Prompts) {
		faults = append(faults, fmt.Sprintf("turns were shown %q, without a kill %q", got.Prompts, want.Prompts))
	}
	return faults
}
