//go:build peers

package conformance

// Reads recorded answers of Anthropic's and Google's APIs. Our clients only
// request streams from these.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// heardAnthropic reads the events of a message.
func heardAnthropic(body string, _ bool) (heard, error) {
	var h heard
	var finish string
	var input, written, read, output int64
	blocks := map[int]map[string]string{}
	var order []int
	for _, event := range data(body) {
		var in struct {
			Type    string
			Index   int
			Message struct {
				Model string
				Usage claudeUsage
			}
			Block map[string]json.RawMessage `json:"content_block"`
			Delta struct {
				StopReason                      string `json:"stop_reason"`
				Text, Thinking, Signature, Type string
				PartialJSON                     string `json:"partial_json"`
			}
			Usage claudeUsage
		}
		if err := json.Unmarshal([]byte(event), &in); err != nil {
			return h, err
		}
		switch in.Type {
		case "message_start":
			h.model = in.Message.Model
		case "content_block_start":
			order = append(order, in.Index)
			blocks[in.Index] = map[string]string{}
			for name, raw := range in.Block {
				var text string
				_ = json.Unmarshal(raw, &text)
				blocks[in.Index][name] = text
			}
		case "content_block_delta":
			b := blocks[in.Index]
			b["text"] += in.Delta.Text
			b["thinking"] += in.Delta.Thinking
			b["signature"] += in.Delta.Signature
			b["input"] += in.Delta.PartialJSON
		case "message_delta":
			finish = orElse(in.Delta.StopReason, finish)
		}
		for _, u := range []claudeUsage{in.Message.Usage, in.Usage} { // the last count of each holds
			for at, n := range map[*int64]*int64{&input: u.Input, &written: u.Written, &read: u.Read, &output: u.Output} {
				if n != nil {
					*at = *n
				}
			}
		}
	}
	h.usage = executor.Usage{InputTokens: input + written + read, CachedTokens: read, OutputTokens: output}
	for _, i := range order {
		if err := h.claudeBlock(blocks[i]); err != nil {
			return h, err
		}
	}
	return h, h.settle(finish, map[string]string{"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "refusal"})
}

type claudeUsage struct {
	Input   *int64 `json:"input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Output  *int64 `json:"output_tokens"`
}

func (h *heard) claudeBlock(b map[string]string) error {
	switch b["type"] {
	case "text":
		h.entries = append(h.entries, entry{Who: "model", Kind: "text", Value: b["text"]})
	case "tool_use":
		h.entries = append(h.entries, entry{Who: "model", Kind: "call", ID: b["id"], Name: b["name"], Value: b["input"]})
	case "thinking":
		item := map[string]string{"type": "thinking", "thinking": b["thinking"], "signature": b["signature"]}
		h.entries = append(h.entries, entry{Who: "model", Kind: "item", Value: encode(item)})
	case "server_tool_use", "web_search_tool_result":
		h.foreign++
	default:
		return fmt.Errorf("a block of the type %q", b["type"])
	}
	return nil
}

// heardGemini reads the chunks of an answer. Thoughts in words are for people.
// A signature that came by itself, in a part without words, is that of the words
// before it: where an answer comes whole, they are one part.
func heardGemini(body string, _ bool) (heard, error) {
	var h heard
	finish := ""
	for _, chunk := range data(body) {
		var in struct {
			ModelVersion string
			Candidates   []struct {
				FinishReason string
				Content      struct{ Parts []geminiPart }
			}
			UsageMetadata struct{ PromptTokenCount, CachedContentTokenCount, ThoughtsTokenCount, TotalTokenCount int64 }
		}
		if err := json.Unmarshal([]byte(chunk), &in); err != nil {
			return h, err
		}
		h.model = orElse(in.ModelVersion, h.model)
		u := in.UsageMetadata
		h.usage = executor.Usage{
			InputTokens: u.PromptTokenCount, OutputTokens: u.TotalTokenCount - u.PromptTokenCount, CachedTokens: u.CachedContentTokenCount, ReasoningTokens: u.ThoughtsTokenCount,
		}
		for _, c := range in.Candidates {
			finish = orElse(c.FinishReason, finish)
			for _, p := range c.Content.Parts {
				if p.Thought {
					continue
				}
				e := p.entry("model")
				if last := len(h.entries) - 1; e.Kind == "text" && e.Value == "" && last >= 0 && h.entries[last].Kind == "text" {
					h.entries[last].Mark += e.Mark
					continue
				}
				h.entries = merged(append(h.entries, e))
			}
		}
	}
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.Kind == "text" && e.Value == "" && e.Mark == "" })
	return h, h.settle(finish, map[string]string{"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"})
}

// merged makes one of words of one that follow each other, without a mark.
func merged(all []entry) []entry {
	var out []entry
	for _, e := range all {
		if n := len(out) - 1; n >= 0 && e.Kind == "text" && out[n].Kind == "text" && out[n].Who == e.Who && e.Mark == "" && out[n].Mark == "" {
			out[n].Value += e.Value
			continue
		}
		out = append(out, e)
	}
	return slices.DeleteFunc(out, func(e entry) bool { // no API needs what the model left blank, and some refuse it
		return e.Who == "model" && e.Kind == "text" && e.Mark == "" && llm.IsBlank(e.Value)
	})
}

// leaves are the texts in an item that the provider made, but for how they are
// named and sorted.
func leaves(value string) (words, verbatim []string) {
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(name, inner)
			}
		case []any:
			for _, inner := range v {
				walk(name, inner)
			}
		case string:
			switch name {
			case "type", "format", "status":
			case "text", "summary", "thinking", "reasoning_content":
				words = append(words, strings.TrimSpace(v))
			default:
				verbatim = append(verbatim, v)
			}
		}
	}
	var v any
	if json.Unmarshal([]byte(value), &v) == nil {
		walk("", v)
	}
	return words, verbatim
}
