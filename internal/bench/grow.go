package bench

import (
	"context"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// growAtOnce is how many sessions are handed over before their storing is waited
// for.
const growAtOnce = 1000

// grow stores so many sessions that are over: each has all events, effects,
// claims and notices of a run, one session behind another. The lanes' and the
// bridges' consumers are taken past them, as if all were carried out. Nothing of
// it depends on the time that it takes.
func (g *stage) grow(ctx context.Context, sessions int) error {
	requests, err := newRequests()
	if err != nil {
		return err
	}
	bridges, stop, err := g.passBridges(ctx)
	defer stop()
	if err != nil {
		return err
	}
	var into [3]*committer // log, effects, notices
	for i := range into {
		if into[i], err = newCommitter(g.nc, true, g.failure.fail); err != nil {
			return err
		}
		defer into[i].close() //nolint:revive // three
	}
	past := &ceiling{names: g.bus.Names(), stored: g.stored, fail: g.failure.fail}
	for from := 0; from < sessions; from += growAtOnce {
		var all [3][]message
		for n := from; n < min(from+growAtOnce, sessions); n++ {
			if err := past.over(&all, requests, n); err != nil {
				return err
			}
		}
		for i, list := range all {
			stored := make(chan struct{})
			list[len(list)-1].stored = func() { close(stored) }
			into[i].put(list...)
			select {
			case <-stored:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if err := g.pass(ctx); err != nil {
		return err
	}
	return g.drained(ctx, g.bus.Names().EffectsStream(), bridges)
}

// over adds all that a session and its run have stored, in the order of each
// stream.
func (c *ceiling) over(all *[3][]message, r requests, n int) error {
	sid, done := sessionID(n), &slice{}
	request, id := r.of(sid)
	subject, err := c.names.Log(session.DoorIn, sid)
	if err != nil {
		return err
	}
	generate := func(effect string) subjects.EffectName {
		return subjects.EffectName{Class: session.ClassLLM, Target: provider, Session: sid, Effect: effect}
	}
	log, effects, notices := all[0], all[1], all[2]
	log = append(log, message{subject: subject, id: id, data: request}, c.event(done, generate("r1t1"), c.stored.observed))
	effects = append(effects,
		c.effect(done, session.ClassLLM, provider, sid, "r1t1", c.stored.turns[0]),
		c.effect(done, session.ClassWake, subjects.NoTarget, sid, "w1", c.stored.wake))
	for i := range toolsAsked {
		effects = append(effects, c.effect(done, session.ClassTool, target, sid, callName(i), c.stored.calls[i]))
		name := subjects.EffectName{Class: session.ClassTool, Target: target, Session: sid, Effect: callName(i)}
		log = append(log, c.event(done, name, c.stored.settled))
	}
	effects = append(effects, c.effect(done, session.ClassLLM, provider, sid, "r1t2", c.stored.turns[1]))
	for _, turn := range []string{"r1t1", "r1t2"} {
		subject, err := c.names.Claim(subjects.ClaimName{Session: sid, Effect: turn, N: 1})
		if err != nil {
			return err
		}
		effects = append(effects, message{subject: subject, fenced: true, data: c.stored.claim})
	}
	log = append(log, c.event(done, generate("r1t2"), c.stored.generated))
	notices = append(notices, c.notice(done, sid, 1), c.notice(done, sid, 2), c.notice(done, sid, 3))
	*all = [3][]message{log, effects, notices}
	for _, list := range all {
		for i := range list {
			list[i].stored = func() {}
		}
	}
	return nil
}

// passBridges takes the bridges' consumers past what is stored, until stop is
// called.
func (g *stage) passBridges(ctx context.Context) (consumers []string, stop func(), err error) {
	var pullers []*puller
	stop = func() {
		for _, p := range pullers {
			p.close()
		}
	}
	conf, err := bus.ParseConf(refold.StreamsConf, g.bus.Names())
	if err != nil {
		return nil, stop, err
	}
	for _, of := range []struct {
		class  session.Class
		target string
	}{{session.ClassLLM, provider}, {session.ClassTool, target}} {
		consumer, err := g.bus.EnsureBridge(ctx, conf, of.class, of.target)
		if err != nil {
			return nil, stop, err
		}
		p, err := newPuller(g.nc, g.bus.Names().EffectsStream(), consumer, "", func(*slice) {}, g.failure.fail)
		if err != nil {
			return nil, stop, err
		}
		pullers, consumers = append(pullers, p), append(consumers, consumer)
	}
	return consumers, stop, nil
}
