package bridgecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Times of heartbeats.
const (
	beatsSeen  = 2 // intervals to wait for, at least
	beatGapMax = presence.HeartbeatEvery * 3
)

// beats returns the heartbeats of bridges that serve the target, by instance.
func (c *checker) beats() map[string][]message {
	target := string(session.ClassTool) + "/" + c.Target
	all := map[string][]message{}
	for _, h := range c.seen.of(func(h message) bool { return h.kind == beat }) {
		var body struct {
			Targets []string `json:"targets"`
		}
		_, instance, err := c.bus.Names().ParseAlive(h.msg.Subject)
		if err == nil && json.Unmarshal(h.msg.Data, &body) == nil && slices.Contains(body.Targets, target) {
			all[instance] = append(all[instance], h)
		}
	}
	return all
}

func (c *checker) heartbeat(ctx context.Context) error {
	if ok, err := c.seen.wait(ctx, c.Within, func() bool { return len(c.beats()) > 0 }); !ok {
		return cmp.Or(err, found("no heartbeat of the target arrived within %v", c.Within))
	}
	if err := c.pass(ctx, beatsSeen*beatGapMax); err != nil {
		return err
	}
	for instance, all := range c.beats() {
		var body struct{ Rules int }
		if err := json.Unmarshal(all[0].msg.Data, &body); err != nil || body.Rules < 1 {
			return found("the heartbeat %s has no rules", shown(all[0].msg.Data))
		}
		last := all[0].at
		for _, h := range append(all[1:], message{at: time.Now()}) {
			if gap := h.at.Sub(last); gap > beatGapMax {
				return found("the heartbeats of %s were %v apart", instance, gap.Round(time.Millisecond))
			}
			last = h.at
		}
	}
	return nil
}

// info returns the state of the consumer; nil: there is none.
func (c *checker) info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	name, err := subjects.BridgeName(session.ClassTool, c.Target)
	if err != nil {
		return nil, err
	}
	consumer, err := c.js.Consumer(ctx, c.bus.Names().EffectsStream(), name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return consumer.CachedInfo(), nil
}

func (c *checker) consumer(ctx context.Context) error {
	var info *jetstream.ConsumerInfo
	deadline, tick := time.Now().Add(c.Within), 100*time.Millisecond
	for info == nil || info.NumWaiting == 0 {
		var err error
		if info, err = c.info(ctx); err != nil {
			return err
		}
		switch over := time.Now().After(deadline); {
		case over && info == nil:
			return found("there is no consumer of the target")
		case over:
			return found("nobody pulls from the consumer %s", info.Name)
		}
		if err := c.pass(ctx, tick); err != nil {
			return err
		}
	}
	filter, err := c.bus.Names().BridgeFilter(session.ClassTool, c.Target)
	if err != nil {
		return err
	}
	c.leaseTime = info.Config.AckWait
	switch of := info.Config; {
	case of.FilterSubject != filter || len(of.FilterSubjects) > 0:
		return found("its filter is %q, and not %s", append(of.FilterSubjects, of.FilterSubject), filter)
	case of.AckPolicy != jetstream.AckExplicitPolicy:
		return found("its ack_policy is %s", of.AckPolicy)
	case of.MaxDeliver > 0:
		return found("its max_deliver is %d", of.MaxDeliver)
	case of.DeliverPolicy != jetstream.DeliverAllPolicy:
		return found("its deliver_policy is %s", of.DeliverPolicy)
	case of.InactiveThreshold > 0:
		return found("the server deletes it after %v without a bridge", of.InactiveThreshold)
	}
	return nil
}

func (c *checker) call(ctx context.Context) error {
	a, err := c.expect(ctx, nil, "", session.CallSucceeded)
	if err != nil {
		return err
	}
	c.settled = a
	body, err := c.claimed(ctx, a)
	if err != nil {
		return err
	}
	if body == "" {
		return found("it was settled without a claim")
	}
	if all := c.about(a, claim, settlement); all[0].kind != claim {
		return found("it was claimed after it was settled")
	}
	stands, err := readClaim(body, a)
	if err != nil {
		return err
	}
	ok, err := c.seen.wait(ctx, beatGapMax, func() bool { return len(c.beats()[stands.By]) > 0 })
	if err == nil && !ok {
		return found("its claim names the instance %q, which sent no heartbeat", stands.By)
	}
	return err
}

// claimBody is the content of a claim.
type claimBody struct {
	By        string `json:"by"`
	Hash      string `json:"hash"`
	Withdrawn bool   `json:"withdrawn"`
}

// readClaim decodes the claim of an effect.
func readClaim(body string, of *testCall) (c claimBody, err error) {
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		return c, found("its claim is %q", body)
	}
	if hash := codec.Sum(of.payload).String(); c.Hash != "" && c.Hash != hash {
		return c, found("its claim has the hash %q; the effect's bytes have %s", c.Hash, hash)
	}
	return c, nil
}

func (c *checker) safeCall(ctx context.Context) error {
	_, err := c.expect(ctx, func(call *session.ToolCall) { call.RetrySafe = true }, "", session.CallSucceeded)
	return err
}

