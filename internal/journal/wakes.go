package journal

import (
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// scheduleTime is RFC 3339 with milliseconds, the precision of wakes. The client
// library writes whole seconds, with which a schedule would fire early.
const scheduleTime = "2006-01-02T15:04:05.000Z07:00"

// scheduleMost is the longest delay of a schedule. A wake that is due later fires
// early, and the session-actor that pulls it stores it again.
const scheduleMost = 10 * 365 * 24 * time.Hour

// wakeWrite returns the message schedule of a wake. The server delivers its payload (a
// DueDelivery) at the deadline by the server's clock, or up to 400 ms later. Storing a
// wake again replaces its schedule; a schedule in the past fires at once.
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
