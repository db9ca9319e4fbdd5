package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// ceiling stores the same messages as Refold, through the same streams, consumers
// and fences, but without understanding them: the design can't be faster on this
// machine. It has one goroutine a lane, and one committer a stream in each of the
// two daemons: they are separate processes, so a bridge's claims are never in one
// atomic batch with a session-actor's effects.
type ceiling struct {
	names  subjects.Names
	stored template
	fail   func(error)

	conns   []*nats.Conn
	log     *committer // the bridge's
	claims  *committer // the bridge's too, in the stream of effects
	effects *committer
	timers  *committer
	notices *committer
	pullers []*puller
}

// template has the payloads of a run, as Refold stored them.
type template struct {
	observed, settled, generated []byte // events
	turns                        [2][]byte
	wake                         []byte
	calls                        [toolsAsked][]byte
	claim                        []byte
	started, finished            []byte // notices: of the first event, of the last one
}

func startCeiling(ctx context.Context, s *servers, o row, stored template, fail func(error)) (c *ceiling, err error) {
	c = &ceiling{stored: stored, fail: fail}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if c.names, err = subjects.New(""); err != nil {
		return nil, err
	}
	consumers, err := c.provision(ctx, s, o.replicas)
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		nc, err := nats.Connect("", nats.InProcessServer(s.of(i)), nats.Name("refold-bench"))
		if err != nil {
			return nil, err
		}
		c.conns = append(c.conns, nc)
	}
	host, bridge := c.conns[0], c.conns[1]
	grouped := o.grouped()
	for _, of := range []struct {
		committer **committer
		nc        *nats.Conn
	}{{&c.log, bridge}, {&c.claims, bridge}, {&c.effects, host}, {&c.timers, host}, {&c.notices, host}} {
		if *of.committer, err = newCommitter(of.nc, grouped, fail); err != nil {
			return nil, err
		}
	}
	for i := range subjects.LanesDefault {
		l := &lane{ceiling: c, sessions: make(map[string]*progress)}
		if err := c.pull(host, c.names.LogStream(), subjects.LaneName(i), subjects.LaneGroup, l.work); err != nil {
			return nil, err
		}
	}
	return c, errors.Join(
		c.pull(bridge, c.names.EffectsStream(), consumers[0], "", c.generate),
		c.pull(bridge, c.names.EffectsStream(), consumers[1], "", c.execute))
}

// provision creates the streams and consumers, and stores the install record.
func (c *ceiling) provision(ctx context.Context, s *servers, replicas int) (consumers []string, err error) {
	b, err := bus.Connect(ctx, natsio.Options{InProcess: s.of(0)})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	conf, err := provision(ctx, b, replicas)
	if err != nil {
		return nil, err
	}
	for _, of := range []struct {
		class  session.Class
		target string
	}{{session.ClassLLM, provider}, {session.ClassTool, target}} {
		name, err := b.EnsureBridge(ctx, conf, of.class, of.target)
		if err != nil {
			return nil, err
		}
		consumers = append(consumers, name)
	}
	return consumers, nil
}

func (c *ceiling) pull(nc *nats.Conn, stream, consumer, group string, work func(*pullBatch)) error {
	p, err := newPuller(nc, stream, consumer, group, work, c.fail)
	if err == nil {
		c.pullers = append(c.pullers, p)
	}
	return err
}

func (c *ceiling) stop() {
	for _, p := range c.pullers {
		p.close()
	}
	for _, s := range []*committer{c.log, c.claims, c.effects, c.timers, c.notices} {
		if s != nil {
			s.close()
		}
	}
	for _, nc := range c.conns {
		nc.Close()
	}
}

// lane is the session-actor's part. It counts a session's events, and the count
// determines what to store next.
type lane struct {
	ceiling  *ceiling
	sessions map[string]*progress
}

type progress struct{ events, results int }

// work stores what a batch of events needs.
func (l *lane) work(s *pullBatch) {
	var effects, wakes, notices []message
	for _, m := range s.msgs {
		door, sid, ok := storedSubject(m.Subject)
		if !ok {
			continue // an install record
		}
		effects, notices = l.step(effects, notices, s, door, sid)
		if door == session.DoorIn {
			wakes = append(wakes, l.ceiling.wake(s, sid))
		}
	}
	s.left.Store(int64(len(effects) + len(wakes) + len(notices)))
	l.ceiling.effects.put(effects...)
	l.ceiling.timers.put(wakes...)
	l.ceiling.notices.put(notices...)
}

