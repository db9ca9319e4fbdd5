package web

import (
	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Update is one thing that happened in a session. The position is the id of its event.
//
//wire:rule {"allOf": [{"if": {"properties": {"type": {"const": "text"}}}, "then": {"required": ["turn", "delta"]}}, {"if": {"properties": {"type": {"enum": ["tool_asked", "tool_ended", "approval_asked", "approval_decided", "reply_asked"]}}}, "then": {"required": ["call"]}}, {"if": {"properties": {"type": {"const": "run_ended"}}}, "then": {"required": ["lifecycle"]}}]}
type Update struct {
	// What happened: the model wrote text; its text of a turn is void, and begins again; it
	// made a call; a call ended; a call waits for a person; a person decided over it; a call
	// waits for a reply; a run
	// waits for another, began, is paused, goes on, or ended; the run waits for something
	// that is in trouble, and without a cause, that it goes on; or the server may not read
	// the log, so updates lack what only the log tells.
	Type string `json:"type" lim:"enum=text|text_restarted|tool_asked|tool_ended|approval_asked|approval_decided|reply_asked|run_queued|run_started|run_paused|run_resumed|run_ended|waiting|partial"`
	// The run. Absent if it is not about one.
	Run uint32 `json:"run,omitempty" lim:"1.."`
	// Of text and text_restarted: the turn.
	Turn uint32 `json:"turn,omitempty" lim:"1.."`
	// Of text: what the model wrote since the text before.
	Delta string `json:"delta,omitempty" lim:"any"`
	// Of tools, approvals and replies: the call.
	Call *Call `json:"call,omitempty"`
	// Of approval_decided: approve or deny.
	Decision string `json:"decision,omitempty" lim:"enum=approve|deny"`
	// Of approval_decided: why.
	Reason string `json:"reason,omitempty" lim:"..session.DetailBytesMax"`
	// Of run_ended: how.
	Lifecycle session.Lifecycle `json:"lifecycle,omitempty" lim:"enum=completed|failed|cancelled|interrupted"`
	// Of run_ended: why it failed.
	Code string `json:"code,omitempty" lim:"..session.CodeBytesMax"`
	// Of run_ended and waiting: for people.
	Detail string `json:"detail,omitempty" lim:"any"`
	// Of run_ended: how many turns it had.
	Turns uint32 `json:"turns,omitempty"`
	// Of waiting: what for: model, tool, step, space or session-actor.
	For string `json:"for,omitempty" lim:"any"`
	// Of waiting: what bridges serve, such as a provider.
	Target string `json:"target,omitempty" lim:"any"`
	// Of waiting: unserved, silent, or the code of the latest failure. Absent: it goes on.
	Cause string `json:"cause,omitempty" lim:"any"`
	// Of waiting: Unix milliseconds, since when.
	Since int64 `json:"since,omitempty"`
}

// updateOf returns an update as JSON.
func updateOf(u refold.Update) *Update {
	call := func(of refold.Call) *Call {
		c := callOf(of)
		return &c
	}
	switch u := u.(type) {
	case refold.Text:
		return &Update{Type: "text", Run: u.Run, Turn: u.Turn, Delta: u.Text}
	case refold.TextRestarted:
		return &Update{Type: "text_restarted", Run: u.Run, Turn: u.Turn}
	case refold.ToolAsked:
		return &Update{Type: "tool_asked", Run: u.Run, Call: call(u.Call)}
	case refold.ToolEnded:
		return &Update{Type: "tool_ended", Run: u.Run, Call: call(u.Call)}
	case refold.ApprovalAsked:
		return &Update{Type: "approval_asked", Run: u.Run, Call: hashed(u.Call)}
	case refold.ReplyAsked:
		return &Update{Type: "reply_asked", Run: u.Run, Call: hashed(u.Call)}
	case refold.ApprovalDecided:
		return &Update{Type: "approval_decided", Run: u.Run, Call: call(u.Call), Decision: u.Decision, Reason: u.Reason}
	case refold.RunQueued:
		return &Update{Type: "run_queued", Run: u.Run}
	case refold.RunStarted:
		return &Update{Type: "run_started", Run: u.Run}
	case refold.RunPaused:
		return &Update{Type: "run_paused", Run: u.Run}
	case refold.RunResumed:
		return &Update{Type: "run_resumed", Run: u.Run}
	case refold.RunEnded:
		return &Update{Type: "run_ended", Run: u.Run, Lifecycle: u.Lifecycle, Code: u.Code, Detail: u.Detail, Turns: u.Turns}
	case refold.Waiting:
		w := &Update{Type: "waiting", Run: u.Run, For: u.For, Target: u.Target, Cause: u.Cause, Detail: u.Detail}
		if !u.Since.IsZero() {
			w.Since = u.Since.UnixMilli()
		}
		return w
	}
	return &Update{Type: "partial"} // refold.Partial: TestEveryUpdateHasJSON
}

// hashed returns a call that somebody decides over or answers, with the hash that they
// name, if its arguments are known.
func hashed(of refold.Call) *Call {
	c := callOf(of)
	if c.Arguments != "" {
		c.ArgsHash = codec.Sum([]byte(c.Arguments)).String()
	}
	return &c
}
