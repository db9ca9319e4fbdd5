package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// target is what this program's tools name as their executor.
const target = "editor"

// registry is the session's: two tools, which are parallel-safe as long as they
// don't touch the same text.
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

// hostLoop drives one session.
type hostLoop struct {
	client *client.Client
	sid    string
	whole  bool // settle whole batches
	out    io.Writer
	texts  map[string]string // that no other program has
	said   map[string]bool   // by idempotency key: the log has its settlement
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

// turn looks at the session and carries out what there is for this program.
// It may be called at any time: what has a result is not shown as open. Between
// a settlement and the view that has it there may be a moment, so it remembers
// what it said; a settlement that is in the log can't be lost.
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
		if call.Status != session.CallOpen || call.HostLoop != target || l.said[call.IdempotencyKey] {
			continue
		}
		result := l.carryOut(view.Batch, call)
		if err := l.publish(ctx, session.DoorTool, session.TypeToolCallSettled, result); err != nil {
			return err
		}
		l.said[call.IdempotencyKey] = true
	}
	return nil
}

// settleWhole carries out the plan itself, group after group, and says all of
// it in one event: the session takes it whole or not at all.
func (l *hostLoop) settleWhole(ctx context.Context, batch *session.ViewBatch) error {
	var results []settled
	for _, group := range batch.Groups[min(batch.Group, len(batch.Groups)):] {
		for _, i := range group { // these could run at once
			call := &batch.Calls[i]
			if call.HostLoop == target && !l.said[call.IdempotencyKey] {
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
			l.said[batch.Calls[i].IdempotencyKey] = true
		}
	}
	return err
}

// carryOut carries one call out. Its arguments were checked against the tool's
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
