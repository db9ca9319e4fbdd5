package web

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/planner"
)

// aguiToolsMax is how many tools a page may have.
const aguiToolsMax = 64

// aguiTool is a tool of a page: a call of it waits until the page sends the result.
type aguiTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON schema
}

// tools returns the specs of the page's tools. An agent that is the session's own has
// those of its definition alone.
func (a *aguiRun) tools(agent string) (specs []json.RawMessage, err error) {
	if len(a.in.Tools) > aguiToolsMax {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "tools: the request has %d, at most %d", len(a.in.Tools), aguiToolsMax)
	}
	for i := range a.in.Tools {
		t := &a.in.Tools[i]
		if !planner.IsName(t.Name) {
			return nil, problem(http.StatusBadRequest, CodeBadRequest, "tools[%d].name: %q is not 1 to 64 of A-Za-z0-9_-", i, cut(t.Name))
		}
		if agent == "" {
			a.ignored = append(a.ignored, t.Name)
			continue
		}
		parameters := t.Parameters
		if !isGiven(parameters) {
			parameters = json.RawMessage(`{"type":"object"}`)
		}
		spec, err := json.Marshal(map[string]any{
			"tool_id": "page." + t.Name, "tool_name": t.Name, "description": t.Description, "args_schema": parameters,
			"executor":     map[string]any{"kind": planner.ExecutorReply, "by": planner.ByClients},
			"availability": []map[string]any{{"kind": "always"}}, "access": "read", "parallel_safe": true,
		})
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// reply answers the calls whose results the page has, and reports whether there are any:
// others have the results that the server sent. The same results again change nothing.
func (a *aguiRun) reply() (replies bool, err error) {
	c := a.c
	waiting, err := c.client.Questions(c.ctx(), c.sid)
	if err != nil {
		return false, err
	}
	for i := range a.in.Results {
		r := &a.in.Results[i]
		at := slices.IndexFunc(waiting, func(q client.Question) bool { return q.Call == r.ToolCallID })
		if at < 0 {
			continue
		}
		replies = true
		if err := c.pageAnswer(waiting[at], r.Content, r.Error); err != nil {
			return true, err
		}
	}
	if replies {
		return true, nil
	}
	return a.hasReplied()
}

// hasReplied reports whether a result of the request was the answer to a call.
func (a *aguiRun) hasReplied() (bool, error) {
	history, err := a.c.aguiHistory()
	if err != nil {
		return false, err
	}
	for i := range history.entries {
		e := &history.entries[i]
		if e.Kind != client.EntryResult || !slices.ContainsFunc(a.in.Results, func(r aguiResult) bool { return r.ToolCallID == e.Call }) {
			continue
		}
		event, err := a.c.client.Event(a.c.ctx(), e.Seq)
		if err != nil {
			return false, err
		}
		if env, err := session.ReadEnvelope(event.Payload); err == nil && env.Type == session.TypeReplyGiven {
			return true, nil
		}
	}
	return false, nil
}

// waits ends the response if nothing goes on before the page sends a result.
func (a *aguiRun) waits() (ends bool) {
	if len(a.replies) == 0 {
		return false
	}
	view, err := a.c.client.ViewNow(a.c.ctx(), a.c.sid)
	if err != nil {
		a.fail(err)
		return true
	}
	if view.Batch == nil || view.Run == nil || view.Run.Number != a.run {
		return false
	}
	asks := false
	for i := range view.Batch.Calls {
		switch call := &view.Batch.Calls[i]; {
		case call.Status == session.CallWaiting, a.results[call.Effect]:
		case a.replies[call.Effect] && call.Status == session.CallOpen && (call.By == planner.ByClients || a.c.caller.may(RightApprove)):
			asks = true
		default: // its update comes, or something else ends it
			return false
		}
	}
	if asks {
		a.finish(aguiOutcome{Type: "success"})
	}
	return asks
}
