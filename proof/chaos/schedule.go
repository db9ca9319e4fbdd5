package chaos

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/scripted"
)

// The conversation whose run a schedule requests: its session and its schedule. With
// these names it fires 19 ms after its time, and not up to a minute, as others do.
const (
	scheduleSession = "schedule"
	scheduleName    = "report-283"
)

// scheduleAhead is how long after it was set the schedule fires. The next firing is next
// year.
const (
	scheduleAhead = time.Second
	scheduleCron  = "@yearly"
)

func scheduleConversation() Conversation {
	return Conversation{ID: scheduleSession, Session: scheduleSession, Says: []string{scripted.DemoInput}, Ends: completes, Scheduled: true}
}

// schedule sets the schedule, and waits until its run has ended. The first time is not
// one of the expression, which has none but full minutes.
func (t *trial) schedule(ctx context.Context, text string) error {
	now := time.Now()
	data, err := codec.Marshal(session.ScheduleSet{
		At: now.UnixMilli(), Cron: scheduleCron, Input: session.Content{Text: text}, Name: scheduleName, Next: now.Add(scheduleAhead).UnixMilli(),
	})
	if err != nil {
		return err
	}
	event, err := codec.Marshal(session.Envelope{By: "refold-chaos", Data: data, ID: scheduleName, Type: session.TypeScheduleSet, V: session.Version})
	if err != nil {
		return err
	}
	err = t.retry(ctx, func(ctx context.Context) error {
		_, err := t.client.Publish(ctx, session.DoorCtl, scheduleSession, event, scheduleName)
		return err
	})
	if err != nil {
		return err
	}
	return until(ctx, "no end of the scheduled run", func() bool {
		view, err := t.view(ctx)
		return err == nil && view.Last != nil && view.Run == nil
	})
}
