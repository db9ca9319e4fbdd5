package client_test

// Syncs, applies and detaches of spaces: how each ends, and the manifests that the
// session then holds. The test plays the bridge that reads.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/space"
)

// spaceRecord has a grant.
const spaceRecord = `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"},"spaces":[{"space":"support","target":"files"}]}`

// manifest returns a manifest without files.
func manifest(version string) map[string]any {
	return map[string]any{"v": 1, "kind": "workspace", "space": "support", "version": version}
}

// hashOf returns its hash.
func hashOf(version string) string {
	return (&space.Manifest{V: 1, Kind: space.Workspace, Space: "support", Version: version}).Hash().String()
}

// sync requests a sync.
func (w *world) sync(o client.SyncOptions) uint64 {
	w.t.Helper()
	seq, err := w.Sync(w.ctx, "s1", "support", o)
	bustest.OK(w.t, err)
	return seq
}

// ready settles a sync.
func (w *world) ready(effect, version string) {
	w.t.Helper()
	w.say(session.DoorSpace, "s1", session.TypeWorkspaceSnapshotReady, map[string]any{"effect": effect, "manifest": manifest(version), "source": "module"})
}

// syncEnd returns how a sync ended.
func (w *world) syncEnd(seq uint64) *client.SyncEnd {
	w.t.Helper()
	end, err := w.SyncEnd(w.ctx, "s1", seq)
	bustest.OK(w.t, err)
	return end
}

// stages returns the held manifests as text, such as "staged 1.1.0".
func stages(held []client.HeldSpace) string {
	all := make([]string, len(held))
	for i, h := range held {
		all[i] = h.Stage + " " + h.Pin.Version
		if h.Manifest == nil || h.Manifest.Hash() != h.Pin.Hash {
			all[i] += " without its manifest"
		}
	}
	return strings.Join(all, ", ")
}

func TestSyncIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, spaceRecord) // without a session-actor: the log is enough
	seq := w.sync(client.SyncOptions{})
	w.ready("y1", "1.0.0")
	end := w.syncEnd(seq)
	if end.Failed != nil || end.Staged == nil || end.Staged.Hash != hashOf("1.0.0") || end.Seq != seq+1 || stages(end.Before) != "" || stages(end.After) != "staged 1.0.0" || end.Manifest == nil {
		t.Errorf("staged: got %+v", end)
	}
	if again := w.syncEnd(seq); again.Staged == nil || again.Staged.Hash != end.Staged.Hash {
		t.Errorf("asked again: got %+v", again)
	}
	apply, err := w.Apply(w.ctx, "s1", client.ApplyOptions{Mode: spaces.ModeImmediate, Hash: hashOf("1.0.0")})
	bustest.OK(t, err)
	if v, err := w.Taken(w.ctx, "s1", apply); err != nil || v.Workspace == nil || v.Workspace.Version != "1.0.0" {
		t.Errorf("applied: got %+v, %v", v.Workspace, err)
	}

	seq = w.sync(client.SyncOptions{})
	w.say(session.DoorSpace, "s1", session.TypeWorkspaceSyncUnchanged, map[string]any{"effect": "y2", "hash": hashOf("1.0.0")})
	if end := w.syncEnd(seq); end.Staged == nil || end.Staged.Outcome != spaces.OutcomeUnchanged || end.Manifest == nil || stages(end.Before) != "applied 1.0.0" {
		t.Errorf("unchanged: got %+v", end)
	}
	seq = w.sync(client.SyncOptions{Dry: true})
	w.ready("y3", "1.1.0")
	if end := w.syncEnd(seq); end.Staged == nil || end.Staged.Outcome != spaces.OutcomeDry || end.Manifest == nil || stages(end.After) != "applied 1.0.0" {
		t.Errorf("dry: got %+v", end)
	}
	seq = w.sync(client.SyncOptions{Apply: spaces.ModeNextRun, PromptPack: "none-such"})
	w.ready("y4", "1.1.0")
	if end := w.syncEnd(seq); end.Staged == nil || end.Failed == nil || end.Failed.Code != "workspace_invalid" || stages(end.After) != "staged 1.1.0, applied 1.0.0" {
		t.Errorf("staged, and not applied: got %+v", end)
	}
	held, err := w.Spaces(w.ctx, "s1")
	if err != nil || stages(held) != "staged 1.1.0, applied 1.0.0" {
		t.Errorf("held: got %s, %v", stages(held), err)
	}
}

