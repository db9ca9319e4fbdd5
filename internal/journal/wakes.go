package journal

import (
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// scheduleTime is RFC 3339 with milliseconds, as dues have them. The client
// library writes whole seconds, and so would let a schedule fire early.
const scheduleTime = "2006-01-02T15:04:05.000Z07:00"

// scheduleMost is how far ahead a schedule lies at most. A wake that is due later
// fires early, and the session-actor that pulls it stores it again.
const scheduleMost = 10 * 365 * 24 * time.Hour

// wakeWrite returns the message schedule that a wake is: it comes back in a
// DueDelivery with its payload at its deadline, by the server's clock and up to
// 400 ms later. Storing a wake again replaces its schedule; a time in the past is
// now.
func (j *Journal) wakeWrite(sid string, wake *session.Effect) (*write, error) {
	timer, err := j.names.Timer(sid, wake.Name, wake.Deadline)
	if err != nil {
		return nil, fmt.Errorf("schedule %s of %s: %w", wake.Name, sid, err)
	}
	due, err := j.names.Due(sid, wake.Name)
	if err != nil {
		return nil, fmt.Errorf("schedule %s of %s: %w", wake.Name, sid, err)
	}
	at := time.UnixMilli(min(wake.Deadline, time.Now().Add(scheduleMost).UnixMilli())).UTC()
	w := &write{subject: timer, data: wake.Payload, headers: []string{
		subjects.HeaderContentType, subjects.ContentTypeMsgpack,
		subjects.HeaderSchedule, subjects.ScheduleAt + at.Format(scheduleTime), subjects.HeaderScheduleTarget, due,
	}}
	return w, j.check(w, session.EffectBytesMax)
}
