package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
)

// Limits of settling due wakes.
const (
	dueAtOnce  = 256              // wakes that a host settles at once; each waits for one acknowledgement
	dueTrouble = time.Second      // delay until a wake that could not be settled is delivered again
	dueNewer   = 30 * time.Second // the same for a wake of a newer release
)

// pullDue settles the due wakes of all sessions until ctx ends. All session-actors
// share them, whoever owns the lanes. A pulled wake is settled within working.
func (h *Host) pullDue(ctx, working context.Context) error {
	return h.bus.Dues().Run(ctx, dueAtOnce, func(d delivery.DueDelivery) {
		if again := h.SettleDue(working, d.Session, d.Wake, d.Payload, d.Fired); again > 0 {
			d.Nak(again)
		} else {
			d.Ack()
		}
	})
}

// SettleDue publishes the settlement of a wake that fired. A wake whose time was
// further ahead than a schedule allows fires early and is scheduled again.
// SettleDue returns 0 when that is stored and the caller may acknowledge the
// delivery, else the delay until the wake should be delivered again. A wake may be
// settled more than once: the fold ignores a repeat.
func (h *Host) SettleDue(ctx context.Context, sid, wake string, payload []byte, fired time.Time) (again time.Duration) {
	log := h.log.With("session", sid, "effect", wake)
	effect, err := wakeOf(sid, wake, payload)
	switch {
	case errors.Is(err, errNewerWake):
		log.Warn("newer_wake_given_back", "error", err.Error())
		return dueNewer
	case err != nil:
		log.Error("foreign_wake_skipped", "bytes", len(payload), "error", err.Error())
		return 0
	}
	if due := time.UnixMilli(effect.Deadline); fired.Before(due) {
		err = errors.Join(h.world.Store(ctx, []journal.Output{{Session: sid, Effect: &effect}})...)
	} else if _, err = h.world.Publish(ctx, session.DoorWake, sid, wakeSettled(wake, h.instance, h.now()), ""); err == nil {
		h.meters.wakesLate.Record(max(0, h.now().Sub(due).Seconds()))
	}
	if err == nil {
		return 0
	}
	if ctx.Err() == nil {
		log.Error("wake_not_settled", "error", err.Error())
	}
	return dueTrouble
}

var errNewerWake = errors.New("a newer release asked for it")

// wakeOf decodes the payload of a fired schedule. A map that this release can't
// decode may be a newer release's wake.
func wakeOf(sid, name string, payload []byte) (session.Effect, error) {
	var w session.Wake
	if err := codec.Unmarshal(payload, &w); err != nil {
		if codec.Unmarshal(payload, new(codec.Pairs)) == nil {
			err = fmt.Errorf("%w (%w)", errNewerWake, err)
		}
		return session.Effect{}, err
	}
	switch {
	case w.V != session.Version:
		return session.Effect{}, fmt.Errorf("version %d, and this release reads %d: %w", w.V, session.Version, errNewerWake)
	case w.Class != session.ClassWake || w.Session != sid || w.Effect != name:
		return session.Effect{}, fmt.Errorf("its payload is of %s, %s of %s", w.Class, w.Effect, w.Session)
	}
	return session.Effect{Name: name, Class: session.ClassWake, Target: "-", Deadline: w.Due, StartBy: w.Due, Payload: payload}, nil
}

// wakeSettled returns the event that settles a wake.
func wakeSettled(name, by string, at time.Time) []byte {
	data, err := codec.Marshal(session.WakeSettled{Effect: name})
	if err == nil {
		data, err = codec.Marshal(session.Envelope{V: session.Version, Type: session.TypeWakeSettled, At: at.UnixMilli(), By: by, Data: data})
	}
	if err != nil {
		panic("engine: a settlement does not encode: " + err.Error())
	}
	return data
}
