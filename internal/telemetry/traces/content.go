package traces

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/refold/refold/bridge/executor"
)

// Content exports the texts of conversations: messages, arguments and results,
// each cut at contentMax and with matches of Mask replaced. System texts and
// opaque items of providers are never exported.
type Content struct {
	Mask []*regexp.Regexp
}

const (
	contentMax = 8 << 10 // bytes of one attribute
	masked     = "[masked]"
	cutMark    = "…"
)

// ParseMasks reads patterns, one a line, without empty lines and lines that begin
// with #. The error names the line.
func ParseMasks(file string) (masks []*regexp.Regexp, err error) {
	for i, line := range strings.Split(file, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		mask, err := regexp.Compile(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		masks = append(masks, mask)
	}
	return masks, nil
}

// show returns a text as it is exported. It masks before it cuts, so that a cut
// does not split a match.
func (c *Content) show(value string) string {
	for _, mask := range c.Mask {
		value = mask.ReplaceAllLiteralString(value, masked)
	}
	if len(value) <= contentMax {
		return value
	}
	cut := contentMax - len(cutMark)
	for cut > 0 && value[cut]&0xC0 == 0x80 {
		cut--
	}
	return value[:cut] + cutMark
}

// message is one message in the form of the GenAI conventions.
type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    string          `json:"result,omitempty"`
}

func (c *Content) chat(s *executor.Start, e *executor.End) []*commonpb.KeyValue {
	var attrs []*commonpb.KeyValue
	if len(s.Messages) > 0 {
		attrs = append(attrs, c.messages(attrInputMessages, inputs(s.Messages)))
	}
	if e.Text != "" || len(e.Calls) > 0 {
		attrs = append(attrs, c.messages(attrOutputMessages, []message{output(e)}))
	}
	return attrs
}

// messages returns an attribute with as many of the latest messages as fit.
func (c *Content) messages(key string, all []message) *commonpb.KeyValue {
	for len(all) > 1 {
		if body, err := json.Marshal(all); err == nil && len(body) <= contentMax {
			break
		}
		all = all[1:]
	}
	body, _ := json.Marshal(all) // texts always encode
	return text(key, c.show(string(body)))
}

func inputs(messages []executor.Message) (all []message) {
	for _, m := range messages {
		out := message{Role: m.Role}
		if m.CallID != "" {
			out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: m.CallID, Result: m.Text})
		} else if m.Text != "" {
			out.Parts = append(out.Parts, part{Type: "text", Content: m.Text})
		}
		for _, call := range m.Calls {
			out.Parts = append(out.Parts, callPart(call.ID, call.Name, call.Arguments))
		}
		all = append(all, out)
	}
	return all
}

func output(e *executor.End) message {
	out := message{Role: "assistant"}
	if e.Text != "" {
		out.Parts = append(out.Parts, part{Type: "text", Content: e.Text})
	}
	for _, call := range e.Calls {
		out.Parts = append(out.Parts, callPart(call.ID, call.Name, call.Arguments))
	}
	return out
}

// callPart is a call as the model wrote it. Its arguments may be invalid JSON.
func callPart(id, name, arguments string) part {
	raw := json.RawMessage(arguments)
	if !json.Valid(raw) {
		raw, _ = json.Marshal(arguments) // a text always encodes
	}
	return part{Type: "tool_call", ID: id, Name: name, Arguments: raw}
}

func (c *Content) tool(s *executor.Start, e *executor.End) []*commonpb.KeyValue {
	return []*commonpb.KeyValue{text(attrToolArguments, c.show(s.Arguments)), text(attrToolResult, c.show(e.Text))}
}
