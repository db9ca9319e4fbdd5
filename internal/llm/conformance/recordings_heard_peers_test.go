//go:build peers

package conformance

// Reads recorded answers from their bytes with encoding/json alone.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
)

// heard is what an answer says.
type heard struct {
	entries []entry // of the model, in their order, as they must go back
	calls   []executor.AnswerCall
	text    string
	finish  string
	model   string
	usage   executor.Usage
	foreign int // pieces of tools that the server ran by itself; they are left out
}

// data returns the data of the events of a stream.
func data(stream string) []string {
	var all []string
	for event := range strings.SplitSeq(strings.ReplaceAll(stream, "\r\n", "\n"), "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(event, "\n") {
			if text, ok := strings.CutPrefix(line, "data:"); ok {
				lines = append(lines, strings.TrimPrefix(text, " "))
			}
		}
		if text := strings.Join(lines, "\n"); text != "" && text != "[DONE]" {
			all = append(all, text)
		}
	}
	return all
}

// settle sets words and calls as the entries have them, and how the answer
// ended: raw is what the server said, of which words are the known ones.
func (h *heard) settle(raw string, words map[string]string) error {
	for _, e := range h.entries {
		switch e.Kind {
		case "text":
			h.text += e.Value
		case "call":
			h.calls = append(h.calls, executor.AnswerCall{ID: e.ID, Name: e.Name, Arguments: e.Value})
		}
	}
	h.finish = words[raw]
	if h.finish == "stop" && len(h.calls) > 0 {
		h.finish = "tool_calls"
	}
	if h.finish == "stop" && strings.TrimSpace(h.text) == "" {
		h.finish = "empty"
		if len(h.entries) > 0 || h.usage.ReasoningTokens > 0 {
			h.finish = "thoughts_only"
		}
	}
	if h.finish == "" {
		return fmt.Errorf("an answer that ended by %q", raw)
	}
	return nil
}

