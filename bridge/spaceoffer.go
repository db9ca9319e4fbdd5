package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/space"
)

const (
	offerWithin = 2 * time.Second // in which a reader answers what it would read
	offersMax   = 64              // packs that it is asked for at once
)

// readerRequest is the body of a request to a reader, and readerAnswer that of its
// answer. Packs that can't be read are missing there.
type (
	readerRequest struct {
		Spaces []executor.SpaceAsked `json:"spaces"`
	}
	readerAnswer struct {
		Spaces []executor.SpaceOffer `json:"spaces"`
	}
)

// offerOf returns what a manifest says of a pack. Secrets that the catalog calls
// optional are not required.
func (v *vault) offerOf(m *space.Manifest, source string) executor.SpaceOffer {
	o := executor.SpaceOffer{Space: m.Space, Version: m.Version, Source: source, Category: m.Category, DisplayName: m.DisplayName, Description: m.Description}
	for _, need := range m.AllNeeds() {
		if name, ok := strings.CutPrefix(need, "secret:"); ok && !strings.HasSuffix(need, "?") && !v.optional(name) {
			o.RequiredSecrets = append(o.RequiredSecrets, name)
		}
	}
	return o
}

// readerEndpoints answer for the targets whose spaces this bridge reads.
func (b *Bridge) readerEndpoints(ctx context.Context, targets []served) (all []presence.Endpoint, err error) {
	for i := range targets {
		s := &targets[i]
		if s.class != session.ClassSpace {
			continue
		}
		subject, err := b.bus.Names().Readers(s.target)
		if err != nil {
			return nil, err
		}
		all = append(all, presence.Endpoint{Name: "spaces", Subject: subject, Answer: func(_ string, request []byte) ([]byte, error) {
			return b.worker.offers(ctx, s.spaces, request)
		}})
	}
	return all, nil
}

// offers answers a request to a reader.
func (w *worker) offers(ctx context.Context, reader executor.SpaceReader, body []byte) ([]byte, error) {
	var request readerRequest
	if err := json.Unmarshal(body, &request); err != nil || len(request.Spaces) > offersMax {
		return nil, fmt.Errorf("ask for at most %d packs, as {\"spaces\":[{\"space\":\"crm\"}]}", offersMax)
	}
	ctx, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	found := make([]*executor.SpaceOffer, len(request.Spaces))
	var reading sync.WaitGroup
	for i, asked := range request.Spaces {
		reading.Go(func() {
			var err error
			if found[i], err = w.offer(ctx, reader, asked); err != nil {
				w.log.Debug("space_not_offered", "space", asked.Space, "error", err.Error())
			}
		})
	}
	reading.Wait()
	answer := readerAnswer{Spaces: []executor.SpaceOffer{}}
	for _, o := range found {
		if o != nil {
			answer.Spaces = append(answer.Spaces, *o)
		}
	}
	return json.Marshal(answer)
}

// offer reads one pack.
func (w *worker) offer(ctx context.Context, reader executor.SpaceReader, asked executor.SpaceAsked) (_ *executor.SpaceOffer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader panicked: %v", p)
		}
	}()
	built, content, err := buildSpace(ctx, reader, executor.SpaceRequest{Space: asked.Space, Kind: string(space.Pack), Version: asked.Version}, nil)
	switch {
	case err != nil:
		return nil, err
	case built.Manifest == nil:
		return nil, errors.New(built.Problems[0].String())
	}
	version, _ := space.ParseVersion(built.Manifest.Version)
	if selector, ok := space.ParseSelector(asked.Version); asked.Version != "" && (!ok || !selector.Matches(version)) {
		return nil, fmt.Errorf("its version is %s", built.Manifest.Version)
	}
	o := w.vault.offerOf(built.Manifest, content.Source)
	return &o, nil
}

// AskReader asks a bridge that reads the spaces of a target which packs it would
// read now. Packs that it can't read are missing from the answer. The error says
// that none answered within two seconds.
func (b *Bridge) AskReader(ctx context.Context, target string, asked []executor.SpaceAsked) ([]executor.SpaceOffer, error) {
	subject, err := b.bus.Names().Readers(target)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(readerRequest{asked})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	reply, err := b.bus.Request(ctx, presence.ServiceRequest{Subject: subject, Data: body})
	var answer readerAnswer
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

// PublishedPacks returns the newest version that matches (1, 1.4 or 1.4.2; empty:
// the newest release) of each published pack whose name begins with prefix, at
// most 64 by name. It takes two seconds at most.
func (b *Bridge) PublishedPacks(ctx context.Context, prefix, version string) (all []executor.SpaceOffer, err error) {
	ctx, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	found, err := b.bus.NewestPacks(ctx, prefix, version, offersMax)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if m, _ := space.Parse(found[i].Manifest); m != nil {
			all = append(all, b.worker.vault.offerOf(m, sourcePackage))
		}
	}
	return slices.Clip(all), nil
}
