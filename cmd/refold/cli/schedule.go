package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// scheduleCommand has the commands about a session's schedules.
type scheduleCommand struct {
	Set    scheduleSetCommand    `cmd:"" help:"Have a session request a run at given times."`
	List   scheduleListCommand   `cmd:"" help:"List a session's schedules, and when each fires next."`
	Remove scheduleRemoveCommand `cmd:"" help:"Remove a schedule. Its runs go on."`
	Pause  schedulePauseCommand  `cmd:"" help:"Pause a schedule: it requests no runs until it is resumed."`
	Resume scheduleResumeCommand `cmd:"" help:"Let a paused schedule go on."`
}

// scheduleSetCommand sets a schedule.
type scheduleSetCommand struct {
	Session  string `arg:"" help:"The session."`
	Name     string `arg:"" help:"The schedule's name. One of this name is replaced."`
	Cron     string `required:"" placeholder:"EXPRESSION" help:"When: minute, hour, day of the month, month, day of the week, as in \"0 9 * * 1-5\"; or @daily."`
	Zone     string `placeholder:"ZONE" help:"Zone of the times, such as Europe/Berlin. Default: UTC."`
	Text     string `required:"" placeholder:"TEXT" help:"The input of the runs."`
	WhenBusy string `enum:"skip,queue,interrupt" default:"skip" help:"What to do while a run is active: ${enum}."`
	CatchUp  string `enum:"last,none" default:"last" help:"Of the times that were missed while nothing ran, request a run for: ${enum}."`
	Config   string `placeholder:"JSON" help:"Config of the runs, with a provider and a model. Default: the session's."`
}

func (r scheduleSetCommand) Run(ctx context.Context, s streams, conn connection) error {
	set := client.Schedule{Name: r.Name, Cron: r.Cron, Zone: r.Zone, Text: r.Text, WhenBusy: r.WhenBusy, CatchUp: r.CatchUp}
	if r.Config != "" {
		raw, err := codec.FromJSON([]byte(r.Config))
		if err == nil {
			set.Config = &session.RunConfig{}
			err = codec.Decode(raw, set.Config)
		}
		if err != nil {
			return &statusError{statusUsage, "--config: " + err.Error()}
		}
	}
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) { return c.SetSchedule(ctx, r.Session, set) })
}

// ofSchedule has the arguments of commands about one schedule.
type ofSchedule struct {
	Session string `arg:"" help:"The session."`
	Name    string `arg:"" help:"The schedule."`
}

// scheduleRemoveCommand removes a schedule.
type scheduleRemoveCommand struct{ ofSchedule }

func (r scheduleRemoveCommand) Run(ctx context.Context, s streams, conn connection) error {
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) { return c.RemoveSchedule(ctx, r.Session, r.Name) })
}

// schedulePauseCommand pauses a schedule.
type schedulePauseCommand struct{ ofSchedule }

func (r schedulePauseCommand) Run(ctx context.Context, s streams, conn connection) error {
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) { return c.PauseSchedule(ctx, r.Session, r.Name) })
}

// scheduleResumeCommand resumes a schedule.
type scheduleResumeCommand struct{ ofSchedule }

func (r scheduleResumeCommand) Run(ctx context.Context, s streams, conn connection) error {
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) { return c.ResumeSchedule(ctx, r.Session, r.Name) })
}

// scheduleListCommand lists schedules.
type scheduleListCommand struct {
	asJSON
	Session string `arg:"" help:"The session."`
}

func (r scheduleListCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := c.View(ctx, r.Session)
	if err != nil {
		return err
	}
	if r.JSON {
		printJSON(s.out, map[string]any{"schedules": append([]session.Schedule{}, v.Schedules...)})
		return nil
	}
	if len(v.Schedules) == 0 {
		fmt.Fprintln(s.out, "no schedules")
	}
	for i := range v.Schedules {
		sc := &v.Schedules[i]
		next := "paused: " + sc.Paused
		if sc.Paused == "" {
			next = "next " + time.UnixMilli(sc.Due).In(zoneOf(sc.Zone)).Format("2006-01-02 15:04:05 -0700")
		}
		fmt.Fprintf(s.out, "%s  %s  %s  when busy %s  %s\n", sc.Name, sc.Times(), next, cmp.Or(sc.WhenBusy, session.ScheduleBusySkip), failures(sc))
	}
	return nil
}

// zoneOf returns a zone, UTC if this computer does not know it.
func zoneOf(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return loc
}

func failures(sc *session.Schedule) string {
	if sc.Failures == 0 {
		return "no failures"
	}
	return fmt.Sprintf("%d of %d failures", sc.Failures, session.ScheduleFailuresMax)
}
