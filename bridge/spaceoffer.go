package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/space"
)

// readerEndpoints returns the endpoints of the targets whose spaces this bridge
// reads.
func (b *Bridge) readerEndpoints(ctx context.Context, targets []worker.Target) (all []presence.Endpoint, err error) {
	for i := range targets {
		s := &targets[i]
		if s.Class != session.ClassSpace {
			continue
		}
		subject, err := b.bus.Names().Readers(s.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, presence.Endpoint{Name: "spaces", Subject: subject, Answer: func(_ string, request []byte) ([]byte, error) {
			return b.worker.Offers(ctx, s.Spaces, request)
		}})
	}
	return all, nil
}

// AskReader requests the packs that a reader of a target would read now. The answer
// lacks packs that it can't read. It is an error if no reader answers within two
// seconds.
func (b *Bridge) AskReader(ctx context.Context, target string, packs []executor.SpaceAsked) ([]executor.SpaceOffer, error) {
	subject, err := b.bus.Names().Readers(target)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(worker.ReaderRequest{Spaces: packs})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, worker.OfferWithin)
	defer cancel()
	reply, err := b.bus.Request(ctx, presence.ServiceRequest{Subject: subject, Data: body})
	var answer worker.ReaderAnswer
	switch {
	case err != nil:
		return nil, err
	case reply.Error != "":
		return nil, fmt.Errorf("the reader of %s: %s", target, reply.Error)
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, fmt.Errorf("the reader of %s: %w", target, err)
	}
	return answer.Spaces, nil
}

// PublishedPacks returns the newest matching version (1, 1.4 or 1.4.2; empty: the
// newest release) of each published pack whose name begins with prefix, at most
// 64, by name. It takes at most two seconds.
func (b *Bridge) PublishedPacks(ctx context.Context, prefix, version string) (all []executor.SpaceOffer, err error) {
	ctx, cancel := context.WithTimeout(ctx, worker.OfferWithin)
	defer cancel()
	found, err := b.bus.NewestPacks(ctx, prefix, version, worker.OffersMax)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if m, _ := space.Parse(found[i].Manifest); m != nil {
			all = append(all, b.worker.OfferOf(m, sourcePackage))
		}
	}
	return slices.Clip(all), nil
}
