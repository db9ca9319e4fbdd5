package web

import (
	"net/http"
	"strconv"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// controlling publishes a control.
type controlling struct {
	name    string
	publish func(*call, client.ControlOptions) (uint64, error)
}

var (
	cancel = controlling{"cancel", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.client.Cancel(c.ctx(), c.sid, o)
	}}
	interrupt = controlling{"interrupt", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.client.Interrupt(c.ctx(), c.sid, o)
	}}
	pause = controlling{"pause", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.client.Pause(c.ctx(), c.sid, o)
	}}
	complete = controlling{"complete", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.client.CompleteRun(c.ctx(), c.sid, o)
	}}
	end = controlling{"end", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.inner.Operator().CloseSession(c.ctx(), c.sid, o.ID)
	}}
	erase = controlling{"erase", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.inner.Operator().Erase(c.ctx(), c.sid, o.Reason, o.ID)
	}}
	hold = controlling{"hold", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.inner.Operator().Hold(c.ctx(), c.sid, true, o.Reason, o.ID)
	}}
	release = controlling{"release", func(c *call, o client.ControlOptions) (uint64, error) {
		return c.inner.Operator().Hold(c.ctx(), c.sid, false, o.Reason, o.ID)
	}}
)

// control publishes a control of the run in the path, or else of the active one, and
// returns when the session took or refused it.
func (c *call) control(do controlling) (any, error) {
	var body Reason
	if err := c.decode(&body, true); err != nil {
		return nil, err
	}
	return c.controlFor(do, body.Reason)
}

// controlFor is control with the reason of a body that has more. what is the rest of the
// body.
func (c *call) controlFor(do controlling, reason string, what ...string) (any, error) {
	o := client.ControlOptions{Reason: reason}
	var err error
	if c.r.PathValue("run") != "" {
		if o.Run, err = c.number("run"); err != nil {
			return nil, err
		}
	}
	// The same key with other content is another event: the log would drop it.
	if o.ID, err = c.key(append([]string{do.name, strconv.FormatUint(uint64(o.Run), 10), o.Reason}, what...)...); err != nil {
		return nil, err
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	return c.taken(do.publish(c, o))
}

// exists fails if the session has no event: a control would be its first one.
func (c *call) exists() error {
	for _, err := range c.client.Read(c.ctx(), c.sid, 0, 0) {
		return err
	}
	return client.ErrNoSession
}

// taken answers when the session took or refused the event at seq.
func (c *call) taken(seq uint64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if _, err := c.client.Taken(c.ctx(), c.sid, seq); err != nil {
		return nil, err
	}
	return Taken{Seq: seq}, nil
}

// steer gives the active run more input.
func (c *call) steer() (any, error) {
	var body SteerRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	text, o, err := c.input(body.Input)
	if err != nil {
		return nil, err
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	o.WhenBusy = session.BusySteer
	if o.Submission, err = c.key("steer"); err != nil {
		return nil, err
	}
	asked, err := c.ask("", text, o)
	if err != nil {
		return nil, err
	}
	return RunAccepted{Seq: asked.Seq, Run: asked.Run, Position: c.inner.Before(asked.Began)}, nil
}

// setFacts sets facts.
func (c *call) setFacts() (any, error) {
	var body FactsRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	if len(body.Facts) == 0 {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "facts: it is empty: name the facts to set, and those to remove as null")
	}
	seq, err := c.inner.Operator().SetFacts(c.ctx(), c.sid, body.Facts, "")
	return c.taken(seq, err)
}

// setAgent gives the session the definition of an agent.
func (c *call) setAgent() (any, error) {
	var body AgentRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	agent, err := c.agent(body.Agent)
	switch {
	case err != nil:
		return nil, err
	case agent == "":
		return nil, problem(http.StatusNotFound, CodeNoAgent, "the server has no agent %q with a definition of its own: name another", defaultAgent)
	}
	if err := c.inner.Set(c.ctx(), agent, c.sid); err != nil {
		return nil, err
	}
	last, err := c.client.LastEvent(c.ctx())
	return Taken{Seq: last}, err
}

// setOverrides changes lists of tools.
func (c *call) setOverrides() (any, error) {
	var body OverridesRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	lists := session.ToolOverridesSet{Scope: body.Scope, Disable: body.Disable, Enable: body.Enable, Force: body.Force}
	seq, err := c.inner.Operator().SetOverrides(c.ctx(), c.sid, lists, "")
	return c.taken(seq, err)
}

// redactEvent removes the text of an event.
func (c *call) redactEvent() (any, error) {
	e, err := c.ownEvent()
	if err != nil {
		return nil, err
	}
	select {
	case c.erasing <- struct{}{}:
		defer func() { <-c.erasing }()
	case <-c.ctx().Done():
		return nil, c.ctx().Err()
	}
	deleter := c.inner.Eraser().Deleter(client.DeleteOptions{})
	r, err := deleter.Redact(c.ctx(), c.sid, e.Seq)
	if err == nil {
		_, err = deleter.Close(c.ctx())
	}
	c.histories.forget(c.sid, nil)
	if err != nil {
		return nil, err
	}
	return Redacted{Seq: e.Seq, Type: r.Type, Notices: r.Notices, DeadLetters: r.Dead, Blobs: r.Blobs}, nil
}
