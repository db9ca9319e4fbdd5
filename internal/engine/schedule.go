package engine

import (
	"errors"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/cron"
)

// errNeverAgain: the expression has no later time.
var errNeverAgain = errors.New("the schedule never fires again")

// scheduleFired returns the settlement of a schedule's wake, by this host's clock. If that
// has passed later times of the expression, the last one of them fires. Without a next
// time, for the reason that the error gives, the schedule fires and is paused.
func scheduleFired(w *session.Wake, now time.Time) (session.ScheduleFired, error) {
	of := w.Schedule
	fired := session.ScheduleFired{At: of.At, Effect: w.Effect, Name: of.Name, Rev: of.Rev}
	table, err := cron.Parse(of.Cron, of.Zone)
	if err != nil {
		return fired, err
	}
	at := time.UnixMilli(of.At)
	if until := now.Add(-time.Duration(w.Due-of.At) * time.Millisecond); until.After(at) {
		at = table.Last(at, until)
	}
	fired.At = at.UnixMilli()
	next, ok := table.Next(at.Add((session.ScheduleEachMS - 1) * time.Millisecond))
	if !ok {
		return fired, errNeverAgain
	}
	fired.Next = next.UnixMilli()
	return fired, nil
}
