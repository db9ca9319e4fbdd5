//go:build peers

package conformance

// Reads requests of Anthropic's and Google's APIs.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// googlesType matches the type of a schema in Google's own form: OBJECT, STRING.
var googlesType = regexp.MustCompile(`"type":\s*"[A-Z]+"`)

// toldAnthropic reads a request for a message.
func toldAnthropic(body []byte) (told, error) {
	var in struct {
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools      []json.RawMessage
		ToolChoice struct{ Type, Name string } `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return told{}, err
	}
	var out told
	read := out.anthropicBlock
	words, err := worded(in.System, "system", read)
	if err != nil {
		return out, err
	}
	out.entries = words
	for _, m := range in.Messages {
		who := map[string]string{"user": "user", "assistant": "model"}[m.Role]
		words, err := worded(m.Content, who, read)
		if err != nil {
			return out, err
		}
		for _, e := range words {
			if e.Kind != "result" {
				out.entries = append(out.entries, e)
				continue
			}
			results, err := worded(json.RawMessage(e.Value), "tool", read)
			if err != nil {
				return out, err
			}
			for _, r := range results {
				if r.ID = e.ID; r.Kind == "text" {
					r.Kind = "result"
				}
				out.entries = append(out.entries, r)
			}
		}
	}
	err = out.tooled(in.Tools, func(raw json.RawMessage) (entry, error) {
		var t struct {
			Name, Description string
			Schema            json.RawMessage `json:"input_schema"`
		}
		err := json.Unmarshal(raw, &t)
		if len(t.Schema) == 0 {
			return entry{}, err
		}
		return entry{Who: "tool", Name: t.Name, Value: canon(t.Schema), Mark: t.Description}, err
	})
	if err != nil {
		return out, err
	}
	out.choice = map[string]string{"any": "required", "none": "none", "tool": in.ToolChoice.Name}[in.ToolChoice.Type]
	out.rest, err = rest(body, "messages", "model", "system", "tools", "tool_choice", "stream", "anthropic_version")
	return out, err
}

// anthropicBlock reads a block; the Value of a result is its content.
func (t *told) anthropicBlock(raw json.RawMessage) (entry, error) {
	var b struct {
		Type, Text, ID, Name   string
		Input, Content, Source json.RawMessage
		ToolUseID              string `json:"tool_use_id"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return entry{}, err
	}
	switch b.Type {
	case "text":
		return entry{Kind: "text", Value: b.Text}, nil
	case "image":
		return entry{Kind: "image", Value: canon(b.Source)}, nil
	case "tool_use":
		return entry{Kind: "call", ID: b.ID, Name: b.Name, Value: canon(b.Input)}, nil
	case "tool_result":
		return entry{Kind: "result", ID: b.ToolUseID, Value: string(b.Content)}, nil
	case "thinking", "redacted_thinking":
		return entry{Kind: "item", Value: canon(raw)}, nil
	case "server_tool_use", "web_search_tool_result":
		t.foreign++
		return entry{}, nil
	}
	return entry{}, fmt.Errorf("a block of the type %q", b.Type)
}

// toldGemini reads a request for content. A result is the one member of its
// response, whichever name that has.
func toldGemini(body []byte) (told, error) {
	var in struct {
		SystemInstruction struct{ Parts []geminiPart }
		Contents          []struct {
			Role  string
			Parts []geminiPart
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name, Description                string
				Parameters, ParametersJSONSchema json.RawMessage
			}
		}
		ToolConfig struct {
			FunctionCallingConfig struct {
				Mode                 string
				AllowedFunctionNames []string
			}
		}
		GenerationConfig map[string]json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return told{}, err
	}
	var out told
	for _, p := range in.SystemInstruction.Parts {
		out.entries = append(out.entries, p.entry("system"))
	}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			e := p.entry(c.Role)
			if e.Kind == "" {
				return out, fmt.Errorf("a part of no known kind")
			}
			out.entries = append(out.entries, e)
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.ParametersJSONSchema
			if len(schema) == 0 {
				schema = googlesType.ReplaceAllFunc(f.Parameters, bytes.ToLower) // as JSON Schema has them
			}
			out.tools = append(out.tools, entry{Who: "tool", Name: f.Name, Value: canon(schema), Mark: f.Description})
		}
	}
	switch calling := in.ToolConfig.FunctionCallingConfig; {
	case len(calling.AllowedFunctionNames) == 1:
		out.choice = calling.AllowedFunctionNames[0]
	default:
		out.choice = map[string]string{"ANY": "required", "NONE": "none"}[calling.Mode]
	}
	var err error
	if out.rest, err = rest(body, "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"); err != nil {
		return out, err
	}
	if schema, ok := in.GenerationConfig["responseJsonSchema"]; ok {
		out.format = &format{schema: canon(schema)}
		delete(in.GenerationConfig, "responseJsonSchema")
		delete(in.GenerationConfig, "responseMimeType")
	}
	if len(in.GenerationConfig) > 0 {
		out.rest["generationConfig"] = json.RawMessage(encode(in.GenerationConfig))
	}
	return out, nil
}

// geminiPart is a part, of a request or of an answer.
type geminiPart struct {
	Text         *string
	Thought      bool
	FunctionCall *struct {
		ID, Name string
		Args     json.RawMessage
	}
	FunctionResponse *struct {
		ID, Name string
		Response map[string]json.RawMessage
	}
	InlineData       json.RawMessage
	ThoughtSignature string
}

func (p geminiPart) entry(role string) entry {
	who := map[string]string{"user": "user", "model": "model", "system": "system"}[role]
	switch {
	case p.FunctionCall != nil:
		args := "{}"
		if len(p.FunctionCall.Args) > 0 {
			args = canon(p.FunctionCall.Args)
		}
		return entry{Who: who, Kind: "call", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Value: args, Mark: p.ThoughtSignature}
	case p.FunctionResponse != nil:
		var said []string
		for _, value := range p.FunctionResponse.Response {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = canon(value)
			}
			said = append(said, text)
		}
		return entry{Who: "tool", Kind: "result", ID: p.FunctionResponse.ID, Value: strings.Join(said, "; ")}
	case len(p.InlineData) > 0:
		return entry{Who: who, Kind: "image", Value: canon(p.InlineData)}
	case p.Text != nil:
		return entry{Who: who, Kind: "text", Value: *p.Text, Mark: p.ThoughtSignature}
	}
	return entry{}
}
