package main

import (
	"context"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/bus"
	streamconf "github.com/refold/refold/internal/streams"
)

// checkStreams adds streams that are missing or were changed. A user who may not read
// them all sees nothing.
func (d *diagnosis) checkStreams(ctx context.Context, b *bus.Bus) error {
	want, err := streamconf.ParseConf(refold.StreamsConf, b.Names())
	if err != nil {
		return err
	}
	found, err := b.Check(ctx, want)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for _, f := range found {
		d.failing++
		d.endangered = true
		d.wrong = append(d.wrong, f.String()+": see docs/operations.md, What is noticed")
	}
	return nil
}
