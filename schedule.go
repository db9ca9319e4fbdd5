package refold

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// Schedule has a session request a run at each time of a cron expression: see
// Session.SetSchedule.
type Schedule = client.Schedule

// ScheduleState is a schedule as its session has it: when it fires next, and why it is
// paused, if it is.
type ScheduleState = session.Schedule

// SetSchedule sets a schedule of the session, and replaces the one of its name. The runs
// have the agent's definition, or that which the session has by then, and need no Ask: any
// session-actor requests them, whether this program runs or not. A run whose time has
// passed while no session-actor ran is made up for, the last one alone.
//
// A *RejectedError says what is wrong with the expression or the zone. As with Ask, the
// agent's definition is set first if the session has another one.
func (s *Session) SetSchedule(ctx context.Context, of Schedule) error {
	if s.agent == nil && of.Config == nil {
		return fmt.Errorf("schedule %s of session %s: a session of Runtime.Session has no agent: take one of Agent.Session, or give a Config", of.Name, s.id)
	}
	if s.agent != nil {
		if s.rt.unread != nil { // which definition the session has can't be read: it is set
			s.agent.forget(s.id)
		}
		if err := s.agent.define(ctx, s.id); err != nil {
			return err
		}
	}
	return s.operated(ctx, func(c *client.Client) (uint64, error) { return c.SetSchedule(ctx, s.id, of) })
}

// Schedules returns the session's schedules, by name. It needs a session-actor.
func (s *Session) Schedules(ctx context.Context) ([]ScheduleState, error) {
	v, err := s.View(ctx)
	return v.Schedules, err
}

// RemoveSchedule removes a schedule. Its runs go on.
func (s *Session) RemoveSchedule(ctx context.Context, name string) error {
	return s.operated(ctx, func(c *client.Client) (uint64, error) { return c.RemoveSchedule(ctx, s.id, name) })
}

// PauseSchedule pauses a schedule: it requests no runs until ResumeSchedule.
func (s *Session) PauseSchedule(ctx context.Context, name string) error {
	return s.operated(ctx, func(c *client.Client) (uint64, error) { return c.PauseSchedule(ctx, s.id, name) })
}

// ResumeSchedule lets a paused schedule go on, with its next time from now on.
func (s *Session) ResumeSchedule(ctx context.Context, name string) error {
	return s.operated(ctx, func(c *client.Client) (uint64, error) { return c.ResumeSchedule(ctx, s.id, name) })
}

// operated publishes what operators may say, and waits until the session took or refused
// it. It fails with ErrStale if what it names has changed.
func (s *Session) operated(ctx context.Context, publish func(*client.Client) (uint64, error)) error {
	err := s.taken(ctx, func() (uint64, error) { return publish(within{s.rt}.Operator()) })
	if rejectedAs(err, session.RejectStale) {
		err = errors.Join(ErrStale, err)
	}
	return err
}
