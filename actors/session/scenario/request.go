package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
)

// request is a step that publishes an event of one type.
type request struct {
	door session.Door // unless via= names another
	typ  string
	args []argument // before the key=value words, in order
	flag string     // a word without a value that means true
	in   string     // the field for all words; empty: the event's data
}

// argument is a value without a key.
type argument struct {
	key, usage string
	optional   bool
}

var (
	input     = argument{key: "input", usage: `"text"`}
	workspace = []argument{{key: "workspace", usage: "NAME", optional: true}}

	requests = map[string]request{
		"run":       {door: session.DoorIn, typ: session.TypeRunRequested, args: []argument{input}},
		"steer":     {door: session.DoorIn, typ: session.TypeSteerRequested, args: []argument{input}},
		"cancel":    {door: session.DoorIn, typ: session.TypeRunCancelRequested},
		"interrupt": {door: session.DoorIn, typ: session.TypeRunInterrupt},
		"pause":     {door: session.DoorIn, typ: session.TypeRunPauseRequested},
		"resume":    {door: session.DoorIn, typ: session.TypeRunResumeRequested},
		"edit":      {door: session.DoorIn, typ: session.TypeRunEdited, args: []argument{{key: "run", usage: "RUN"}, input}},
		"complete":  {door: session.DoorIn, typ: session.TypeRunCompleted},
		"fail":      {door: session.DoorIn, typ: session.TypeRunFailed},
		"close":     {door: session.DoorCtl, typ: session.TypeSessionClosed},
		"erase":     {door: session.DoorCtl, typ: session.TypeSessionErased},
		"overrides": {door: session.DoorCtl, typ: session.TypeToolOverridesSet, args: []argument{{key: "scope", usage: "session|run"}}},
		"profile":   {door: session.DoorCtl, typ: session.TypeToolProfileSelected, args: []argument{{key: "profile", usage: "NAME", optional: true}}},
		"host":      {door: session.DoorCtl, typ: session.TypeHostSessionUpdated, args: []argument{{key: "status", usage: "STATUS"}}},
		"facts":     {door: session.DoorCtl, typ: session.TypeFactsSet, in: "facts"},
		"sync":      {door: session.DoorCtl, typ: session.TypeWorkspaceSyncRequested, args: workspace, flag: "dry"},
		"apply":     {door: session.DoorCtl, typ: session.TypeWorkspaceApplyRequested, args: workspace},
		"detach":    {door: session.DoorCtl, typ: session.TypeWorkspaceDetached, args: workspace},
	}
)

func readRequest(verb, rest string) (Action, error) {
	r, known := requests[verb]
	if !known {
		return Action{}, fmt.Errorf("scenario: unknown step %q", verb)
	}
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	door, data := r.door, map[string]any{}
	for _, arg := range r.args {
		switch {
		case len(words) > 0 && words[0].key == "":
			data[arg.key], words = r.valueOf(arg.key, words[0]), words[1:]
		case !arg.optional:
			return Action{}, fmt.Errorf("scenario: %s: %s is missing", verb, arg.usage)
		}
	}
	for _, w := range words {
		switch {
		case w.key == "via":
			door = session.Door(w.text)
		case w.key != "":
			data[w.key] = r.valueOf(w.key, w)
		case w.text == r.flag && !w.quoted:
			data[w.text] = true
		default:
			return Action{}, fmt.Errorf("scenario: %s: unknown %q", verb, w.text)
		}
	}
	if r.in != "" {
		return event(door, r.typ, map[string]any{r.in: data})
	}
	return event(door, r.typ, data)
}

// readReply parses an answer to a call: the call, a text or declined="…", and optional
// fields. The default hash is that of the call in the view.
func readReply(rest string, view []session.View) (Action, error) {
	call, rest := cutWord(rest)
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	door, data := session.DoorApprove, map[string]any{"call": call, "args_hash": strings.Repeat("0", 64)}
	if len(view) > 0 {
		if c := callOf(view[0], call); c != nil && c.ArgsHash != "" {
			data["args_hash"] = c.ArgsHash
		}
	}
	for _, w := range words {
		switch w.key {
		case "":
			data["output"] = map[string]any{"text": w.text}
		case "declined":
			data["declined"] = w.text
		case "hash":
			data["args_hash"] = w.text
		case "output":
			data["output"] = valueOf(w)
		case "via":
			door = session.Door(w.text)
		default:
			return Action{}, fmt.Errorf("scenario: reply r1t1c0 \"…\": unknown %q", w.key)
		}
	}
	a, err := event(door, session.TypeReplyGiven, data)
	a.Settles = call
	return a, err
}

// valueOf returns the value of a word under a key of the data.
func (r request) valueOf(key string, w word) any {
	switch {
	case r.in != "":
	case key == input.key:
		return map[string]any{"text": w.text}
	case key == "run":
		return json.Number(w.text)
	}
	return valueOf(w)
}

// readDecision parses a person's decision over a call: approve or deny, the call,
// and optional fields. The default hash is that of the call in the view.
func readDecision(verb, rest string, view []session.View) (Action, error) {
	call, rest := cutWord(rest)
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	if call == "" {
		return Action{}, fmt.Errorf("scenario: %s r1t1c0 [args={…}] [reason=\"…\"] [hash=…]", verb)
	}
	door, data := session.DoorApprove, map[string]any{"call": call, "decision": verb, "args_hash": ""}
	if len(view) > 0 {
		for _, c := range awaiting(view[0]) {
			if c.Effect == call {
				data["args_hash"] = c.ArgsHash
				if c.Pack != nil && verb == "approve" {
					data["manifest"] = c.Pack.Hash
				}
			}
		}
	}
	for _, w := range words {
		switch w.key {
		case "via":
			door = session.Door(w.text)
		case "args":
			data["arguments"] = w.text
		case "hash":
			data["args_hash"] = w.text
		case "manifest":
			data["manifest"] = w.text
		case "reason":
			data["reason"] = w.text
		default:
			return Action{}, fmt.Errorf("scenario: %s: unknown %q", verb, strings.TrimPrefix(w.key+"="+w.text, "="))
		}
	}
	return event(door, session.TypeApprovalDecided, data)
}

// valueOf returns the value of a word in an event's data.
func valueOf(w word) any {
	if w.quoted || !isJSON(w.text) {
		return w.text
	}
	return json.RawMessage(w.text)
}

func isJSON(text string) bool {
	return text == "null" || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}
