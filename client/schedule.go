package client

import (
	"context"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/cron"
)

// Schedule is what Client.SetSchedule sets: the session requests a run with the input at
// each time of the cron expression.
type Schedule struct {
	Name     string             // a token: 1 to 64 of A-Za-z0-9_-
	Cron     string             // five fields, such as 0 9 * * 1-5, or a word, such as @daily
	Zone     string             // of the IANA database, such as Europe/Berlin; empty: UTC
	Text     string             // the input of the runs
	Parts    []session.Content  // as RunOptions.Parts
	Files    []File             // as RunOptions.Files
	Config   *session.RunConfig // of the runs, with a provider and a model; nil: the session's when it fires
	Roles    []string           // of the runs
	WhenBusy string             // session.ScheduleBusySkip, if empty, or another value of that name
	CatchUp  string             // session.CatchUpLast, if empty, or session.CatchUpNone
	Rev      uint64             // the revision that this replaces, else it is rejected as stale; 0: whichever there is
	ID       string             // of the event, at most 64 bytes; empty: a new ULID
}

// SetSchedule sets a schedule of a session, through the door ctl, and replaces the one of
// its name. It returns the event's sequence in the log, which is the schedule's revision;
// Taken returns the outcome. A faulty expression or zone is a *RejectedError that says what
// is allowed, and nothing is published. It reads the clock of this computer.
func (c *Client) SetSchedule(ctx context.Context, sid string, s Schedule) (seq uint64, err error) {
	at, next, err := nextOf(s.Cron, s.Zone)
	if err != nil {
		return 0, err
	}
	input, err := c.input(ctx, s.Text, s.Parts, s.Files)
	if err != nil {
		return 0, err
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeScheduleSet, session.ScheduleSet{
		At: at, CatchUp: s.CatchUp, Config: s.Config, Cron: s.Cron, Input: input, Name: s.Name, Next: next, Rev: s.Rev, Roles: s.Roles, WhenBusy: s.WhenBusy, Zone: s.Zone,
	}, s.ID)
}

// RemoveSchedule removes a schedule, through the door ctl. Its runs go on.
func (c *Client) RemoveSchedule(ctx context.Context, sid, name string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeScheduleRemoved, session.ScheduleNamed{Name: name}, "")
}

// PauseSchedule pauses a schedule, through the door ctl: it requests no runs until it is
// resumed or set again.
func (c *Client) PauseSchedule(ctx context.Context, sid, name string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSchedulePause, session.ScheduleNamed{Name: name}, "")
}

// ResumeSchedule lets a paused schedule go on, through the door ctl. It reads the
// expression from the session's view, and needs a session-actor. A session that has no such
// schedule is a *RejectedError, and one that is set again meanwhile rejects the event as
// stale.
func (c *Client) ResumeSchedule(ctx context.Context, sid, name string) (seq uint64, err error) {
	v, err := c.View(ctx, sid)
	if err != nil {
		return 0, err
	}
	for _, s := range v.Schedules {
		if s.Name != name {
			continue
		}
		at, next, err := nextOf(s.Cron, s.Zone)
		if err != nil {
			return 0, err
		}
		return c.publish(ctx, session.DoorCtl, sid, session.TypeScheduleResume, session.ScheduleResumeRequested{At: at, Name: name, Next: next, Rev: s.Rev}, "")
	}
	return 0, &RejectedError{Code: session.RejectUnknownSchedule, Detail: "name: the session has no schedule " + strconv.Quote(name)}
}

// nextOf returns the present time, and the first time of an expression after it, both in
// Unix milliseconds.
func nextOf(expression, zone string) (at, next int64, err error) {
	table, err := cron.Parse(expression, zone)
	if err != nil {
		return 0, 0, &RejectedError{Code: session.RejectInvalidData, Detail: err.Error()}
	}
	now := time.Now()
	first, ok := table.Next(now)
	if !ok {
		return 0, 0, &RejectedError{Code: session.RejectInvalidData, Detail: "cron: " + expression + " does not come any more"}
	}
	return now.UnixMilli(), first.UnixMilli(), nil
}
