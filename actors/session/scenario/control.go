package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
)

// controls are the steps about runs that exist: the event of each.
var controls = map[string]string{
	"steer": session.TypeSteerRequested, "cancel": session.TypeRunCancelRequested, "interrupt": session.TypeRunInterrupt,
	"pause": session.TypeRunPauseRequested, "resume": session.TypeRunResumeRequested, "edit": session.TypeRunEdited,
	"complete": session.TypeRunCompleted, "fail": session.TypeRunFailed,
}

// readControl reads a request about an existing run.
func readControl(verb, rest string) (Action, error) {
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	door, data := session.DoorIn, map[string]any{}
	if verb == "edit" {
		if len(words) == 0 || words[0].quoted || words[0].key != "" {
			return Action{}, fmt.Errorf("scenario: edit RUN \"text\"")
		}
		data["run"], words = json.Number(words[0].text), words[1:]
	}
	if verb == "edit" || verb == "steer" {
		if len(words) == 0 || !words[0].quoted || words[0].key != "" {
			return Action{}, fmt.Errorf("scenario: %s … \"text\"", verb)
		}
		data["input"], words = map[string]any{"text": words[0].text}, words[1:]
	}
	for _, w := range words {
		switch w.key {
		case "":
			return Action{}, fmt.Errorf("scenario: %s: unknown %q", verb, w.text)
		case "via":
			door = session.Door(w.text)
		case "run":
			data["run"] = json.Number(w.text)
		default:
			data[w.key] = valueOf(w)
		}
	}
	return event(door, controls[verb], data)
}

// readDecision reads what a person decides over a call: approve or deny, the
// call, and what of the decision is not as usual. The hash is by default that
// of the call as the view shows it.
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
		case "reason":
			data["reason"] = w.text
		default:
			return Action{}, fmt.Errorf("scenario: %s: unknown %q", verb, strings.TrimPrefix(w.key+"="+w.text, "="))
		}
	}
	return event(door, session.TypeApprovalDecided, data)
}

// valueOf returns the value of a word as it stands in an event's data.
func valueOf(w word) any {
	if w.quoted || !isJSON(w.text) {
		return w.text
	}
	return json.RawMessage(w.text)
}
