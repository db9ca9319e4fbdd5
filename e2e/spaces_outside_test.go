package e2e_test

// A reader of workspaces with NATS, MessagePack and SHA-256, and of Refold only
// the codec: what docs/bridges.md says of a reader is enough.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
)

// outsider reads spaces for a target until ctx ends.
type outsider struct {
	s      *system
	target string
	prompt string // the one file that its spaces have
}

// run pulls effects and settles them, until ctx ends. What fails is offered again;
// the last failure is returned.
func (o *outsider) run(ctx context.Context) (failed error) {
	var consumer jetstream.Consumer
	for consumer == nil && ctx.Err() == nil { // the session-actor may not have made the stream yet
		consumer, failed = o.s.js.CreateOrUpdateConsumer(ctx, "REFOLD_FX", jetstream.ConsumerConfig{
			Durable: "space-" + o.target, FilterSubject: "refold.fx.space." + o.target + ".*.*", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: 30 * time.Second, MaxDeliver: -1, MaxAckPending: 10_000,
		})
	}
	for ctx.Err() == nil {
		msg, err := consumer.Next(jetstream.FetchMaxWait(time.Second))
		if err != nil {
			continue // nothing is asked
		}
		if err := o.carry(ctx, msg); err != nil {
			failed = errors.Join(fmt.Errorf("%s: %w", msg.Subject(), err), msg.Nak())
		}
	}
	return failed
}

// carry stores what one sync reads, settles it, and acknowledges it.
func (o *outsider) carry(ctx context.Context, msg jetstream.Msg) error {
	text, err := codec.ToJSON(msg.Data())
	if err != nil {
		return err
	}
	var asked struct {
		Session, Space, Kind, Effect, Version string
		Known                                 []string
	}
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	event := object{"type": "WorkspaceSyncFailed", "data": object{
		"effect": asked.Effect, "error": object{"code": "version_unknown", "detail": "there is no version " + asked.Version},
	}}
	if asked.Version == "" {
		prompt := []byte(o.prompt)
		ref := sha256.Sum256(prompt)
		name := "sha256-" + hex.EncodeToString(ref[:])
		manifest := object{
			"v": 1, "kind": asked.Kind, "space": asked.Space,
			"files":    list{object{"path": "prompt.md", "ref": name, "size": len(prompt), "media_type": "text/markdown"}},
			"prompts":  list{object{"prompt_pack": "default", "parts": list{object{"file": 0}}}},
			"defaults": object{"prompt_pack": "default"},
		}
		canonical, err := codec.FromJSON([]byte(jsonText(o.s.t, manifest)))
		if err != nil {
			return err
		}
		of := sha256.Sum256(canonical)
		hash := hex.EncodeToString(of[:])
		for name, content := range map[string][]byte{name: prompt, "sha256-" + hash: canonical} {
			if ref := o.s.putBlob(content); ref.String() != name {
				return fmt.Errorf("stored %s, want %s", ref, name)
			}
		}
		event = object{"type": "WorkspaceSnapshotReady", "data": object{"effect": asked.Effect, "manifest": manifest, "revision": "today"}}
		if slices.Contains(asked.Known, hash) {
			event = object{"type": "WorkspaceSyncUnchanged", "data": object{"effect": asked.Effect, "hash": hash}}
		}
	}
	if _, err := o.s.js.Publish(ctx, "refold.space."+asked.Session, []byte(jsonText(o.s.t, event)), jetstream.WithMsgID(asked.Session+"."+asked.Effect)); err != nil {
		return err
	}
	return msg.Ack()
}

// TestReaderFromOutside: a program without package bridge reads spaces.
func TestReaderFromOutside(t *testing.T) {
	t.Parallel()
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "outside"}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&outsider{s: s, target: "outside", prompt: "You are from outside.\n"}).run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; t.Failed() {
			t.Logf("the reader's last failure: %v", err)
		}
	})
	s.models("turns:\n  - shown: {system: [You are from outside.]}\n    say: I am.\n", "scripted")
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "next_run"})
	staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1)
	s.run(session.DoorIn, "s1", "Who are you?", nil)
	s.wantEnd("s1", 1, session.Completed, "")
	s.sync("s1", "support", nil)
	if again := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 2); again.Outcome != spaces.OutcomeUnchanged || again.Hash != staged.Hash {
		t.Errorf("the same again: %+v", again)
	}
	s.sync("s1", "support", object{"version": "7"})
	if failed := nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, 1); failed.Code != "version_unknown" {
		t.Errorf("another version: %+v", failed)
	}
	verifyAll(t, s.url)
}
