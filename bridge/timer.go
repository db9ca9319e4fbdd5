package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/fault"
	"github.com/refold/refold/subjects"
)

// Limits of keeping time.
const (
	// timersAtOnce is how many wakes are stored, and how many that are due are
	// settled, at once: each waits for one acknowledgement and computes nothing.
	timersAtOnce = 256
	// scheduleLeast is how far away a wake must be to be worth a schedule: the
	// server looks at its schedules every 250 ms.
	scheduleLeast = 250 * time.Millisecond
	// scheduleMost is how far ahead a schedule lies at most. What is due later
	// comes early, and is scheduled again.
	scheduleMost = 10 * 365 * 24 * time.Hour
)

// Timers makes this bridge keep the time of sessions: it carries out their
// wakes, so that what is late is settled. Any number of bridges may; they share
// the work, and a system without one has no deadlines. It must come before Run,
// once. What it pulls from is made, or updated, at once: the error says what
// this user may not do (a *bus.PermissionError) or what is not there, and then
// the bridge may still run and serve the rest.
func (b *Bridge) Timers(ctx context.Context, options ...ServeOption) error {
	if err := b.bus.ProvisionBridge(ctx, b.conf, session.ClassWake, subjects.NoTarget); err != nil {
		return fmt.Errorf("keep time: %w", err)
	}
	options = append([]ServeOption{Concurrency(timersAtOnce)}, options...)
	return b.serve(served{class: session.ClassWake, target: subjects.NoTarget}, options)
}

// keepTime carries out wakes until life.drain ends, and what was taken until
// then to its end. An error means that it could not begin.
func (b *Bridge) keepTime(c clockwork, life lifetimes, slots int) error {
	k := &timekeeper{
		clockwork: c, by: b.worker.by, log: b.worker.log.With("target", "wake/"+subjects.NoTarget), now: time.Now,
		stats: &b.worker.stats,
	}
	asked, due := b.bus.Effects(b.conf, session.ClassWake, subjects.NoTarget), b.bus.Dues(b.conf)
	ctx, cancel := context.WithCancel(life.drain)
	defer cancel()
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() {
		defer cancel() // a timer bridge does both, or says why not
		errs[0] = asked.Run(life.last, slots, func(d *bus.EffectDelivery) { k.asked(life.last, d) })
	})
	both.Go(func() {
		defer cancel()
		errs[1] = due.Run(ctx, slots, func(d bus.DueDelivery) { k.due(life.last, d) })
	})
	<-ctx.Done()
	if err := asked.Drain(life.last); err != nil {
		k.log.Warn("not_drained", "error", err.Error())
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// clockwork is what keeping time needs of NATS: a *bus.Bus.
type clockwork interface {
	// Schedule stores that a wake comes back at a time, in place of what was
	// stored for it before.
	Schedule(ctx context.Context, sid, wake string, at time.Time, payload []byte) error
	Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error)
}

// timekeeper carries out wakes: it schedules them, and settles them when they
// are due. It keeps nothing: a wake is with the effects until its schedule is
// stored, and with the timers until its settlement is. All of it may happen
// twice: a second schedule replaces the first, and of two settlements the
// session takes one.
type timekeeper struct {
	clockwork clockwork
	by        string // who settles, for people
	log       *slog.Logger
	now       func() time.Time
	stats     *counters
}

// asked carries out a wake that a session asks for.
func (k *timekeeper) asked(ctx context.Context, d *bus.EffectDelivery) {
	r := k.carry(ctx, d.Session, d.Effect, d.Payload, time.Time{})
	k.answer(d.Session, d.Effect, r, d.Ack, d.Nak)
}

// due carries out a wake that comes back from its schedule.
func (k *timekeeper) due(ctx context.Context, d bus.DueDelivery) {
	r := k.carry(ctx, d.Session, d.Wake, d.Payload, d.Fired)
	k.answer(d.Session, d.Wake, r, d.Ack, d.Nak)
}

