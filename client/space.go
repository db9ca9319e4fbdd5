package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// SyncOptions are the optional parts of a request to sync a space.
type SyncOptions struct {
	ID      string        // of the event, at most 64 bytes; empty: a new ULID
	Version string        // for the reader; empty: the current one
	Only    []string      // prompts, tools, context, skills: read these, and keep the rest; nil: all
	Dry     bool          // read and check, and stage nothing. It may be combined only with Version
	Grant   *spaces.Grant // for this space, in place of the install record's; nil: that one
	Kind    space.Kind    // the request is refused if the space is of the other kind; empty: any

	// Apply, if given, is the mode in which the space is applied as soon as it is
	// read: spaces.ModeNextRun, ModeNextStep or ModeImmediate. PromptPack and
	// ToolCatalog go with it; empty: the workspace's defaults.
	Apply                   spaces.Mode
	PromptPack, ToolCatalog string
}

// Sync requests a sync of a space: a bridge that serves the target of its grant
// reads the source, and the session stages the manifest if it trusts it. Sync
// publishes through the door ctl, as all methods about spaces do. The applied
// manifest stays until an apply. An open sync of the same space is withdrawn,
// unless it was requested with the same options, or this one is dry.
//
// SyncEnd waits for the outcome.
func (c *Client) Sync(ctx context.Context, sid, name string, o SyncOptions) (seq uint64, err error) {
	body := session.WorkspaceSyncRequested{
		Apply: o.Apply, Dry: o.Dry, Grant: o.Grant, Kind: o.Kind, Only: o.Only, PromptPack: o.PromptPack, ToolCatalog: o.ToolCatalog, Version: o.Version, Workspace: name,
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeWorkspaceSyncRequested, body, o.ID)
}

// ApplyOptions are the optional parts of a request to apply a space.
type ApplyOptions struct {
	ID    string      // of the event, at most 64 bytes; empty: a new ULID
	Space string      // empty: the staged one
	Mode  spaces.Mode // spaces.ModeNextRun, also when empty, ModeNextStep or ModeImmediate
	Hash  string      // of the manifest that must be staged, in hex; empty: any

	PromptPack, ToolCatalog string // empty: the workspace's defaults
}

// Apply makes the staged manifest pending for the boundary of the mode, or
// applies it at once. If nothing is staged, it moves the pending manifest to an
// earlier boundary. Taken returns which, or why the session refused.
func (c *Client) Apply(ctx context.Context, sid string, o ApplyOptions) (seq uint64, err error) {
	body := session.WorkspaceApplyRequested{Hash: o.Hash, Mode: o.Mode, PromptPack: o.PromptPack, ToolCatalog: o.ToolCatalog, Workspace: o.Space}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeWorkspaceApplyRequested, body, o.ID)
}

// Detach removes a space from a session: its applied, pending and staged
// manifests, an open sync, and a grant that came with a sync. The session refuses
// while a config, a run or a rule names a part of the space: see Taken.
func (c *Client) Detach(ctx context.Context, sid, name string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeWorkspaceDetached, session.WorkspaceDetached{Workspace: name}, "")
}

// DetachPack is Detach for a pack: the session refuses if the space is a workspace.
func (c *Client) DetachPack(ctx context.Context, sid, name string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeWorkspaceDetached, session.WorkspaceDetached{Kind: space.Pack, Workspace: name}, "")
}

// HeldSpace is a manifest that a session holds.
type HeldSpace struct {
	Pin      spaces.Pin
	Stage    string          // StageStaged, StagePending, StageApplied
	Mode     spaces.Mode     // if it is pending
	Manifest *space.Manifest // read-only
}

// The values of HeldSpace.Stage.
const (
	StageStaged  = "staged"
	StagePending = "pending"
	StageApplied = "applied"
)

// Spaces returns the manifests that a session holds, the newest first: staged,
// then pending, then applied ones. It reads the log and needs neither a
// session-actor nor the files of a space.
func (c *Client) Spaces(ctx context.Context, sid string) ([]HeldSpace, error) {
	state, err := c.latest(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("spaces of %s: %w", sid, err)
	}
	return heldBy(state), nil
}

