package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// This file has the operations on a session's schedules.

var scheduleRoutes = []route{
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/schedules", name: "listSchedules", right: RightRead, out: "ScheduleList",
		doc: "Lists the session's schedules, by name, and when each fires next.",
		do:  (*call).listSchedules,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/schedules/{name}", name: "setSchedule", right: RightOperate, in: "ScheduleRequest", out: "Taken",
		doc: "Sets a schedule: the session requests a run at each time of a cron expression. It replaces the schedule of this name, and a paused one goes on.",
		do:  (*call).setSchedule,
	},
	{
		method: http.MethodDelete, path: "/v1/sessions/{sid}/schedules/{name}", name: "removeSchedule", right: RightOperate, out: "Taken",
		doc: "Removes a schedule. Its runs go on.",
		do:  func(c *call) (any, error) { return c.changeSchedule(c.inner.Operator().RemoveSchedule) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/schedules/{name}/pause", name: "pauseSchedule", right: RightOperate, out: "Taken",
		doc: "Pauses a schedule: it requests no runs until it is resumed or set again.",
		do:  func(c *call) (any, error) { return c.changeSchedule(c.inner.Operator().PauseSchedule) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/schedules/{name}/resume", name: "resumeSchedule", right: RightOperate, out: "Taken",
		doc: "Lets a paused schedule go on. Times that have passed since are not made up for.",
		do:  func(c *call) (any, error) { return c.changeSchedule(c.inner.Operator().ResumeSchedule) },
	},
}

// ScheduleRequest says at which times a session requests a run.
//
//wire:rule {"properties": {"input": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "maxItems": 63, "items": {"$ref": "Part.json"}}]}}}
type ScheduleRequest struct {
	// Minute, hour, day of the month, month and day of the week, as in `0 9 * * 1-5`; or a
	// word, such as @daily.
	Cron string `json:"cron" lim:"1..session.CronBytesMax"`
	// Zone of the times: a name of the IANA database, such as Europe/Berlin; UTC if absent.
	Zone string `json:"zone,omitempty" lim:"..session.ZoneBytesMax"`
	// The input of the runs: a text, or a list of parts.
	Input json.RawMessage `json:"input"`
	// Config of the runs, with a provider and a model. Absent: the session's when it fires.
	Config json.RawMessage `json:"config,omitempty" lim:"object"`
	// What to do while a run is active: nothing (`skip`, if absent), wait (`queue`), or end
	// it and be next (`interrupt`).
	WhenBusy string `json:"when_busy,omitempty" lim:"enum=skip|queue|interrupt"`
	// What happens to times that were missed: the last one fires late (`last`, if absent), or
	// none (`none`).
	CatchUp string `json:"catch_up,omitempty" lim:"enum=last|none"`
	// The revision that this replaces; another one is refused as `stale`. Absent: any.
	Rev uint64 `json:"rev,omitempty" lim:"0.."`
}

// ScheduleList is the schedules of a session.
type ScheduleList struct {
	// The schedules, by name.
	Schedules []session.Schedule `json:"schedules"`
}

// listSchedules lists the session's schedules.
func (c *call) listSchedules() (any, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	v, err := c.client.View(c.ctx(), c.sid)
	if err != nil {
		return nil, err
	}
	return ScheduleList{Schedules: append([]session.Schedule{}, v.Schedules...)}, nil
}

// setSchedule sets a schedule.
func (c *call) setSchedule() (any, error) {
	var body ScheduleRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	text, o, err := c.input(body.Input)
	if err != nil {
		return nil, err
	}
	set := client.Schedule{
		Name: c.r.PathValue("name"), Cron: body.Cron, Zone: body.Zone, Text: text, Parts: o.Parts, WhenBusy: body.WhenBusy, CatchUp: body.CatchUp, Rev: body.Rev,
	}
	if isGiven(body.Config) {
		if err := packed("config", body.Config, &set.Config); err != nil {
			return nil, err
		}
	}
	return c.taken(c.inner.Operator().SetSchedule(c.ctx(), c.sid, set))
}

// scheduleChange is a method of a client about one schedule.
type scheduleChange func(ctx context.Context, sid, name string) (seq uint64, err error)

// changeSchedule publishes what an operator does with a schedule.
func (c *call) changeSchedule(publish scheduleChange) (any, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	return c.taken(publish(c.ctx(), c.sid, c.r.PathValue("name")))
}