func (k *timekeeper) answer(sid, wake string, r ruling, ack func(), nak func(time.Duration)) {
	if r.next == nextAck {
		k.log.Debug("effect_acked", "session", sid, "effect", wake, "why", r.why)
		ack()
		return
	}
	k.stats.GivenBack.Add(1)
	k.log.Debug("effect_given_back", "session", sid, "effect", wake, "why", r.why, "delay_ms", r.delay.Milliseconds())
	nak(r.delay)
}

// carry settles a wake if it is due, by this process's clock or by the server's,
// which had come to serverClock; else it is scheduled. What is almost due is
// waited for.
func (k *timekeeper) carry(ctx context.Context, sid, name string, payload []byte, serverClock time.Time) ruling {
	log := k.log.With("session", sid, "effect", name)
	due, err := wakeDue(sid, name, payload)
	if errors.Is(err, errNewer) {
		log.Warn("newer_effect_given_back", "error", err.Error())
		return giveBack(newerDelay, "of a newer release")
	}
	if err != nil {
		k.stats.Foreign.Add(1)
		log.Error("foreign_message_skipped", "bytes", len(payload), "error", err.Error())
		return ack("no wake")
	}
	for serverClock.Before(due) {
		now := k.now()
		left := due.Sub(now)
		if left <= 0 {
			break
		}
		if left > scheduleLeast {
			return k.schedule(ctx, log, sid, name, minTime(due, now.Add(scheduleMost)), payload)
		}
		if !pause(ctx.Done(), left) {
			return giveBack(stoppingDelay, "this bridge is stopping")
		}
	}
	return k.settle(ctx, log, sid, name, due)
}

func (k *timekeeper) schedule(ctx context.Context, log *slog.Logger, sid, name string, at time.Time, payload []byte) ruling {
	if err := k.clockwork.Schedule(ctx, sid, name, at, payload); err != nil {
		log.Error("wake_not_scheduled", "error", err.Error())
		if fault.On(fault.WakeNotScheduled) {
			return ack("scheduled")
		}
		return giveBack(troubleDelay, "not scheduled")
	}
	return ack("scheduled for " + at.UTC().Format(time.RFC3339Nano))
}

// settle stores that a wake's due has come.
func (k *timekeeper) settle(ctx context.Context, log *slog.Logger, sid, name string, due time.Time) ruling {
	now := k.now()
	payload, err := wakeSettled(name, now, k.by)
	if err == nil {
		// Without an id: what is said twice is taken once, by its name.
		_, err = k.clockwork.Publish(ctx, session.DoorWake, sid, payload, "")
	}
	if err != nil {
		log.Error("settlement_not_stored", "error", err.Error())
		if fault.On(fault.WakeAckedUnsaid) {
			return ack("settled")
		}
		return giveBack(troubleDelay, "settlement not stored")
	}
	k.stats.Settled.Add(1)
	log.Debug("wake_settled", "late_ms", k.now().Sub(due).Milliseconds())
	return ack("settled")
}

// wakeDue reads when a wake is due, and makes sure that its payload speaks of
// it.
func wakeDue(sid, name string, payload []byte) (time.Time, error) {
	var w session.Wake
	if err := codec.Unmarshal(payload, &w); err != nil {
		return time.Time{}, undecoded(name+" of "+sid, payload, err)
	}
	switch {
	case w.V != session.Version:
		return time.Time{}, fmt.Errorf("%s of %s: version %d, and this bridge reads %d: %w", name, sid, w.V, session.Version, errNewer)
	case w.Class != session.ClassWake || w.Session != sid || w.Effect != name:
		return time.Time{}, fmt.Errorf("%s of %s: its payload is of %s, %s of %s", name, sid, w.Class, w.Effect, w.Session)
	}
	if fault.On(fault.WakeEarly) {
		w.Due -= 5000
	}
	return time.UnixMilli(w.Due), nil
}

func wakeSettled(name string, at time.Time, by string) ([]byte, error) {
	data, err := codec.Marshal(session.WakeSettled{Effect: name})
	if err != nil {
		return nil, err
	}
	return codec.Marshal(session.Envelope{V: session.Version, Type: session.TypeWakeSettled, At: at.UnixMilli(), By: by, Data: data})
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