func TestFailedSyncReportsItsReason(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, spaceRecord)
	seq := w.sync(client.SyncOptions{})
	problems := make([]map[string]any, space.ProblemsMax)
	for i := range problems {
		problems[i] = map[string]any{"code": "unknown_field", "detail": "x", "file": "a.json", "line": i + 1}
	}
	w.say(session.DoorSpace, "s1", session.TypeWorkspaceSyncFailed, map[string]any{"effect": "y1", "error": map[string]any{"code": "workspace_invalid"}, "problems": problems})
	if end := w.syncEnd(seq); end.Staged != nil || end.Failed == nil || len(end.Failed.Problems) != spaces.NoticeProblemsMax || len(end.Problems) != space.ProblemsMax || end.Manifest != nil {
		t.Errorf("failed: got %+v", end)
	}

	// Another request withdraws it; the end of that one is not the end of this one.
	seq = w.sync(client.SyncOptions{})
	other := w.sync(client.SyncOptions{Version: "1"})
	w.ready("y3", "1.0.0")
	if end := w.syncEnd(seq); end.Failed == nil || end.Failed.Code != session.CodeCancelled || end.Seq != other || end.Manifest != nil {
		t.Errorf("withdrawn: got %+v", end)
	}
	if end := w.syncEnd(other); end.Staged == nil || end.Staged.Effect != "y3" {
		t.Errorf("the other: got %+v", end)
	}

	// A request that is refused has no end, and neither has what is none.
	seq, err := w.Sync(w.ctx, "s1", "other", client.SyncOptions{})
	bustest.OK(t, err)
	var refused *client.RejectedError
	if _, err := w.SyncEnd(w.ctx, "s1", seq); !errors.As(err, &refused) || refused.Code != session.RejectUnknownSpace {
		t.Errorf("refused: got %v", err)
	}
	seq, err = w.Detach(w.ctx, "s1", "support")
	bustest.OK(t, err)
	if _, err := w.SyncEnd(w.ctx, "s1", seq); err == nil || !strings.Contains(err.Error(), "requests no sync") {
		t.Errorf("a detach: got %v", err)
	}
	if held, err := w.Spaces(w.ctx, "s1"); err != nil || len(held) != 0 {
		t.Errorf("after the detach: got %s, %v", stages(held), err)
	}

	// Whoever stops waiting withdraws nothing.
	seq = w.sync(client.SyncOptions{})
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.SyncEnd(ctx, "s1", seq); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: got %v", err)
	}
	w.ready("y4", "1.0.0")
	if end := w.syncEnd(seq); end.Staged == nil {
		t.Errorf("it went on: got %+v", end)
	}
}

// The session is quarantined before or during the wait; an end before that counts.
func TestSyncOfQuarantinedSessionHasNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, spaceRecord)
	ended := w.sync(client.SyncOptions{})
	w.ready("y1", "1.0.0")
	seq := w.sync(client.SyncOptions{})
	waits := make(chan error, 1)
	go func() {
		_, err := w.SyncEnd(w.ctx, "s1", seq)
		waits <- err
	}()
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, seq+1)))
	notice := session.Notice{Type: session.NoticeSessionQuarantined, Session: "s1", Data: session.SessionQuarantined{Reason: "a test"}}
	bustest.OK(t, w.bus.Notify(w.ctx, "s1", 0, notice.JSON()))
	w.ready("y2", "1.1.0") // the session does not fold it
	var stopped *client.QuarantinedError
	if err := <-waits; !errors.As(err, &stopped) || stopped.Reason != "a test" {
		t.Errorf("stopped in the wait: got %v", err)
	}
	if _, err := w.SyncEnd(w.ctx, "s1", seq); !errors.As(err, &stopped) {
		t.Errorf("stopped before the wait: got %v", err)
	}
	if end := w.syncEnd(ended); end.Staged == nil {
		t.Errorf("ended before the stop: got %+v", end)
	}
}

// A grant that comes with a sync applies to its session.
func TestSyncBringsAGrant(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, record)
	seq := w.sync(client.SyncOptions{Grant: &spaces.Grant{Space: "support", Target: "mine"}})
	v, err := w.Taken(w.ctx, "s1", seq)
	if err != nil || len(v.Open) == 0 || v.Open[0].Target != "mine" {
		t.Fatalf("got %+v, %v", v.Open, err)
	}
	w.ready("y1", "1.0.0")
	if end := w.syncEnd(seq); stages(end.After) != "staged 1.0.0" {
		t.Errorf("got %+v", end)
	}
}

func TestNoticesOfSpacesHaveBodies(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, spaceRecord).host()
	first := w.sync(client.SyncOptions{Apply: spaces.ModeImmediate})
	w.ready("y1", "1.0.0")
	if _, err := w.Detach(w.ctx, "s1", "support"); err != nil {
		t.Fatal(err)
	}
	w.sync(client.SyncOptions{})
	w.say(session.DoorSpace, "s1", session.TypeWorkspaceSyncFailed, map[string]any{"effect": "y2", "error": map[string]any{"code": "space_unknown"}})
	var said []string
	for n, err := range w.Notices(w.ctx, "s1", 0) {
		bustest.OK(t, err)
		switch d := n.Body().(type) {
		case spaces.WorkspaceStaged:
			said = append(said, "staged "+d.Version)
		case spaces.WorkspaceApplied:
			said = append(said, "applied "+string(d.Mode))
		case spaces.WorkspaceGone:
			said = append(said, "gone "+d.Workspace)
		case spaces.WorkspaceFailed:
			said = append(said, "failed "+d.Code)
		}
		if len(said) == 4 {
			break
		}
	}
	if got := strings.Join(said, ", "); got != "staged 1.0.0, applied immediate_if_idle, gone support, failed space_unknown" {
		t.Errorf("got %s", got)
	}
	// The snapshot is of a later event than the request.
	if end := w.syncEnd(first); end.Staged == nil || stages(end.After) != "applied 1.0.0" {
		t.Errorf("the end of the first: got %+v", end)
	}
}
