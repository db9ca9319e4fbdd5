package bridge

import (
	"context"
	"slices"

	"github.com/refold/refold/internal/streams"
)

// watchStreams logs what is wrong with the log and with the stream of effects, until
// ctx ends. It returns an error if the log is lost.
func (b *Bridge) watchStreams(ctx context.Context) error {
	var before []streams.Finding
	names := b.bus.Names()
	return b.bus.WatchStreams(ctx, b.conf, func(found []streams.Finding) {
		for _, f := range found {
			if !slices.Contains(before, f) {
				b.options.Logger.Error("stream_endangered", "stream", f.Stream, "setting", f.Setting, "error", f.String())
			}
		}
		before = found
	}, names.LogStream(), names.EffectsStream())
}