func heldBy(state *session.State) (held []HeldSpace) {
	if state.Spaces == nil {
		return nil
	}
	add := func(p spaces.Pin, stage string, mode spaces.Mode) {
		held = append(held, HeldSpace{Pin: p, Stage: stage, Mode: mode, Manifest: state.Manifest(p.Hash)})
	}
	for _, s := range state.Spaces.Staged {
		add(s.Pin, StageStaged, "")
	}
	for _, s := range state.Spaces.Pending {
		add(s.Pin, StagePending, s.Mode)
	}
	for _, p := range state.Spaces.Applied {
		add(p, StageApplied, "")
	}
	return held
}

// SyncEnd is the end of a sync. Staged or Failed is set, or both if the space was
// staged and the requested apply failed.
type SyncEnd struct {
	Seq      uint64                  // of the event that ended it
	Staged   *spaces.WorkspaceStaged // nil: nothing was read, or the session does not trust it
	Failed   *spaces.WorkspaceFailed // nil: nothing failed
	Problems []space.Problem         // all problems that the reader reported; Failed has the first of them

	Manifest *space.Manifest // as read; nil: none
	Before   []HeldSpace     // the manifests of the space that the session held at the request, the newest first
	After    []HeldSpace     // those that it holds now
}

// SyncEnd waits for the end of the sync that the event at seq requested. It folds
// the log itself. It fails with a *RejectedError if the session refused the
// request, and with a *QuarantinedError if the session stops before the end. The
// sync continues when ctx ends.
func (c *Client) SyncEnd(ctx context.Context, sid string, seq uint64) (*SyncEnd, error) {
	if _, err := c.Taken(ctx, sid, seq); err != nil {
		return nil, err
	}
	requested, data, err := c.requestedSync(ctx, seq)
	if err != nil {
		return nil, err
	}
	w := syncWait{name: requested.Workspace, data: data}
	for {
		last, err := c.LastNotice(ctx)
		if err != nil {
			return nil, err
		}
		stopped, err := c.quarantineOf(ctx, sid)
		if err != nil {
			return nil, err
		}
		if stopped.Seq == 0 {
			end, quarantined, err := c.awaitSync(ctx, sid, seq, last+1, w)
			if !quarantined {
				return end, err
			}
			continue // read where it stopped
		}
		end, err := c.syncEndIn(ctx, sid, seq, w, func(state *session.State, each func(*foldedEvent) bool) error {
			_, err := c.refold(ctx, sid, state, stopped.Seq-1, each)
			return err
		})
		if err == nil && end == nil {
			err = &QuarantinedError{Reason: stopped.Reason}
		}
		return end, err
	}
}

// syncWait is a space, and the hash of the request for its sync.
type syncWait struct {
	name string
	data codec.Hash
}

// effect returns the effect of the open sync that was requested with the data.
func (w syncWait) effect(state *session.State) (string, bool) {
	if state.Spaces != nil {
		for i := range state.Spaces.Syncs {
			if o := &state.Spaces.Syncs[i]; o.Space == w.name && o.Data == w.data {
				return o.Name(), true
			}
		}
	}
	return "", false
}

// awaitSync waits for the end of a sync, or for a notice, from a sequence on,
// that the session is quarantined.
func (c *Client) awaitSync(ctx context.Context, sid string, seq, from uint64, w syncWait) (end *SyncEnd, quarantined bool, err error) {
	waiting, stop := context.WithCancel(ctx)
	stopSeen := make(chan bool, 1)
	go func() {
		for n, err := range c.Notices(waiting, sid, from) {
			if err != nil {
				break
			}
			if _, is := n.Body().(session.SessionQuarantined); is {
				stopSeen <- true
				stop()
				return
			}
		}
		stopSeen <- false
	}()
	end, err = c.syncEndIn(waiting, sid, seq, w, func(state *session.State, each func(*foldedEvent) bool) error {
		_, err := c.foldEach(waiting, state, c.Events(waiting, sid, seq+1), each)
		return err
	})
	stop()
	if quarantined = <-stopSeen; end != nil {
		_, err := c.quarantineAfter(ctx, sid, end.Seq)
		if is := (*QuarantinedError)(nil); errors.As(err, &is) {
			return end, true, nil
		}
		return end, false, err
	}
	return nil, quarantined, err
}

