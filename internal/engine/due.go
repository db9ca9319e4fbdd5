package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// settled more than once: the fold ignores a repeat, also of a schedule's firing, in
// which two hosts may name other times.
func (h *Host) SettleDue(ctx context.Context, sid, wake string, payload []byte, fired time.Time) (again time.Duration) {
	log := h.log.With("session", sid, "effect", wake)
	of, err := wakeOf(sid, wake, payload)
	switch {
	case errors.Is(err, errNewerWake):
		log.Warn("newer_wake_given_back", "error", err.Error())
		return dueNewer
	case err != nil:
		log.Error("foreign_wake_skipped", "bytes", len(payload), "error", err.Error())
		return 0
	}
	if due := time.UnixMilli(of.Due); fired.Before(due) {
		effect := session.Effect{Name: wake, Class: session.ClassWake, Target: "-", Deadline: of.Due, StartBy: of.Due, Payload: payload}
		err = errors.Join(h.world.Store(ctx, []journal.Output{{Session: sid, Effect: &effect}})...)
	} else if _, err = h.world.Publish(ctx, session.DoorWake, sid, settlementOf(&of, h.instance, h.now(), log), ""); err == nil {
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
func wakeOf(sid, name string, payload []byte) (w session.Wake, err error) {
	if err = codec.Unmarshal(payload, &w); err != nil {
		if codec.Unmarshal(payload, new(codec.Pairs)) == nil {
			err = fmt.Errorf("%w (%w)", errNewerWake, err)
		}
		return w, err
	}
	switch {
	case w.V != session.Version:
		return w, fmt.Errorf("version %d, and this release reads %d: %w", w.V, session.Version, errNewerWake)
	case w.Class != session.ClassWake || w.Session != sid || w.Effect != name:
		return w, fmt.Errorf("its payload is of %s, %s of %s", w.Class, w.Effect, w.Session)
	}
	return w, nil
}

// settlementOf returns the event that settles a wake.
func settlementOf(w *session.Wake, by string, at time.Time, log *slog.Logger) []byte {
	env := session.Envelope{V: session.Version, Type: session.TypeWakeSettled, At: at.UnixMilli(), By: by}
	var body any = session.WakeSettled{Effect: w.Effect}
	if w.Schedule != nil {
		fired, err := scheduleFired(w, at)
		if err != nil {
			log.Error("schedule_has_no_next_time", "schedule", w.Schedule.Name, "error", err.Error())
		}
		env.Type, body = session.TypeScheduleFired, fired
	}
	data, err := env.With(body)
	if err != nil {
		panic("engine: a settlement does not encode: " + err.Error())
	}
	return data
}
