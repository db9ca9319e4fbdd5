package strict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The rules of chat completions.
const (
	chatRole      providerRule = "chat: role"
	chatContent   providerRule = "chat: content"
	chatAnswered  providerRule = "chat: every call is answered"
	chatAsked     providerRule = "chat: only calls are answered"
	chatOnce      providerRule = "chat: ids are unique"
	chatName      providerRule = "chat: function name"
	chatID        providerRule = "chat: id"
	chatArguments providerRule = "chat: arguments are an object"
	chatCallsOnly providerRule = "chat: calls are an assistant's"
	chatAlternate providerRule = "chat: roles alternate"
	chatAfterTool providerRule = "chat: no user after a result"
	chatLast      providerRule = "chat: ends with the user or a result"
)

// ChatMessage is an entry of `messages`.
type ChatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []ChatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// An assistant's reasoning, as servers other than OpenAI's send it; no rule
	// is about it.
	Thought string            `json:"reasoning_content,omitempty"`
	Details []json.RawMessage `json:"reasoning_details,omitempty"`
}

// UnmarshalJSON decodes a message whose content is text, or texts and images.
func (m *ChatMessage) UnmarshalJSON(data []byte) error {
	type plain ChatMessage
	var wire struct {
		plain
		Content json.RawMessage `json:"content,omitempty"`
	}
	if err := decode(data, &wire); err != nil {
		return err
	}
	*m = ChatMessage(wire.plain)
	if len(wire.Content) == 0 || json.Unmarshal(wire.Content, &m.Content) == nil {
		return nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Name string `json:"filename"`
			Data string `json:"file_data"`
		} `json:"file"`
	}
	if err := decode(wire.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != "":
			m.Content += p.Text
		case p.Type == "image_url" && m.Role == "user":
			if err := dataURL(p.ImageURL.URL, openaiImages...); err != nil {
				return err
			}
			m.Content += imageText
		case p.Type == "file" && m.Role == "user" && p.File.Name != "":
			if err := dataURL(p.File.Data, pdf); err != nil {
				return err
			}
			m.Content += imageText
		default:
			return fmt.Errorf("a part %q of a message of role %q, or an empty one", p.Type, m.Role)
		}
	}
	return nil
}

// ChatCall is an entry of `tool_calls`.
type ChatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function ChatFunction `json:"function"`

	Extra json.RawMessage `json:"extra_content,omitempty"` // of Google's; no rule is about it
}

// ChatFunction is the function of a call.
type ChatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatIDBytes is the length of an id.
const chatIDBytes = 9

// Chat returns the first broken rule of chat completions, as the strictest of the
// servers have them that this API is known of.
func Chat(messages []ChatMessage) error {
	if len(messages) == 0 {
		return breaks(chatContent, "there is no message")
	}
	var rooms [2][8]string
	open, all := rooms[0][:0], rooms[1][:0] // ids that the next messages must answer; all ids
	for i := range messages {
		m := &messages[i]
		if m.Role != "tool" && len(open) > 0 {
			return breaks(chatAnswered, "message %d is of role %s, and %q has no result", i, m.Role, open)
		}
		if err := chatForm(i, m); err != nil {
			return err
		}
		switch m.Role {
		case "assistant":
			for _, c := range m.ToolCalls {
				if slices.Contains(all, c.ID) {
					return breaks(chatOnce, "message %d calls %s again", i, c.ID)
				}
				all, open = append(all, c.ID), append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 && slices.Contains(all, m.ToolCallID) {
				return breaks(chatOnce, "message %d answers %s again", i, m.ToolCallID)
			}
			if at < 0 {
				return breaks(chatAsked, "message %d answers %q, which the previous turn did not call", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		}
	}
	if len(open) > 0 {
		return breaks(chatAnswered, "it ends without a result of %q", open)
	}
	return chatRoles(messages)
}

// chatRoles checks the order of roles. Chat templates leave messages with calls
// and their results out when they count turns; a server's validator does not.
func chatRoles(messages []ChatMessage) error {
	before, counted := "", 0 // role of the previous message; turns without calls
	for i := range messages {
		m := &messages[i]
		if m.Role == "system" || m.Role == "developer" {
			if before != "" {
				return breaks(chatRole, "message %d of role %s is not the first", i, m.Role)
			}
			continue
		}
		switch {
		case m.Role == "user" && before == "tool":
			return breaks(chatAfterTool, "message %d is the user's, right after a result", i)
		case m.Role != "tool" && m.Role == before:
			return breaks(chatAlternate, "messages %d and %d are of role %s", i-1, i, m.Role)
		case before == "" && m.Role != "user":
			return breaks(chatAlternate, "message %d is the first, and of role %s", i, m.Role)
		}
		if before = m.Role; m.Role == "tool" || len(m.ToolCalls) > 0 {
			continue
		}
		if (m.Role == "user") != (counted%2 == 0) {
			return breaks(chatAlternate, "message %d of role %s is turn %d without calls", i, m.Role, counted)
		}
		counted++
	}
	if before == "assistant" && len(messages[len(messages)-1].ToolCalls) == 0 {
		return breaks(chatLast, "it ends with the role %s", before)
	}
	return nil
}

// chatForm checks a single message.
func chatForm(i int, m *ChatMessage) error {
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	default:
		return breaks(chatRole, "message %d is of role %q", i, m.Role)
	}
	if IsBlank(m.Content) && (m.Content != "" || m.Role != "assistant" || len(m.ToolCalls) == 0) {
		return breaks(chatContent, "message %d, %s, is empty", i, m.Role)
	}
	if m.Role != "assistant" && (len(m.ToolCalls) > 0 || m.Thought != "" || len(m.Details) > 0) || m.Role != "tool" && m.ToolCallID != "" {
		return breaks(chatCallsOnly, "message %d of role %s has calls, or answers one", i, m.Role)
	}
	for _, c := range m.ToolCalls {
		if !IsName(c.Function.Name) || c.Type != "function" {
			return breaks(chatName, "message %d calls %s %q", i, c.Type, c.Function.Name)
		}
		if len(c.ID) != chatIDBytes || strings.ContainsAny(c.ID, "_-") || !IsName(c.ID) {
			return breaks(chatID, "message %d has the id %q", i, c.ID)
		}
		if err := objectFault(c.Function.Arguments, depthMax); err != nil {
			return breaks(chatArguments, "message %d: %v", i, err)
		}
	}
	return nil
}