// syncEndIn returns the end of a sync after seq, nil if it did not end. fold
// folds the events after seq.
func (c *Client) syncEndIn(ctx context.Context, sid string, seq uint64, w syncWait, fold func(*session.State, func(*foldedEvent) bool) error) (end *SyncEnd, err error) {
	state, err := c.snapshotBelow(ctx, sid, seq)
	if err == nil {
		state, err = c.refold(ctx, sid, state, seq, func(*foldedEvent) bool { return true })
	}
	if err != nil {
		return nil, fmt.Errorf("outcome of event %d: %w", seq, err)
	}
	before := heldOf(state, w.name)
	effect, ok := w.effect(state)
	if !ok {
		return nil, fmt.Errorf("no sync of %s is open after event %d", w.name, seq)
	}
	err = fold(state, func(t *foldedEvent) bool {
		if end = t.syncEnd(effect); end != nil {
			end.Before, end.After = before, heldOf(t.after, w.name)
			end.read(t, effect)
		}
		return end == nil
	})
	return end, err
}

// requestedSync returns the request at a sequence, with the hash of its data.
func (c *Client) requestedSync(ctx context.Context, seq uint64) (b session.WorkspaceSyncRequested, data codec.Hash, err error) {
	e, err := c.bus.EventAt(ctx, seq)
	if err != nil {
		return b, data, err
	}
	env, err := envelopeOf(e)
	switch {
	case err != nil:
		return b, data, err
	case env.Type != session.TypeWorkspaceSyncRequested:
		return b, data, fmt.Errorf("event %d is a %s: it requests no sync", seq, env.Type)
	}
	return b, codec.Digest(env.Data), codec.Decode(env.Data, &b)
}

func heldOf(state *session.State, name string) []HeldSpace {
	return slices.DeleteFunc(heldBy(state), func(h HeldSpace) bool { return h.Pin.Space != name })
}

// syncEnd returns the end of a sync by the event, nil if it did not end there.
func (t *foldedEvent) syncEnd(effect string) *SyncEnd {
	end := SyncEnd{Seq: t.Seq}
	for _, n := range t.notices {
		switch d := n.Data.(type) {
		case spaces.WorkspaceStaged:
			if d.Effect == effect {
				end.Staged = &d
			}
		case spaces.WorkspaceFailed:
			if d.Effect == effect {
				end.Failed, end.Problems = &d, d.Problems
			}
		}
	}
	if end.Staged == nil && end.Failed == nil {
		return nil
	}
	return &end
}

// read adds what the settlement of the sync holds besides the notices. There is no
// settlement if the session itself ended the sync.
func (end *SyncEnd) read(t *foldedEvent, effect string) {
	env, err := envelopeOf(t.Event)
	if err != nil {
		return
	}
	switch env.Type {
	case session.TypeWorkspaceSnapshotReady:
		var b session.WorkspaceSnapshotReady
		if codec.Decode(env.Data, &b) == nil && b.Effect == effect {
			end.Manifest, _ = space.Parse(b.Manifest)
		}
	case session.TypeWorkspaceSyncUnchanged:
		for i := range end.Before {
			if end.Staged != nil && end.Before[i].Pin.Hash.Is(end.Staged.Hash) {
				end.Manifest = end.Before[i].Manifest
			}
		}
	case session.TypeWorkspaceSyncFailed:
		var b session.WorkspaceSyncFailed
		if codec.Decode(env.Data, &b) == nil && b.Effect == effect && len(b.Problems) > len(end.Problems) {
			end.Problems = b.Problems
		}
	}
}
