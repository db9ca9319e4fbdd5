package strict

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The rules of Anthropic messages.
const (
	anthropicRole      providerRule = "anthropic: role"
	anthropicAlternate providerRule = "anthropic: roles alternate"
	anthropicLast      providerRule = "anthropic: ends with the user"
	anthropicContent   providerRule = "anthropic: content"
	anthropicBlock     providerRule = "anthropic: blocks of a role"
	anthropicAnswered  providerRule = "anthropic: every call is answered"
	anthropicAsked     providerRule = "anthropic: only calls are answered"
	anthropicOnce      providerRule = "anthropic: ids are unique"
	anthropicFirst     providerRule = "anthropic: results come first"
	anthropicInput     providerRule = "anthropic: input is an object"
	anthropicName      providerRule = "anthropic: tool name"
	anthropicID        providerRule = "anthropic: id"
	anthropicThought   providerRule = "anthropic: thoughts are signed"
	anthropicSide      providerRule = "anthropic: images have at most 8,000 pixels a side"
	anthropicMany      providerRule = "anthropic: at most 100 images, and of more than 20 none is large"
)

// AnthropicMessage is an entry of `messages`.
type AnthropicMessage struct {
	Role    string           `json:"role"`
	Content []AnthropicBlock `json:"content"`
}

// AnthropicBlock has the fields of its type.
type AnthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Source    *AnthropicImage `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`

	// A cache mark; AnthropicRequest has its rules.
	Cache json.RawMessage `json:"cache_control,omitempty"`

	sources []*AnthropicImage // the images and documents of a result
}

// AnthropicImage is the source of a block `image` or `document`.
type AnthropicImage struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// UnmarshalJSON decodes a block whose content is text, or texts and images.
func (b *AnthropicBlock) UnmarshalJSON(data []byte) error {
	type plain AnthropicBlock
	var wire struct {
		plain
		Content json.RawMessage `json:"content,omitempty"`
	}
	if err := decode(data, &wire); err != nil {
		return err
	}
	*b = AnthropicBlock(wire.plain)
	if len(wire.Content) == 0 || json.Unmarshal(wire.Content, &b.Content) == nil {
		return nil
	}
	var blocks []AnthropicBlock
	if err := decode(wire.Content, &blocks); err != nil {
		return err
	}
	for i := range blocks {
		switch n := &blocks[i]; {
		case n.Type == "text" && !IsBlank(n.Text):
			b.Content += n.Text
		case n.Type == "image" && n.Source != nil && n.Source.Type == "base64":
			if err := file(n.Source.MediaType, n.Source.Data, anthropicImageMax, anthropicImages); err != nil {
				return err
			}
			b.Content += imageText
			b.sources = append(b.sources, n.Source)
		case n.Type == "document" && n.Source != nil && n.Source.Type == "base64":
			if err := file(n.Source.MediaType, n.Source.Data, anthropicBodyMax, []string{pdf}); err != nil {
				return err
			}
			b.Content += imageText
			b.sources = append(b.sources, n.Source)
		default:
			return fmt.Errorf("a block %q in a result, or a blank one", n.Type)
		}
	}
	return nil
}

