package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// target is the executor of this program's tools.
const target = "editor"

// registry is the session's registry. It has two tools, which may run in
// parallel unless they use the same text.
const registry = `{
  "tools": [
    {
      "tool_id": "editor.read", "tool_name": "read_text", "description": "Returns a text that is open in the editor.",
      "args_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
      "executor": {"kind": "host_loop", "target": "editor"},
      "parallel_safe": true, "resource_key": "editor:{name}", "access": "read", "retry_safe": true
    },
    {
      "tool_id": "editor.write", "tool_name": "write_text", "description": "Replaces a text that is open in the editor.",
      "args_schema": {
        "type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}, "required": ["name", "text"]
      },
      "executor": {"kind": "host_loop", "target": "editor"},
      "parallel_safe": true, "resource_key": "editor:{name}", "retry_safe": true
    }
  ],
  "profiles": [{"profile": "editor", "tools": ["read_text", "write_text"]}],
  "default_profile": "editor"
}`

// hostLoop carries out the calls of one session.
type hostLoop struct {
	client  *client.Client
	sid     string
	whole   bool // settle whole batches
	out     io.Writer
	texts   map[string]string // held by this program only
	settled map[string]bool   // by idempotency key: its settlement is in the log
}

// settled is the body of a ToolCallSettled, and a result of a ToolBatchSettled.
type settled struct {
	Effect   string   `json:"effect"`
	Status   string   `json:"status"`
	PlanHash string   `json:"plan_hash"`
	Output   *content `json:"output,omitempty"`
	Error    *fault   `json:"error,omitempty"`
}

type content struct {
	Text string `json:"text"`
}

type fault struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// turn reads the session's view and carries out the open calls for this
// program. It may be called at any time: a call with a result is not shown as
// open. The view may lag behind a settlement, so turn remembers the calls that
// it has settled; a settlement in the log can't be lost.
func (l *hostLoop) turn(ctx context.Context) error {
	view, err := l.client.View(ctx, l.sid)
	if err != nil || view.Batch == nil {
		return err
	}
	if l.whole {
		return l.settleWhole(ctx, view.Batch)
	}
	for i := range view.Batch.Calls {
		call := &view.Batch.Calls[i]
		if call.Status != session.CallOpen || call.HostLoop != target || l.settled[call.IdempotencyKey] {
			continue
		}
		result := l.carryOut(view.Batch, call)
		if err := l.publish(ctx, session.DoorTool, session.TypeToolCallSettled, result); err != nil {
			return err
		}
		l.settled[call.IdempotencyKey] = true
	}
	return nil
}

// settleWhole carries out the plan itself, group after group, and publishes all
// results in one event: the session accepts all of them or none.
func (l *hostLoop) settleWhole(ctx context.Context, batch *session.ViewBatch) error {
	var results []settled
	for _, group := range batch.Groups[min(batch.Group, len(batch.Groups)):] {
		for _, i := range group { // these could run at the same time
			call := &batch.Calls[i]
			if call.HostLoop == target && !l.settled[call.IdempotencyKey] {
				results = append(results, l.carryOut(batch, call))
			}
		}
	}
	if len(results) == 0 {
		return nil
	}
	err := l.publish(ctx, session.DoorTool, session.TypeToolBatchSettled, map[string]any{
		"batch": batch.Batch, "plan_hash": batch.PlanHash, "results": results,
	})
	for i := range batch.Calls {
		if err == nil && batch.Calls[i].HostLoop == target {
			l.settled[batch.Calls[i].IdempotencyKey] = true
		}
	}
	return err
}

// carryOut carries out one call. Its arguments were checked against the tool's
// schema.
func (l *hostLoop) carryOut(batch *session.ViewBatch, call *session.ViewCall) settled {
	fmt.Fprintf(l.out, "%s %s %s\n", call.Effect, call.ToolName, call.Arguments)
	result := settled{Effect: call.Effect, PlanHash: batch.PlanHash, Status: string(session.CallSucceeded)}
	var arguments struct{ Name, Text string }
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		result.Status, result.Error = string(session.CallFailed), &fault{"too_large", "the arguments are not in the view: write less"}
		return result
	}
	text, open := l.texts[arguments.Name]
	switch {
	case !open:
		result.Status, result.Error = string(session.CallFailed), &fault{"not_open", "no text is open under this name"}
	case call.ToolID == "editor.write":
		l.texts[arguments.Name] = arguments.Text
		result.Output = &content{"written"}
	default:
		result.Output = &content{text}
	}
	return result
}
