package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/space"
)

const (
	OfferWithin = 2 * time.Second // for a reader's answer
	OffersMax   = 64              // packs in one request
)

// ReaderRequest is the body of a request to a reader.
type ReaderRequest struct {
	Spaces []executor.SpaceAsked `json:"spaces"`
}

// ReaderAnswer is the body of a reader's answer, without the packs that can't be
// read.
type ReaderAnswer struct {
	Spaces []executor.SpaceOffer `json:"spaces"`
}

// OfferOf returns the offer of a pack with this manifest. Secrets that the catalog
// calls optional are not required.
func (w *Worker) OfferOf(m *space.Manifest, source string) executor.SpaceOffer {
	o := executor.SpaceOffer{Space: m.Space, Version: m.Version, Source: source, Category: m.Category, DisplayName: m.DisplayName, Description: m.Description}
	for _, need := range m.AllNeeds() {
		if name, ok := strings.CutPrefix(need, "secret:"); ok && !strings.HasSuffix(need, "?") && !w.vault.optional(name) {
			o.RequiredSecrets = append(o.RequiredSecrets, name)
		}
	}
	return o
}

// Offers answers a request to a reader.
func (w *Worker) Offers(ctx context.Context, reader executor.SpaceReader, body []byte) ([]byte, error) {
	var request ReaderRequest
	if err := json.Unmarshal(body, &request); err != nil || len(request.Spaces) > OffersMax {
		return nil, fmt.Errorf("ask for at most %d packs, as {\"spaces\":[{\"space\":\"crm\"}]}", OffersMax)
	}
	ctx, cancel := context.WithTimeout(ctx, OfferWithin)
	defer cancel()
	found := make([]*executor.SpaceOffer, len(request.Spaces))
	var reading sync.WaitGroup
	for i, wanted := range request.Spaces {
		reading.Go(func() {
			var err error
			if found[i], err = w.offer(ctx, reader, wanted); err != nil {
				w.log.Debug("space_not_offered", "space", wanted.Space, "error", err.Error())
			}
		})
	}
	reading.Wait()
	answer := ReaderAnswer{Spaces: []executor.SpaceOffer{}}
	for _, o := range found {
		if o != nil {
			answer.Spaces = append(answer.Spaces, *o)
		}
	}
	return json.Marshal(answer)
}

func (w *Worker) offer(ctx context.Context, reader executor.SpaceReader, wanted executor.SpaceAsked) (_ *executor.SpaceOffer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader panicked: %v", p)
		}
	}()
	built, content, err := buildSpace(ctx, reader, executor.SpaceRequest{Space: wanted.Space, Kind: string(space.Pack), Version: wanted.Version}, nil)
	switch {
	case err != nil:
		return nil, err
	case built.Manifest == nil:
		return nil, errors.New(built.Problems[0].String())
	}
	version, _ := space.ParseVersion(built.Manifest.Version)
	if selector, ok := space.ParseSelector(wanted.Version); wanted.Version != "" && (!ok || !selector.Matches(version)) {
		return nil, fmt.Errorf("its version is %s", built.Manifest.Version)
	}
	o := w.OfferOf(built.Manifest, content.Source)
	return &o, nil
}
