package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/planner"
)

// Remade implements Transport. It folds the session, whose registries and manifests
// are in the log: the install record that it pinned, and its own events. Whatever else
// of the turn's registry is not stored is stored, too. If this user may not store it,
// the content is returned all the same.
func (w NATS) Remade(ctx context.Context, sid string, ref codec.Ref) ([]byte, error) {
	state, err := foldSession(ctx, w.Bus, sid)
	if err != nil {
		return nil, fmt.Errorf("make %s again: %w", ref, err)
	}
	content, others := contentOf(state, ref)
	if content == nil {
		return nil, fmt.Errorf("%s is not in the log of %s: %w", ref, sid, natsio.ErrNotFound)
	}
	if err := errors.Join(w.PutBlobs(ctx, others), w.RestoreBlob(ctx, content)); err != nil {
		w.Log.Warn("blob_not_restored", "session", sid, "blob", ref.String(), "error", err.Error())
	} else {
		w.Log.Warn("blob_restored", "session", sid, "blob", ref.String(), "note", "it was lost, and is stored again from the log")
	}
	return content, nil
}

// foldSession returns the state of a session as the log has it now.
func foldSession(ctx context.Context, b *bus.Bus, sid string) (state *session.State, err error) {
	installs := journal.NewInstalls(b, b.Log, nil)
	for e, err := range b.ReadSession(ctx, sid, 1, 0, true) {
		if err != nil {
			return nil, err
		}
		if state == nil {
			install, err := installs.Pinned(ctx, e.Seq)
			if err != nil {
				return nil, err
			}
			state = session.New(install, sid)
		}
		if err := state.Foldable(); err != nil {
			return nil, err
		}
		_, _ = state.Evolve(e) // a rejected event changes nothing
	}
	if state == nil {
		return nil, fmt.Errorf("the log has no event of it: %w", natsio.ErrNotFound)
	}
	return state, nil
}

// contentOf returns the content that a state has under a name, nil if it has none; of a
// descriptor, also those of the other tools.
func contentOf(s *session.State, ref codec.Ref) (content []byte, others [][]byte) {
	if m := s.Manifest(ref.Hash); m != nil {
		return m.Bytes(), nil
	}
	for _, registry := range []*planner.Registry{s.TurnRegistry(), s.NextRegistry()} {
		if registry == nil {
			continue
		}
		blobs := registry.Blobs()
		i := slices.IndexFunc(blobs, func(b planner.Blob) bool { return b.Ref == ref })
		if i < 0 {
			continue
		}
		for _, b := range blobs {
			others = append(others, b.Content)
		}
		return blobs[i].Content, others
	}
	return nil, nil
}
