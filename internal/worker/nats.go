package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	natsdelivery "github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// NATS is the Transport of a real bridge.
type NATS struct {
	*bus.Bus
	Members *presence.Members
}

// NewNATS returns the transport over a connection.
func NewNATS(b *bus.Bus) *NATS { return &NATS{Bus: b} }

// unknownHolder is the holder of an unreadable claim. No instance has this name.
const unknownHolder = "-"

// BeginClaim implements Transport.
func (w NATS) BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) func() (Claim, bool, error) {
	var begun journal.Claiming
	body, err := bodyOf(c)
	if err == nil {
		begun, err = w.Bus.BeginClaim(ctx, name, body)
	}
	if err != nil {
		return func() (Claim, bool, error) { return Claim{}, false, err }
	}
	return func() (Claim, bool, error) {
		won, holder, err := begun.Wait()
		if err != nil || won {
			return c, won, err
		}
		stands, err := journal.ParseClaimBody(holder)
		if err != nil {
			// An unreadable body is a claim of an instance without heartbeats.
			return Claim{By: unknownHolder}, false, nil //nolint:nilerr // see above
		}
		return Claim(stands), false, nil
	}
}

func bodyOf(c Claim) ([]byte, error) { return json.Marshal(journal.ClaimBody(c)) }

// Publish implements Transport.
func (w NATS) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (uint64, error) {
	return w.Bus.Publish(ctx, door, sid, payload, id)
}

// LastModelEvent implements Transport.
func (w NATS) LastModelEvent(ctx context.Context, sid string) (session.Event, error) {
	e, found, err := w.LastOf(ctx, session.DoorLLM, sid)
	if err == nil && !found {
		err = natsio.ErrNotFound
	}
	return e, err
}

// View implements Transport.
func (w NATS) View(ctx context.Context, sid string) (session.View, error) {
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	answer, err := w.RequestView(ctx, sid)
	if err != nil {
		return session.View{}, err
	}
	var view session.View
	if err := json.Unmarshal(answer, &view); err != nil {
		return session.View{}, fmt.Errorf("view of %s: %w", sid, err)
	}
	return view, nil
}

// Events implements Transport.
func (w NATS) Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	events, err := w.EventsAt(ctx, seqs)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.Session != sid {
			return nil, fmt.Errorf("event %d is of another session: %w", e.Seq, natsio.ErrNotFound)
		}
	}
	return events, nil
}

// Blob implements Transport.
func (w NATS) Blob(ctx context.Context, ref codec.Ref) ([]byte, error) {
	return w.GetBlobUpTo(ctx, ref, prompt.BlobBytesMax) // no reader accepts more
}

// Live implements Transport.
func (w NATS) Live(sid string, payload []byte) error { return w.PublishLive(sid, payload) }

// Heard implements Transport.
func (w NATS) Heard(instance string) (time.Time, bool) { return w.Members.Heard(instance) }

type natsSource struct{ puller *natsdelivery.EffectPuller }

// NewNATSSource returns a source of a puller's deliveries.
func NewNATSSource(p *natsdelivery.EffectPuller) Source { return natsSource{p} }

func (s natsSource) Run(ctx context.Context, slots int, handle func(Delivery)) error {
	return s.puller.Run(ctx, slots, func(d *natsdelivery.EffectDelivery) { handle(natsDelivery{d}) })
}

func (s natsSource) Drain(ctx context.Context) error { return s.puller.Drain(ctx) }

type natsDelivery struct{ d *natsdelivery.EffectDelivery }

func (n natsDelivery) Subject() string                    { return n.d.Subject }
func (n natsDelivery) Name() (subjects.EffectName, error) { return n.d.EffectName, nil }
func (n natsDelivery) Payload() []byte                    { return n.d.Payload }
func (n natsDelivery) Again() bool                        { return n.d.Again }

// Traceparent returns the header unless its flags say that the run is not sampled.
func (n natsDelivery) Traceparent() string {
	if !strings.HasSuffix(n.d.TraceParent, "-01") {
		return ""
	}
	return n.d.TraceParent
}

func (n natsDelivery) Ack()                         { n.d.Ack() }
func (n natsDelivery) GiveBack(delay time.Duration) { n.d.Nak(delay) }
func (n natsDelivery) Done()                        { n.d.Done() }
