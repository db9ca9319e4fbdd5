package bus

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// BridgeTargets returns the targets of a class that some bridge served once: each
// has a consumer, whoever lives now.
func (b *Bus) BridgeTargets(ctx context.Context, class session.Class) (targets []string, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		targets = nil
		stream, err := b.js.Stream(ctx, b.names.EffectsStream())
		if err != nil {
			return err
		}
		names := stream.ConsumerNames(ctx)
		for name := range names.Name() {
			if of, target, ok := subjects.ParseBridgeName(name); ok && of == class {
				targets = append(targets, target)
			}
		}
		return names.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list who served %s: %w", class, typed(err))
	}
	return targets, nil
}
