package scenario

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// readSettlement parses an event of a bridge. plan is the open batch's hash.
func readSettlement(rest string, reg *planner.Registry, plan string) (Action, error) {
	effect, rest := cutWord(rest)
	verb, rest := cutWord(rest)
	data := map[string]any{"effect": effect}
	var door session.Door
	var typ string
	var err error
	switch {
	case strings.HasPrefix(effect, "w"):
		door, typ = session.DoorWake, session.TypeWakeSettled
	case strings.Contains(effect, "c"):
		door, typ = session.DoorTool, session.TypeToolCallSettled
		err = readCallSettlement(data, verb+" "+rest, plan)
	case strings.HasSuffix(effect, "s"):
		door, typ = session.DoorStep, session.TypeStepPrepared
		err = readPrepared(data, verb, rest)
	case verb == "batch":
		door, typ = session.DoorTool, session.TypeToolBatchSettled
		data, err = readBatchSettlement(effect, rest, plan)
	case verb == "calls":
		door, typ = session.DoorLLM, session.TypeToolCallsObserved
		var usage string
		data["calls"], usage, err = readCalls(rest, reg)
		if usage != "" {
			data["usage"] = readUsage(usage)
		}
	default:
		door, typ = session.DoorLLM, session.TypeGenerationSettled
		err = readAnswer(data, verb, rest)
	}
	if err != nil {
		return Action{}, err
	}
	a, err := event(door, typ, data)
	a.Settles = effect
	return a, err
}

func readAnswer(data map[string]any, verb, rest string) error {
	words, err := fields(rest)
	if err != nil {
		return err
	}
	switch {
	case verb == "text" && len(words) >= 1:
		data["status"] = "ok"
		data["text"] = map[string]any{"text": words[0].text}
		words = words[1:]
	case verb == "failed" && len(words) >= 1:
		data["status"] = "failed"
		data["error"], words = readFault(words)
	default:
		return fmt.Errorf("scenario: settle r1t1 calls …, text \"…\" or failed CODE \"detail\", not %q", verb)
	}
	for _, w := range words {
		if w.key != "usage" {
			return fmt.Errorf("scenario: settle r1t1: unknown %q", w.key)
		}
		data["usage"] = readUsage(w.text)
	}
	return nil
}

var usageFields = []string{"input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"}

// readUsage parses 10/5, 10/5/8 or 10/5/8/2: input and output tokens, input tokens
// read from a cache, and input tokens written to one.
func readUsage(text string) map[string]any {
	usage := map[string]any{}
	for i, count := range strings.SplitN(text, "/", len(usageFields)) {
		usage[usageFields[i]] = json.Number(count)
	}
	return usage
}

// readFault parses CODE ["detail"] [retryable].
func readFault(words []word) (map[string]any, []word) {
	fault := map[string]any{"code": words[0].text}
	words = words[1:]
	if len(words) > 0 && words[0].quoted && words[0].key == "" {
		fault["detail"], words = words[0].text, words[1:]
	}
	if len(words) > 0 && !words[0].quoted && words[0].key == "" && words[0].text == "retryable" {
		fault["retryable"], words = true, words[1:]
	}
	return fault, words
}

// readPrepared parses the settlement of a step: the hook's answer as JSON.
func readPrepared(data map[string]any, verb, rest string) error {
	switch {
	case verb == "ok" && rest == "":
	case verb == "ok":
		if err := json.Unmarshal([]byte(rest), &data); err != nil {
			return fmt.Errorf("scenario: settle r1t1s ok {…}: %w", err)
		}
	case verb == "failed" && rest != "":
		words, err := fields(rest)
		if err != nil {
			return err
		}
		data["error"], _ = readFault(words)
	default:
		return fmt.Errorf("scenario: settle r1t1s ok {…} or failed CODE \"detail\", not %q", verb)
	}
	data["status"] = verb
	return nil
}

func readCallSettlement(data map[string]any, text, plan string) error {
	words, err := fields(text)
	if err != nil {
		return err
	}
	if words, err = readResult(data, words, plan); err != nil {
		return err
	}
	if len(words) > 0 {
		return fmt.Errorf("scenario: settle r1t1c0: unknown %q", words[0].text)
	}
	return nil
}