// Anthropic returns the first broken rule of Anthropic messages.
func Anthropic(messages []AnthropicMessage) error {
	var rooms [2][8]string
	all, open := rooms[0][:0], rooms[1][:0] // all tool_use ids; those of the previous message
	for i := range messages {
		m := &messages[i]
		if m.Role != "user" && m.Role != "assistant" || i == 0 && m.Role != "user" {
			return breaks(anthropicRole, "message %d is of role %q", i, m.Role)
		}
		if i > 0 && m.Role == messages[i-1].Role {
			return breaks(anthropicAlternate, "messages %d and %d are of role %s", i-1, i, m.Role)
		}
		if len(m.Content) == 0 {
			return breaks(anthropicContent, "message %d is empty", i)
		}
		asked := open
		open = nil
		words := false
		for j := range m.Content {
			b := &m.Content[j]
			if err := claudeForm(i, m.Role, b); err != nil {
				return err
			}
			switch b.Type {
			case "text", "image", "document":
				words = true
			case "tool_use":
				if slices.Contains(all, b.ID) {
					return breaks(anthropicOnce, "message %d uses %s again", i, b.ID)
				}
				all, open = append(all, b.ID), append(open, b.ID)
			case "tool_result":
				at := slices.Index(asked, b.ToolUseID)
				switch {
				case words:
					return breaks(anthropicFirst, "message %d has text before the result of %s", i, b.ToolUseID)
				case at >= 0:
					asked = slices.Delete(asked, at, at+1)
				case i > 0 && slices.ContainsFunc(m.Content[:j], func(o AnthropicBlock) bool { return o.ToolUseID == b.ToolUseID }):
					return breaks(anthropicOnce, "message %d has two results of %s", i, b.ToolUseID)
				default:
					return breaks(anthropicAsked, "message %d has a result of %q, which the previous message does not use", i, b.ToolUseID)
				}
			}
		}
		if len(asked) > 0 {
			return breaks(anthropicAnswered, "message %d has no result of %q", i, asked)
		}
	}
	if err := anthropicImagesFault(messages); err != nil {
		return err
	}
	return claudeEnd(messages, open)
}

// claudeEnd checks the end of a conversation.
func claudeEnd(messages []AnthropicMessage, open []string) error {
	switch n := len(messages); {
	case n == 0:
		return breaks(anthropicContent, "there is no message")
	case len(open) > 0:
		return breaks(anthropicAnswered, "it ends without a result of %q", open)
	case messages[n-1].Role != "user":
		return breaks(anthropicLast, "it ends with the role %s", messages[n-1].Role)
	}
	return nil
}

// claudeForm checks a single block.
func claudeForm(i int, role string, b *AnthropicBlock) error {
	switch b.Type {
	case "text":
		if IsBlank(b.Text) {
			return breaks(anthropicContent, "message %d has a blank text", i)
		}
	case "tool_use":
		switch {
		case role != "assistant":
			return breaks(anthropicBlock, "message %d of role %s uses a tool", i, role)
		case !IsName(b.Name):
			return breaks(anthropicName, "message %d uses %q", i, b.Name)
		case !isClaudeID(b.ID):
			return breaks(anthropicID, "message %d uses a tool by the id %q", i, b.ID)
		}
		if err := objectFault(string(b.Input), depthMax); err != nil {
			return breaks(anthropicInput, "message %d: %v", i, err)
		}
	case "tool_result":
		switch {
		case role != "user":
			return breaks(anthropicBlock, "message %d of role %s has a result", i, role)
		case b.Content == "":
			return breaks(anthropicContent, "message %d has an empty result", i)
		}
	case "image", "document":
		kinds, bytesMax := anthropicImages, anthropicImageMax
		if b.Type == "document" {
			kinds, bytesMax = []string{pdf}, anthropicBodyMax
		}
		if role != "user" || b.Source == nil || b.Source.Type != "base64" || file(b.Source.MediaType, b.Source.Data, bytesMax, kinds) != nil {
			return breaks(anthropicBlock, "message %d of role %s has an invalid %s", i, role, b.Type)
		}
	case "thinking", "redacted_thinking":
		if role != "assistant" || b.Type == "thinking" && b.Signature == "" || b.Type == "redacted_thinking" && b.Data == "" {
			return breaks(anthropicThought, "message %d of role %s has an unsigned thought", i, role)
		}
	default:
		return breaks(anthropicBlock, "message %d has a block %q", i, b.Type)
	}
	return nil
}

// isClaudeID reports whether an id has only letters, digits, _ and -.
func isClaudeID(id string) bool {
	for len(id) > nameMax { // unlike a name, an id has no maximal length
		if !IsName(id[:nameMax]) {
			return false
		}
		id = id[nameMax:]
	}
	return IsName(id)
}
