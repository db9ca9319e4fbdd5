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

// AskReader requests the manifest of a pack that a reader of a target would read
// now, and returns what it offers. Whatever the reader replies, it is an error
// unless the trust that was asked for admits the manifest; or if no reader answers
// within two seconds.
func (b *Bridge) AskReader(ctx context.Context, target string, asked executor.SpaceAsked) (executor.SpaceOffer, error) {
	subject, err := b.bus.Names().Readers(target)
	if err != nil {
		return executor.SpaceOffer{}, err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return executor.SpaceOffer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, worker.OfferWithin)
	defer cancel()
	reply, err := b.bus.Request(ctx, presence.ServiceRequest{Subject: subject, Data: body})
	var answer worker.ReaderAnswer
	switch {
	case err != nil:
		return executor.SpaceOffer{}, err
	case reply.Error != "":
		return executor.SpaceOffer{}, fmt.Errorf("the reader of %s: %s", target, reply.Error)
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return executor.SpaceOffer{}, fmt.Errorf("the reader of %s: %w", target, err)
	}
	m, _ := asked.Trust.Admit(asked.Space, answer.Manifest, answer.Signatures...)
	if m == nil {
		return executor.SpaceOffer{}, fmt.Errorf("the reader of %s: has no manifest of %s that the grant trusts", target, asked.Space)
	}
	return b.worker.OfferOf(m, answer.Source), nil
}

// PublishedPacks returns the newest version of each published pack that trust admits
// and whose name begins with prefix, at most 64, by name. It takes at most two
// seconds.
func (b *Bridge) PublishedPacks(ctx context.Context, prefix string, trust space.Trust) (all []executor.SpaceOffer, err error) {
	ctx, cancel := context.WithTimeout(ctx, worker.OfferWithin)
	defer cancel()
	found, err := b.bus.NewestPacks(ctx, prefix, &trust, worker.OffersMax)
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
