package bridgecheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// Times of the published effects.
const (
	startWithin = 5 * time.Minute // until start_by
	slowMax     = 5 * time.Minute // the longest that a slow call may take
)

// testCall is an effect that is stored, or is about to be.
type testCall struct {
	name    subjects.EffectName
	call    session.ToolCall
	payload []byte
	claim   string // subject of its claim
	at      time.Time
	seq     uint64 // in the effects stream
}

func (c *checker) session() string { return "check-" + c.Instance }

// make returns a call that is not stored yet and that may not run twice.
func (c *checker) make(arguments string, run time.Duration) (*testCall, error) {
	c.opened++
	batch := "r1t" + strconv.Itoa(c.opened)
	now := c.clock.Now()
	a := &testCall{name: subjects.EffectName{Class: session.ClassTool, Target: c.Target, Session: c.session(), Effect: batch + "c0"}}
	a.call = session.ToolCall{
		V: session.Version, Class: session.ClassTool, Session: a.name.Session, Effect: a.name.Effect, Batch: batch,
		At: now.UnixMilli(), StartBy: now.Add(startWithin).UnixMilli(), RunMS: run.Milliseconds(),
		ToolID: c.Tool, ToolName: c.Tool[strings.LastIndexByte(c.Tool, '.')+1:], Arguments: arguments,
		IdempotencyKey: a.name.Session + "." + a.name.Effect, PlanHash: codec.Digest([]byte(batch)),
	}
	var err error
	a.claim, err = c.bus.Names().Claim(subjects.ClaimName{EffectName: a.name, N: 1})
	return a, err
}

// store stores the effect: its payload if that is set, else its call.
func (c *checker) store(ctx context.Context, a *testCall) error {
	subject, err := c.bus.Names().Effect(a.name)
	if err == nil && a.payload == nil {
		a.payload, err = codec.Marshal(a.call)
	}
	if err != nil {
		return err
	}
	m := nats.NewMsg(subject)
	m.Header.Set("Content-Type", "application/msgpack")
	m.Data, a.at = a.payload, time.Now()
	stored, err := c.js.PublishMsg(ctx, m)
	if err != nil {
		return fmt.Errorf("store %s: %w", subject, err)
	}
	a.seq = stored.Sequence
	return nil
}

// open makes a call and stores it. change, if not nil, changes it first.
func (c *checker) open(ctx context.Context, arguments string, run time.Duration, change func(*session.ToolCall)) (*testCall, error) {
	a, err := c.make(arguments, run)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&a.call)
	}
	return a, c.store(ctx, a)
}

// expect opens a call that is not slow, and waits for its settlement as want does.
func (c *checker) expect(ctx context.Context, change func(*session.ToolCall), code string, statuses ...session.CallStatus) (*testCall, error) {
	a, err := c.open(ctx, c.Arguments, c.Within, change)
	if err == nil {
		err = c.want(ctx, c.Within, a, code, statuses...)
	}
	return a, err
}

// settles reports whether an event settles the named effect.
func settles(event []byte, effect string) bool {
	s, err := readSettlement(event)
	return err == nil && s.Effect == effect || err != nil && bytes.Contains(event, []byte(effect))
}

// readSettlement decodes an event strictly, as a session does.
func readSettlement(event []byte) (s session.ToolCallSettled, err error) {
	env, err := session.ReadEnvelope(event)
	if err != nil {
		return s, err
	}
	if env.Type != session.TypeToolCallSettled {
		return s, fmt.Errorf("its type is %q", env.Type)
	}
	return s, codec.Decode(env.Data, &s)
}

