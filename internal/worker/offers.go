package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/space"
)

const (
	OfferWithin = 2 * time.Second // for a reader's answer
	OffersMax   = 64              // published packs that are listed
)

// ReaderAnswer is the body of a reader's answer about one pack. It has no manifest if
// the pack can't be read.
type ReaderAnswer struct {
	Source     string            `json:"source,omitempty"` // factory, package or module, as the reader reports it
	Manifest   []byte            `json:"manifest,omitempty"`
	Signatures []space.Signature `json:"signatures,omitempty"`
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

// Offers answers a request to a reader: for the pack as it would be read now.
func (w *Worker) Offers(ctx context.Context, reader executor.SpaceReader, body []byte) ([]byte, error) {
	var asked executor.SpaceAsked
	if err := json.Unmarshal(body, &asked); err != nil || asked.Space == "" {
		return nil, errors.New(`ask for a pack, as {"space":"crm","trust":{"keys":["U…"]}}`)
	}
	ctx, cancel := context.WithTimeout(ctx, OfferWithin)
	defer cancel()
	answer, err := w.offer(ctx, reader, &asked)
	if err != nil {
		w.log.Debug("space_not_offered", "space", asked.Space, "error", err.Error())
	}
	return json.Marshal(answer)
}

func (w *Worker) offer(ctx context.Context, reader executor.SpaceReader, asked *executor.SpaceAsked) (_ ReaderAnswer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader panicked: %v", p)
		}
	}()
	request := executor.SpaceRequest{Space: asked.Space, Kind: string(space.Pack), Version: asked.Trust.Version, Trust: &asked.Trust}
	built, content, err := buildSpace(ctx, reader, request, nil)
	switch {
	case err != nil:
		return ReaderAnswer{}, err
	case built.Manifest == nil:
		return ReaderAnswer{}, errors.New(built.Problems[0].String())
	}
	return ReaderAnswer{Source: content.Source, Manifest: built.Manifest.Bytes(), Signatures: content.Signatures}, nil
}
