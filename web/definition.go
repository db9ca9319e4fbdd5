package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// This file has the controls whose body is more than a reason, and what an operator sets
// of a session besides facts, agent and overrides.

// resume lets the paused run go on, with a larger budget if the body has one.
func (c *call) resume() (any, error) {
	var body ResumeRequest
	if err := c.decode(&body, true); err != nil {
		return nil, err
	}
	by, budget := c.client, (*session.Budget)(nil)
	if isGiven(body.Budget) {
		if !c.caller.may(RightOperate) {
			return nil, problem(http.StatusForbidden, CodeForbidden, "another budget needs the right %s, which this token lacks", RightOperate)
		}
		if err := packed("budget", body.Budget, &budget); err != nil {
			return nil, err
		}
		by = c.inner.Operator()
	}
	return c.controlFor(controlling{"resume", func(c *call, o client.ControlOptions) (uint64, error) {
		return by.Resume(c.ctx(), c.sid, budget, o)
	}}, body.Reason, string(body.Budget))
}

// fail ends a run that waits for input as failed.
func (c *call) fail() (any, error) {
	var body FailRequest
	if err := c.decode(&body, true); err != nil {
		return nil, err
	}
	return c.controlFor(controlling{"fail", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.client.FailRun(c.ctx(), c.sid, body.Code, o)
	}}, body.Reason, body.Code)
}

// editRun gives a queued run another input.
func (c *call) editRun() (any, error) {
	var body SteerRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	run, err := c.number("run")
	if err != nil {
		return nil, err
	}
	text, o, err := c.input(body.Input)
	if err != nil {
		return nil, err
	}
	if len(o.Parts) > 0 {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "input: a queued run is given a text: cancel it, and request one with the parts")
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	return c.taken(c.client.EditRun(c.ctx(), c.sid, text, client.ControlOptions{Run: run}))
}

// setProfile selects the profile of runs whose config names none.
func (c *call) setProfile() (any, error) {
	var body ProfileRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	return c.taken(c.inner.Operator().SelectProfile(c.ctx(), c.sid, body.Profile, ""))
}

// setConfig sets the session's own config.
func (c *call) setConfig() (any, error) {
	var body ConfigRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	if err := packed("config", body.Config, &session.SessionConfigured{}); err != nil {
		return nil, err
	}
	return c.taken(c.inner.Operator().Configure(c.ctx(), c.sid, body.Config, ""))
}

// setRegistry replaces the session's registry.
func (c *call) setRegistry() (any, error) {
	var body RegistryRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	if err := packed("registry", body.Registry, &session.ToolRegistrySet{}); err != nil {
		return nil, err
	}
	return c.taken(c.inner.Operator().SetRegistry(c.ctx(), c.sid, body.Registry, ""))
}

// release ends the quarantine that the caller has seen.
func (c *call) release() (any, error) {
	var body ReleaseRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	err := c.inner.Operator().Release(c.ctx(), c.sid, &client.Quarantined{Seq: body.Seq, Reason: body.Reason})
	switch {
	case errors.Is(err, client.ErrNotQuarantined):
		return nil, problem(http.StatusConflict, CodeNotQuarantined, "the session is not stopped")
	case errors.Is(err, client.ErrOtherQuarantine):
		return nil, problem(http.StatusConflict, CodeNotQuarantined, "the session is stopped at another event, or for another reason: look at it again")
	case err != nil:
		return nil, err
	}
	return Taken{Seq: body.Seq}, nil
}

// isGiven reports whether a member of a body is there.
func isGiven(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// packed decodes a member of a body as an event has it.
func packed(name string, member json.RawMessage, to any) error {
	if !isGiven(member) {
		return problem(http.StatusBadRequest, CodeBadRequest, "%s: it is missing", name)
	}
	raw, err := codec.FromJSON(member)
	if err == nil {
		err = codec.Decode(raw, to)
	}
	if err != nil {
		return problem(http.StatusBadRequest, CodeBadRequest, "%s: %v", name, err)
	}
	return nil
}
