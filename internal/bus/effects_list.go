package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// EffectNames returns the names of all effects that the effects stream holds,
// in no order. A name outlives its use, so most of them are settled; sessions
// say in their views what is open.
func (b *Bus) EffectNames(ctx context.Context) (all []subjects.EffectName, err error) {
	for _, filter := range b.names.StreamSubjects(b.names.EffectsStream()) {
		var found map[string]uint64
		err = b.retry(ctx, func(ctx context.Context) error {
			stream, err := b.js.Stream(ctx, b.names.EffectsStream())
			if err != nil {
				return err
			}
			info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
			if err == nil {
				found = info.State.Subjects
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list effects: %w", typed(err))
		}
		for subject := range found {
			if name, err := b.names.ParseEffect(subject); err == nil { // else a claim
				all = append(all, name)
			}
		}
	}
	return all, nil
}