// outcome waits for the settlement of a call, and returns what is wrong with it.
func (c *checker) outcome(ctx context.Context, d time.Duration, a *testCall) (*session.ToolCallSettled, error) {
	ok, err := c.await(ctx, d, a, settlement)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, found("no settlement arrived within %v; %s", d.Round(time.Millisecond), c.answers(a))
	}
	got := c.about(a, settlement)[0]
	s, err := readSettlement(got.msg.Data)
	switch {
	case err != nil:
		return nil, found("a session can't read the settlement %s: %v", shown(got.msg.Data), err)
	case got.msg.Reply == "":
		return nil, found("the settlement was published without a reply subject for JetStream's acknowledgement")
	case len(got.msg.Data) > session.EventBytesMax:
		return nil, found("the settlement has %d bytes: an event has at most %d", len(got.msg.Data), session.EventBytesMax)
	case s.PlanHash != a.call.PlanHash.String():
		return nil, found("the settlement has the plan_hash %q; the effect has %s", s.PlanHash, a.call.PlanHash)
	case !slices.Contains([]string{string(session.CallSucceeded), string(session.CallFailed), string(session.CallCancelled), string(session.CallUnknown)}, s.Status):
		return nil, found("the settlement has the status %q", s.Status)
	case s.Error != nil && s.Status == string(session.CallSucceeded):
		return nil, found("the settlement has the status succeeded and an error")
	case s.Output != nil && len(s.Output.Text) > session.TextBytesMax:
		return nil, found("the settlement's output.text has %d bytes: more than %d belong in a blob", len(s.Output.Text), session.TextBytesMax)
	}
	return &s, nil
}

// want waits for a settlement with one of statuses, and with code unless it is "".
func (c *checker) want(ctx context.Context, d time.Duration, a *testCall, code string, statuses ...session.CallStatus) error {
	s, err := c.outcome(ctx, d, a)
	if err != nil {
		return err
	}
	got := ""
	if s.Error != nil {
		got = s.Error.Code
	}
	if !slices.Contains(statuses, session.CallStatus(s.Status)) || code != "" && got != code {
		return found("it was settled %s", strings.TrimSpace(s.Status+" "+got))
	}
	return c.acked(ctx, a)
}

// acked waits for the acknowledgement of a settled effect.
func (c *checker) acked(ctx context.Context, a *testCall) error {
	ok, err := c.await(ctx, c.Within, a, ack)
	if err != nil {
		return err
	}
	if !ok {
		return found("it was settled and not acknowledged within %v; %s", c.Within, c.answers(a))
	}
	all := c.about(a, settlement, ack)
	if all[0].kind == ack {
		return found("it was acknowledged before it was settled")
	}
	return c.once(a)
}

// once returns a finding if an effect was settled twice with different data.
func (c *checker) once(a *testCall) error {
	all := c.about(a, settlement)
	for _, h := range all {
		if dataOf(h.msg.Data) != dataOf(all[0].msg.Data) {
			return found("it was settled twice, and differently: %s, then %s", shown(all[0].msg.Data), shown(h.msg.Data))
		}
	}
	return nil
}

// dataOf returns the part of an event that a repeat must have unchanged.
func dataOf(event []byte) string {
	env, err := session.ReadEnvelope(event)
	if err != nil {
		return string(event)
	}
	return env.Type + string(env.Data)
}

// untouched waits for c.Quiet, and returns a finding if an effect was run, settled
// or acknowledged meanwhile. given is how often it may be given back.
func (c *checker) untouched(ctx context.Context, a *testCall, given int) error {
	if _, err := c.await(ctx, c.Quiet, a, settlement, ack, term); err != nil {
		return err
	}
	if all := c.about(a, settlement); len(all) > 0 {
		return found("it was settled: %s", shown(all[0].msg.Data))
	}
	if len(c.about(a, ack, term)) > 0 {
		return found("it was acknowledged: %s", c.answers(a))
	}
	if n := len(c.about(a, nak)); n > given {
		return found("it was given back %d times in %v: without a delay", n, c.Quiet)
	}
	return nil
}

// claimed returns the stored claim; "": there is none.
func (c *checker) claimed(ctx context.Context, a *testCall) (string, error) {
	stream, err := c.js.Stream(ctx, c.bus.Names().EffectsStream())
	if err != nil {
		return "", err
	}
	m, err := stream.GetLastMsgForSubject(ctx, a.claim)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	return string(m.Data), nil
}

// answers describes the bridge's acknowledgements of an effect's deliveries.
func (c *checker) answers(a *testCall) string {
	var all []string
	for _, h := range c.about(a, ack, nak, progress, term) {
		all = append(all, string(h.msg.Data))
	}
	if len(all) == 0 {
		return "no delivery was answered"
	}
	return "deliveries were answered " + strings.Join(all, ", ")
}

// shown returns a payload as text for people, truncated.
func shown(payload []byte) string {
	text := payload
	if asJSON, err := codec.ToJSON(payload); err == nil {
		text = asJSON
	}
	if len(text) > 300 {
		text = append(slices.Clip(text[:300]), "…"...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