// chatSaid is a message of an answer, or a part of one.
type chatSaid struct {
	Content   string
	ToolCalls []struct {
		Index    int
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	Thought string                       `json:"reasoning_content"`
	Details []map[string]json.RawMessage `json:"reasoning_details"`
}

// heardChat reads a chat completion, whole or in chunks.
func heardChat(body string, stream bool) (heard, error) {
	chunks := []string{body}
	if stream {
		chunks = data(body)
	}
	var h heard
	var text, thought, finish string
	var details []map[string]json.RawMessage
	calls := map[int]*entry{}
	for _, chunk := range chunks {
		var in struct {
			Model   string
			Choices []struct {
				Index          int
				FinishReason   string `json:"finish_reason"`
				Delta, Message chatSaid
			}
			Usage *chatUsage
		}
		if err := json.Unmarshal([]byte(chunk), &in); err != nil {
			return h, err
		}
		h.model = orElse(in.Model, h.model)
		if in.Usage != nil {
			h.usage = in.Usage.count()
		}
		for _, c := range in.Choices {
			finish = orElse(c.FinishReason, finish)
			for i, said := range []chatSaid{c.Delta, c.Message} {
				text += said.Content
				thought += said.Thought
				for _, d := range said.Details {
					details = joined(details, d, stream)
				}
				for j, call := range said.ToolCalls {
					at := call.Index
					if i == 1 { // a whole message
						at = j
					}
					if calls[at] == nil {
						calls[at] = &entry{Who: "model", Kind: "call"}
					}
					calls[at].ID += call.ID
					calls[at].Name += call.Function.Name
					calls[at].Value += call.Function.Arguments
				}
			}
		}
	}
	if thought != "" || len(details) > 0 {
		var raw json.RawMessage
		if len(details) > 0 {
			raw = json.RawMessage(encode(details))
		}
		h.entries = append(h.entries, entry{Who: "model", Kind: "item", Value: chatItem(thought, raw)})
	}
	if text != "" {
		h.entries = append(h.entries, entry{Who: "model", Kind: "text", Value: text})
	}
	for i := range len(calls) {
		if calls[i] == nil {
			return h, fmt.Errorf("there is no call %d", i)
		}
		h.entries = append(h.entries, *calls[i])
	}
	return h, h.settle(finish, map[string]string{"stop": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"})
}

// joined adds a detail, or what goes on with the one before: pieces of one have
// its type and index. Words follow each other, other members come once.
func joined(all []map[string]json.RawMessage, d map[string]json.RawMessage, stream bool) []map[string]json.RawMessage {
	n := len(all) - 1
	if !stream || n < 0 || string(all[n]["type"]) != string(d["type"]) || string(all[n]["index"]) != string(d["index"]) || string(d["type"]) == `"reasoning.encrypted"` {
		return append(all, d)
	}
	for name, value := range d {
		var before, more string
		_ = json.Unmarshal(all[n][name], &before)
		if json.Unmarshal(value, &more) != nil {
			continue // an index
		}
		if name == "text" || name == "summary" {
			more = before + more
		}
		if more != "" || all[n][name] == nil {
			all[n][name] = json.RawMessage(encode(more))
		}
	}
	return all
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Read       struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Said struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count counts what was thought as a part of what came out: some servers add it
// to the total alone, and some nowhere, which shows where it is the greater.
func (u *chatUsage) count() executor.Usage {
	out := u.Total - u.Prompt
	if u.Said.Reasoning > out {
		out += u.Said.Reasoning
	}
	return executor.Usage{InputTokens: u.Prompt, OutputTokens: out, CachedTokens: u.Read.Cached, ReasoningTokens: u.Said.Reasoning}
}

// heardResponses reads a response: the words of a stream are its deltas, all
// else is in the last event.
func heardResponses(body string, stream bool) (heard, error) {
	deltas := ""
	if stream {
		for _, event := range data(body) {
			var in struct {
				Type, Delta string
				Response    json.RawMessage
			}
			if err := json.Unmarshal([]byte(event), &in); err != nil {
				// Deltas of other events are no texts.
				continue
			}
			if in.Type == "response.output_text.delta" {
				deltas += in.Delta
			}
			if in.Type == "response.completed" {
				body = string(in.Response)
			}
		}
	}
	var in struct {
		Model, Status string
		Output        []json.RawMessage
		Usage         struct {
			Input     int64 `json:"input_tokens"`
			Output    int64 `json:"output_tokens"`
			InDetails struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			OutDetails struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return heard{}, err
	}
	h := heard{model: in.Model, usage: executor.Usage{
		InputTokens: in.Usage.Input, OutputTokens: in.Usage.Output, CachedTokens: in.Usage.InDetails.Cached, ReasoningTokens: in.Usage.OutDetails.Reasoning,
	}}
	if err := h.responseItems(in.Output); err != nil {
		return h, err
	}
	err := h.settle(in.Status, map[string]string{"completed": "stop"})
	if err == nil && stream && h.text != deltas {
		err = fmt.Errorf("its deltas say %q, and its end %q", deltas, h.text)
	}
	return h, err
}

// responseItems reads output items. What was thought goes back if the server
// can read it, and then all else goes by its id.
func (h *heard) responseItems(items []json.RawMessage) error {
	for _, raw := range items {
		var it struct {
			Type, ID, Name, Arguments string
			CallID                    string `json:"call_id"`
			Encrypted                 string `json:"encrypted_content"`
			Content                   []struct{ Text string }
		}
		if err := json.Unmarshal(raw, &it); err != nil {
			return err
		}
		switch it.Type {
		case "message":
			text := ""
			for _, c := range it.Content {
				text += c.Text
			}
			h.entries = append(h.entries, entry{Who: "model", Kind: "text", Value: text, Mark: it.ID})
		case "function_call":
			h.entries = append(h.entries, entry{Who: "model", Kind: "call", ID: it.CallID, Name: it.Name, Value: it.Arguments, Mark: it.ID})
		case "reasoning":
			if it.Encrypted != "" {
				h.entries = append(h.entries, entry{Who: "model", Kind: "item", Value: canon(raw)})
			}
		default:
			h.foreign++
		}
	}
	if !slices.ContainsFunc(h.entries, func(e entry) bool { return e.Kind == "item" }) {
		for i := range h.entries {
			h.entries[i].Mark = ""
		}
	}
	return nil
}