// again makes the server forget an acknowledgement, so that it delivers again.
func (c *checker) again(ctx context.Context) error {
	switch {
	case !c.Own:
		return unchecked("it resets the consumer, which needs a server of its own")
	case c.settled == nil:
		return unchecked("no call was settled")
	}
	info, err := c.info(ctx)
	if err != nil {
		return err
	}
	acks := len(c.about(c.settled, ack))
	if _, err := c.js.ResetConsumerToSequence(ctx, info.Stream, info.Name, c.settled.seq); err != nil {
		return fmt.Errorf("reset the consumer %s: %w", info.Name, err)
	}
	ok, err := c.seen.wait(ctx, c.Within, func() bool { return len(c.about(c.settled, ack)) > acks })
	if err != nil {
		return err
	}
	if !ok {
		return found("it was delivered again and not acknowledged within %v; %s", c.Within, c.answers(c.settled))
	}
	if err := c.pass(ctx, c.Quiet); err != nil {
		return err
	}
	return c.once(c.settled)
}

func (c *checker) late(ctx context.Context) error {
	a, err := c.expect(ctx, func(call *session.ToolCall) {
		now := c.clock.Now()
		call.At, call.StartBy = now.Add(-time.Minute).UnixMilli(), now.Add(-time.Second).UnixMilli()
	}, session.CodeDeadlineExceeded, session.CallFailed)
	if err != nil {
		return err
	}
	body, err := c.claimed(ctx, a)
	if err != nil {
		return err
	}
	stands, err := readClaim(body, a)
	if err == nil && !stands.Withdrawn {
		return found("its claim is %q", body)
	}
	return err
}

// notRead stores an effect and checks that the bridge only gives it back.
func (c *checker) notRead(ctx context.Context, change func(*testCall) error) error {
	a, err := c.make(c.Arguments, c.Within)
	if err == nil {
		err = change(a)
	}
	if err == nil {
		err = c.store(ctx, a)
	}
	if err != nil {
		return err
	}
	if err := c.untouched(ctx, a, 3); err != nil {
		return err
	}
	if body, err := c.claimed(ctx, a); err != nil || body != "" {
		return cmp.Or(err, found("it was claimed: %s", shown([]byte(body))))
	}
	// No bridge can read it, so no other bridge ends its deliveries.
	if given := c.about(a, nak); len(given) > 0 {
		return c.nc.Publish(given[len(given)-1].msg.Subject, []byte("+TERM"))
	}
	return nil
}

func (c *checker) unknownField(ctx context.Context) error {
	return c.notRead(ctx, func(a *testCall) (err error) {
		if a.payload, err = codec.Marshal(a.call); err != nil {
			return err
		}
		var fields codec.Pairs
		if err := codec.Unmarshal(a.payload, &fields); err != nil {
			return err
		}
		yes, err := codec.Marshal(true)
		if err != nil {
			return err
		}
		a.payload, err = codec.Marshal(append(fields, codec.Pair{Key: "zone", Value: yes})) // after all others
		return err
	})
}

func (c *checker) newer(ctx context.Context) error {
	return c.notRead(ctx, func(a *testCall) error {
		a.call.V = session.Version + 1
		return nil
	})
}

func (c *checker) unreadable(ctx context.Context) error {
	bad, err := c.make(c.Arguments, c.Within)
	if err != nil {
		return err
	}
	bad.payload = []byte("\xc1 this is no MessagePack")
	other, err := c.make(c.Arguments, c.Within)
	if err != nil {
		return err
	}
	other.call.Effect, other.call.IdempotencyKey = "r2t1c0", other.name.Session+".r2t1c0" // differs from its subject
	other.call.Batch = "r2t1"
	if err := cmp.Or(c.store(ctx, bad), c.store(ctx, other)); err != nil {
		return err
	}
	if _, err := c.expect(ctx, nil, "", session.CallSucceeded); err != nil {
		return found("the call after it: %v", err)
	}
	named := *other
	named.name.Effect = other.call.Effect
	for _, of := range []*testCall{bad, other, &named} {
		if all := c.about(of, settlement); len(all) > 0 {
			return found("it was settled: %s", shown(all[0].msg.Data))
		}
	}
	return nil
}

func (c *checker) large(ctx context.Context) error {
	if c.Large == "" {
		return unchecked("give --large: arguments of a call whose result is above 256 KiB")
	}
	a, err := c.open(ctx, c.Large, slowMax, nil)
	if err != nil {
		return err
	}
	s, err := c.outcome(ctx, slowMax, a)
	if err != nil {
		return err
	}
	content := s.Output
	if content != nil && len(content.Parts) > 0 {
		content = &content.Parts[len(content.Parts)-1]
	}
	if content == nil || content.Blob == nil {
		return unchecked("the call's result is not a blob: its text is at most 256 KiB")
	}
	text, err := c.bus.GetBlob(ctx, *content.Blob)
	if errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes) {
		return found("the blob %s: %v", content.Blob, err)
	}
	if err == nil && int64(len(text)) != content.Size && content.Size != 0 {
		return found("the blob %s has %d bytes, and the settlement says %d", content.Blob, len(text), content.Size)
	}
	return err
}
