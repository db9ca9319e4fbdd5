package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/inside"
)

// input returns an input as package client takes it: a text, or a list of parts.
func (c *call) input(raw json.RawMessage) (text string, o client.RunOptions, err error) {
	bad := func(format string, args ...any) (string, client.RunOptions, error) {
		return "", o, problem(http.StatusBadRequest, CodeBadRequest, "input: "+format, args...)
	}
	var parts []Part
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	switch isText := len(raw) > 0 && raw[0] == '"'; {
	case isText && json.Unmarshal(raw, &text) == nil && text != "":
		return text, o, nil
	case isText || d.Decode(&parts) != nil:
		return bad(`it is a text, or a list of {"text": …} and {"blob": …}`)
	case len(parts) == 0 || len(parts) > client.FilesMax:
		return bad("it has %d parts: send 1 to %d", len(parts), client.FilesMax)
	}
	for _, p := range parts {
		part := session.Content{Text: p.Text}
		if (p.Text == "") == (p.Blob == "") {
			return bad("each part has a text or a blob")
		}
		if p.Blob != "" {
			if part, err = c.openBlob(p.Blob); err != nil {
				return "", o, err
			}
		}
		o.Parts = append(o.Parts, part)
	}
	return "", o, nil
}

// startRun requests a run.
func (c *call) startRun() (any, error) {
	var body RunRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	agent, err := c.agent(body.Agent)
	if err != nil {
		return nil, err
	}
	switch body.WhenBusy {
	case "", session.BusyQueue, session.BusySteer, session.BusyInterrupt, session.BusyReject:
	default:
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "when_busy: it is queue, steer, interrupt or reject")
	}
	text, o, err := c.input(body.Input)
	if err != nil {
		return nil, err
	}
	o.WhenBusy = body.WhenBusy
	if o.Submission, err = c.key(); err != nil {
		return nil, err
	}
	if len(body.Config) > 0 && string(body.Config) != "null" {
		if !c.caller.may(RightOperate) {
			return nil, problem(http.StatusForbidden, CodeForbidden, "a run with a config needs the right %s, which this token lacks", RightOperate)
		}
		packed, err := codec.FromJSON(body.Config)
		if err == nil {
			err = codec.Decode(packed, &session.RunConfig{})
		}
		if err != nil {
			return nil, problem(http.StatusBadRequest, CodeBadRequest, "config: %v", err)
		}
		o.Config, o.Operator = body.Config, true
	}
	asked, err := c.ask(agent, text, o)
	if err != nil {
		return nil, err
	}
	return c.accepted(asked)
}

// accepted answers a request that the session has taken: it waits for the end of the run,
// if the client wants that.
func (c *call) accepted(asked inside.Asked) (any, error) {
	c.w.Header().Set("Location", c.o.Base+"/v1/sessions/"+c.strip(c.sid)+"/runs/"+strconv.FormatUint(uint64(asked.Run), 10))
	if wait := c.wait(); wait > 0 {
		c.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
		waiting, cancel := context.WithTimeout(c.ctx(), wait)
		defer cancel()
		state, err := c.ended(waiting, asked.Run)
		if err == nil || waiting.Err() == nil {
			return state, err
		}
	}
	c.status = http.StatusAccepted
	return RunAccepted{Seq: asked.Seq, Run: asked.Run, Position: c.inner.Before(asked.Began)}, nil
}

// wait returns how long the client wants to wait for the end of a run: the preference
// wait of RFC 7240, at most the limit.
func (c *call) wait() time.Duration {
	for _, header := range c.r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 16)
			if strings.EqualFold(strings.TrimSpace(name), "wait") && err == nil {
				return min(time.Duration(seconds)*time.Second, c.o.Limits.Wait)
			}
		}
	}
	return 0
}

// ended waits for the end of a run.
func (c *call) ended(ctx context.Context, run uint32) (*RunState, error) {
	answer, err := c.session().Run(run).Wait(ctx)
	state := RunState{Run: run, Lifecycle: session.Completed, Ended: true}
	var failed *refold.RunError
	switch {
	case errors.As(err, &failed):
		answer = failed.Answer
		state.Lifecycle, state.Code, state.Detail = failed.Lifecycle, failed.Code, failed.Detail
	case err != nil:
		return nil, err
	}
	state.Text, state.FinishReason, state.Turns, state.Cost = answer.Text, answer.Finish, answer.Turns, answer.Cost
	state.Usage = &answer.Usage
	for i := range answer.Calls {
		state.Calls = append(state.Calls, callOf(answer.Calls[i]))
	}
	return &state, nil
}

// callOf returns a call as JSON.
func callOf(c refold.Call) Call {
	return Call{Call: c.Name, Tool: c.Tool, Arguments: c.Arguments, Status: c.Status, Code: c.Code, Detail: c.Detail}
}

// getRun returns a run as it is now.
func (c *call) getRun() (any, error) {
	run, err := c.number("run")
	if err != nil {
		return nil, err
	}
	now, endedAt, err := c.client.RunNow(c.ctx(), c.sid, run)
	switch {
	case err != nil:
		return nil, err
	case endedAt > 0:
		return c.ended(c.ctx(), run)
	}
	return RunState{Run: run, Lifecycle: now}, nil
}
