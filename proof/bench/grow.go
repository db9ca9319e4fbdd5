package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// grow stores so many sessions that are over, one behind another: all events and
// notices of a run and of its wake, and of the recent ones, which are the last,
// the effects and claims too, whose names are forgotten after an hour. The
// consumers of lanes and bridges are taken past them, as if all were carried
// out. Nothing of it depends on the time that it takes.
func (g *stage) grow(ctx context.Context, sessions, recent int) error {
	begun := time.Now()
	requests, err := newRequests()
	if err != nil {
		return err
	}
	bridges, err := g.bridges(ctx)
	if err != nil {
		return err
	}
	wake, err := envelope(session.TypeWakeSettled, session.WakeSettled{Effect: "w1"}, "")
	if err != nil {
		return err
	}
	past := &old{
		ceiling:  ceiling{names: g.bus.Names(), stored: g.stored, fail: g.failure.fail},
		requests: requests, wake: wake, forgotten: sessions - recent,
	}
	for i := range past.results {
		past.results[i] = asResultOf(g.stored.settled, callName(i))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names := g.bus.Names()
	streams := []struct {
		name string
		of   func(n int) []message
	}{{names.LogStream(), past.events}, {names.EffectsStream(), past.effects}, {names.NoticesStream(), past.notices}}
	stored, failed := make([]uint64, len(streams)), make([]error, len(streams))
	var filling sync.WaitGroup
	for i, s := range streams {
		filling.Go(func() {
			if stored[i], failed[i] = g.store(ctx, s.name, sessions, s.of); failed[i] != nil {
				cancel()
			}
		})
	}
	filling.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := errors.Join(g.pass(ctx), g.passed(ctx, names.EffectsStream(), bridges)); err != nil {
		return err
	}
	g.step(begun, "stored %d sessions: %d events, %d effects and claims, %d notices", sessions, stored[0], stored[1], stored[2])
	return nil
}

// store stores what the first n sessions have in a stream, and returns how many
// messages that is.
func (g *stage) store(ctx context.Context, stream string, n int, of func(n int) []message) (stored uint64, err error) {
	f, err := g.newFiller(ctx, stream)
	if err != nil {
		return 0, err
	}
	defer f.close()
	before := f.last
	for i := range n {
		for _, m := range of(i) {
			if err := f.put(ctx, m); err != nil {
				return 0, err
			}
		}
	}
	return f.last - before, f.end(ctx)
}

// old makes what a session that is over has stored, in the order of each stream.
// There are no ids by which the server would know a repeat: it forgets them after
// two minutes.
type old struct {
	ceiling
	requests  requests
	results   [toolsAsked][]byte
	wake      []byte
	forgotten int // sessions, from the first, whose effects have gone
	none      slice
}

// asResultOf returns a tool's result for another of the run's calls: all have
// names of one length.
func asResultOf(result []byte, call string) []byte {
	for i := range toolsAsked {
		result = bytes.ReplaceAll(result, []byte(callName(i)), []byte(call))
	}
	return result
}

func (c *old) turn(sid, effect string) subjects.EffectName {
	return subjects.EffectName{Class: session.ClassLLM, Target: provider, Session: sid, Effect: effect}
}

func (c *old) events(n int) []message {
	sid := sessionID(n)
	subject, err := c.names.Log(session.DoorIn, sid)
	if err != nil {
		c.fail(err)
	}
	request, _ := c.requests.of(sid)
	list := []message{{subject: subject, data: request}, c.event(&c.none, c.turn(sid, "r1t1"), c.stored.observed)}
	for i := range toolsAsked {
		name := subjects.EffectName{Class: session.ClassTool, Target: target, Session: sid, Effect: callName(i)}
		list = append(list, c.event(&c.none, name, c.results[i]))
	}
	w1 := subjects.EffectName{Class: session.ClassWake, Session: sid, Effect: "w1"}
	return withoutIDs(append(list, c.event(&c.none, c.turn(sid, "r1t2"), c.stored.generated), c.event(&c.none, w1, c.wake)))
}

func (c *old) effects(n int) []message {
	if n < c.forgotten {
		return nil
	}
	sid := sessionID(n)
	list := []message{
		c.effect(&c.none, session.ClassLLM, provider, sid, "r1t1", c.stored.turns[0]),
	}
	for i := range toolsAsked {
		list = append(list, c.effect(&c.none, session.ClassTool, target, sid, callName(i), c.stored.calls[i]))
	}
	list = append(list, c.effect(&c.none, session.ClassLLM, provider, sid, "r1t2", c.stored.turns[1]))
	for _, turn := range []string{"r1t1", "r1t2"} {
		subject, err := c.names.Claim(subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassLLM, Target: provider, Session: sid, Effect: turn}, N: 1})
		if err != nil {
			c.fail(err)
		}
		list = append(list, message{subject: subject, fenced: true, data: c.stored.claim})
	}
	return list
}

func (c *old) notices(n int) []message {
	sid := sessionID(n)
	return withoutIDs([]message{c.notice(&c.none, sid, 1), c.notice(&c.none, sid, 2), c.notice(&c.none, sid, 3)})
}

func withoutIDs(list []message) []message {
	for i := range list {
		list[i].id = ""
	}
	return list
}

// bridges makes the consumers of the model's and the tools' bridges.
func (g *stage) bridges(ctx context.Context) (consumers []string, err error) {
	conf, err := streams.ParseConf(refold.StreamsConf, g.bus.Names())
	if err != nil {
		return nil, err
	}
	for _, of := range []struct {
		class  session.Class
		target string
	}{{session.ClassLLM, provider}, {session.ClassTool, target}} {
		consumer, err := g.bus.EnsureBridge(ctx, conf, of.class, of.target)
		if err != nil {
			return nil, err
		}
		consumers = append(consumers, consumer)
	}
	return consumers, nil
}

// pass takes the lanes past all events, as if they had been folded.
func (g *stage) pass(ctx context.Context) error {
	return g.passed(ctx, g.bus.Names().LogStream(), laneNames())
}

// passed has consumers go on behind the last message of a stream. It is said to
// the server: to take and acknowledge millions of messages that lanes have not
// had costs it, for each of them, a look at all subjects of a block.
func (g *stage) passed(ctx context.Context, stream string, consumers []string) error {
	last, err := g.lastSeq(ctx, stream)
	if err != nil {
		return err
	}
	for _, consumer := range consumers {
		if _, err := g.js.ResetConsumerToSequence(ctx, stream, consumer, last+1); err != nil {
			return fmt.Errorf("take consumer %s past message %d: %w", consumer, last, err)
		}
	}
	return g.drained(ctx, stream, consumers)
}

func laneNames() (lanes []string) {
	for i := range subjects.LanesDefault {
		lanes = append(lanes, subjects.LaneName(i))
	}
	return lanes
}