func readResult(data map[string]any, words []word, plan string) ([]word, error) {
	verb := ""
	if len(words) > 0 {
		verb, words = words[0].text, words[1:]
	}
	status := map[string]session.CallStatus{
		"ok": session.CallSucceeded, "failed": session.CallFailed, "cancelled": session.CallCancelled, "unknown": session.CallUnknown,
	}[verb]
	if status == "" {
		return nil, fmt.Errorf("scenario: a call's result is ok, failed, cancelled or unknown, not %q", verb)
	}
	data["status"] = status
	switch more := len(words) > 0 && words[0].key == ""; {
	case more && verb == "ok" && words[0].quoted:
		data["output"], words = map[string]any{"text": words[0].text}, words[1:]
	case more && verb == "failed":
		data["error"], words = readFault(words)
	}
	for ; len(words) > 0 && words[0].key != ""; words = words[1:] {
		switch w := words[0]; w.key {
		case "host":
			hostPart(data)["status"] = w.text
		case "id", "root", "route":
			hostPart(data)[w.key] = w.text
		case "plan_hash":
			data["plan_hash"] = orPlan(w.text, plan)
		default:
			return nil, fmt.Errorf("scenario: a call's result: unknown %q", w.key)
		}
	}
	return words, nil
}

// hostPart returns the host session of a result. Its default id is h1.
func hostPart(data map[string]any) map[string]any {
	part, ok := data["host_session"].(map[string]any)
	if !ok {
		part = map[string]any{"id": "h1"}
		data["host_session"] = part
	}
	return part
}

// orPlan returns a plan hash; the word `plan` is the open batch's.
func orPlan(text, plan string) string {
	if text == "plan" {
		return plan
	}
	return text
}

// readBatchSettlement parses the settlement of a whole batch: results one after
// another, each after its index, c0, or the name of a call of another batch.
func readBatchSettlement(batch, rest, plan string) (map[string]any, error) {
	words, err := fields(rest)
	if err != nil {
		return nil, err
	}
	data := map[string]any{"batch": batch, "plan_hash": plan}
	if len(words) > 0 && words[0].key == "plan_hash" {
		data["plan_hash"], words = orPlan(words[0].text, plan), words[1:]
	}
	results := []any{}
	for len(words) > 0 {
		name := words[0].text
		if strings.HasPrefix(name, "c") {
			name = batch + name
		}
		result := map[string]any{"effect": name}
		if words, err = readResult(result, words[1:], plan); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	data["results"] = results
	return data, nil
}

// readCalls parses name(value, …), name{json} and name{blob size}, one after
// another, and a usage at the end of the text, if any.
func readCalls(text string, reg *planner.Registry) (calls []any, usage string, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if used, ok := strings.CutPrefix(text, "usage="); ok {
			return calls, used, nil
		}
		i := strings.IndexAny(text, "({")
		if i <= 0 {
			return nil, "", fmt.Errorf("scenario: a call is name(value, …) or name{…}, not %q", text)
		}
		name := text[:i]
		n, err := bracketed(text[i:])
		if err != nil {
			return nil, "", err
		}
		arguments := text[i : i+n]
		text = text[i+n:]
		if arguments[0] == '(' {
			if arguments, err = shortArguments(reg, name, arguments[1:n-1]); err != nil {
				return nil, "", err
			}
		}
		call := map[string]any{"tool_name": name, "arguments": arguments}
		if size, ok := strings.CutPrefix(arguments, "{blob "); ok {
			delete(call, "arguments")
			call["arguments_blob"], call["size"] = codec.RefOf(nil).String(), json.Number(strings.TrimSuffix(size, "}"))
		}
		if id, ok := strings.CutPrefix(text, "#"); ok {
			id, text = cutWord(id)
			call["provider_call_id"] = id
		}
		calls = append(calls, call)
	}
	return calls, "", nil
}

// shortArguments makes a call's arguments from the values of the schema's required
// properties.
func shortArguments(reg *planner.Registry, name, values string) (string, error) {
	var given []string
	for values = strings.TrimSpace(values); values != ""; values = strings.TrimSpace(values) {
		if strings.HasPrefix(values, `"`) {
			prefix, err := strconv.QuotedPrefix(values)
			if err != nil {
				return "", fmt.Errorf("scenario: %s(%s): %w", name, values, err)
			}
			text, _ := strconv.Unquote(prefix)
			given = append(given, text)
			values = strings.TrimPrefix(strings.TrimSpace(values[len(prefix):]), ",")
			continue
		}
		value, rest, _ := strings.Cut(values, ",")
		given, values = append(given, strings.TrimSpace(value)), rest
	}
	arguments := map[string]string{}
	for i, property := range requiredOf(reg, name) {
		arguments[property] = "x"
		if i < len(given) {
			arguments[property] = given[i]
		}
	}
	text, err := json.Marshal(arguments)
	return string(text), err
}

// requiredOf returns the required properties of a tool's schema, in order.
func requiredOf(reg *planner.Registry, name string) []string {
	if reg == nil {
		return nil
	}
	t, ok := reg.Lookup(name)
	if !ok {
		return nil
	}
	text, err := codec.ToJSON(reg.Descriptor(t).ArgsSchema)
	if err != nil {
		return nil
	}
	var schema struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(text, &schema) != nil {
		return nil
	}
	return schema.Required
}