func (l *lane) step(effects, notices []message, s *pullBatch, door session.Door, sid string) (e, n []message) {
	c := l.ceiling
	at := l.sessions[sid]
	if at == nil {
		at = &progress{}
		l.sessions[sid] = at
	}
	at.events++
	switch door {
	case session.DoorIn:
		effects = append(effects, c.effect(s, session.ClassLLM, provider, sid, "r1t1", c.stored.turns[0]))
		notices = append(notices, c.notice(s, sid, 2, c.stored.started))
	case session.DoorTool:
		if at.results++; at.results == toolsAsked {
			effects = append(effects, c.effect(s, session.ClassLLM, provider, sid, "r1t2", c.stored.turns[1]))
		}
	case session.DoorLLM:
		if at.results < toolsAsked {
			for i := range toolsAsked {
				effects = append(effects, c.effect(s, session.ClassTool, target, sid, callName(i), c.stored.calls[i]))
			}
			break
		}
		delete(l.sessions, sid)
		notices = append(notices, c.notice(s, sid, 3, c.stored.finished))
	}
	return effects, notices
}

func callName(i int) string { return fmt.Sprintf("r1t1c%d", i) }

func (c *ceiling) effect(s *pullBatch, class session.Class, target, sid, name string, payload []byte) message {
	subject, err := c.names.Effect(subjects.EffectName{Class: class, Target: target, Session: sid, Effect: name})
	if err != nil {
		c.fail(err)
	}
	return message{subject: subject, fenced: true, msgpack: true, data: payload, stored: s.one}
}

// wake returns the message schedule of a session's first wake.
func (c *ceiling) wake(s *pullBatch, sid string) message {
	timer, err := c.names.Timer(sid, "w1", 0)
	if err != nil {
		c.fail(err)
	}
	due, err := c.names.Due(sid, "w1")
	if err != nil {
		c.fail(err)
	}
	return message{subject: timer, due: due, msgpack: true, data: c.stored.wake, stored: s.one}
}

// notice returns a message whose last notice is the nth of the session.
func (c *ceiling) notice(s *pullBatch, sid string, n uint64, data []byte) message {
	subject, err := c.names.Out(sid)
	if err != nil {
		c.fail(err)
	}
	return message{subject: subject, id: subjects.NoticeID(sid, n), data: data, stored: s.one}
}

// storedSubject parses a subject of the log: PREFIX.PARTITION.DOOR.SESSION.
func storedSubject(subject string) (door session.Door, sid string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 4 {
		return "", "", false
	}
	return session.Door(parts[2]), parts[3], true
}

// generate is the model bridge's part: claim, then settle, then acknowledge.
func (c *ceiling) generate(s *pullBatch) {
	s.left.Store(int64(len(s.msgs)))
	claims := make([]message, 0, len(s.msgs))
	for _, m := range s.msgs {
		name, err := c.names.ParseEffect(m.Subject)
		if err != nil {
			c.fail(err)
			return
		}
		subject, err := c.names.Claim(subjects.ClaimName{EffectName: name, N: 1})
		if err != nil {
			c.fail(err)
			return
		}
		payload := c.stored.observed
		if name.Effect == "r1t2" {
			payload = c.stored.generated
		}
		settled := c.event(s, name, payload)
		claims = append(claims, message{subject: subject, fenced: true, data: c.stored.claim, stored: func() { c.log.put(settled) }})
	}
	c.claims.put(claims...)
}

// execute is the tool bridge's part: settle, then acknowledge.
func (c *ceiling) execute(s *pullBatch) {
	s.left.Store(int64(len(s.msgs)))
	events := make([]message, 0, len(s.msgs))
	for _, m := range s.msgs {
		name, err := c.names.ParseEffect(m.Subject)
		if err != nil {
			c.fail(err)
			return
		}
		events = append(events, c.event(s, name, c.stored.settled))
	}
	c.log.put(events...)
}

// event returns the settlement of an effect.
func (c *ceiling) event(s *pullBatch, name subjects.EffectName, payload []byte) message {
	subject, err := c.names.Log(subjects.DoorOf(name.Class), name.Session)
	if err != nil {
		c.fail(err)
	}
	// As long as a bridge's id, which ends in 32 digits of a hash.
	return message{subject: subject, id: name.Session + "." + name.Effect + "." + idDigest, data: payload, stored: s.one}
}

const idDigest = "00000000000000000000000000000000"
