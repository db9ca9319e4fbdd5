package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// byteOrderMark begins the output of some programs on Windows.
var byteOrderMark = []byte("\ufeff")

// metaFault is the member of a listed tool's _meta with what is wrong with its
// entry.
const metaFault = "refold/fault"

// readable returns a message in a form that the SDK can decode: it would end the
// session, and every call in it, because of one that it can't. What can't be read
// becomes text of the result. It returns nil for an answer to no request.
func readable(message []byte) []byte {
	message = bytes.TrimPrefix(message, byteOrderMark)
	var whole map[string]json.RawMessage
	if json.Unmarshal(message, &whole) != nil || whole == nil {
		return message
	}
	changed := false
	set := func(member string, value json.RawMessage) { whole[member], changed = value, true }
	if string(whole["jsonrpc"]) != `"2.0"` {
		set("jsonrpc", json.RawMessage(`"2.0"`))
	}
	if _, request := whole["method"]; !request {
		id, ok := numberOf(whole["id"])
		if !ok {
			return nil
		}
		if string(id) != string(whole["id"]) {
			set("id", id)
		}
		if result, ok := whole["result"]; ok {
			if fixed := readableResult(result); fixed != nil {
				set("result", fixed)
			}
		}
	}
	if !changed {
		return message
	}
	return textOf(whole)
}

// numberOf returns an id as a number, as it was sent, if it has the digits of one.
func numberOf(id json.RawMessage) (json.RawMessage, bool) {
	text := string(bytes.Trim(id, `"`))
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == float64(int64(n)) {
		return json.RawMessage(strconv.FormatInt(int64(n), 10)), true
	}
	return nil, false
}

// readableResult returns a result that the SDK can decode, or nil if it can decode
// this one.
func readableResult(result json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || members == nil {
		return textOf(map[string]any{"content": []any{partOf(result)}})
	}
	if tools, ok := members["tools"]; ok {
		return readableTools(members, tools)
	}
	_, content := members["content"]
	_, structured := members["structuredContent"]
	if !content && !structured {
		if old, ok := members["toolResult"]; ok { // of the first version of the protocol
			members["content"] = textOf([]any{partOf(old)})
			return textOf(members)
		}
		return nil
	}
	if isResult(result) {
		return nil
	}
	var list []json.RawMessage
	if content && json.Unmarshal(members["content"], &list) != nil {
		list = []json.RawMessage{members["content"]}
	}
	parts := make([]any, 0, len(list))
	for _, part := range list {
		if isResult(textOf(map[string]any{"content": []any{part}})) {
			parts = append(parts, part)
		} else {
			parts = append(parts, partOf(part))
		}
	}
	members["content"] = textOf(parts)
	if whole := textOf(members); isResult(whole) {
		return whole
	}
	kept := map[string]any{"content": parts, "isError": bytes.Contains(members["isError"], []byte("true"))}
	if structured {
		kept["structuredContent"] = members["structuredContent"]
	}
	return textOf(kept)
}

func isResult(result json.RawMessage) bool {
	var r sdk.CallToolResult
	return json.Unmarshal(result, &r) == nil
}

// partOf returns a part of an answer as text: its own text if it has one, else
// what it is.
func partOf(part json.RawMessage) any {
	var own struct {
		Type any `json:"type"`
		Text any `json:"text"`
	}
	text := ""
	if json.Unmarshal(part, &text) != nil {
		_ = json.Unmarshal(part, &own) // whatever can be read
		if said, ok := own.Text.(string); ok {
			text = said
		} else if own.Type == nil {
			text = string(part) // whole: a cut could leave a part of a secret
		} else {
			text = fmt.Sprintf("[a part of the answer can't be read; its type is %v]", own.Type)
		}
	}
	return map[string]string{"type": "text", "text": text}
}

// readableTools returns a list of tools in which the entries that the SDK can't
// decode have nothing but their name and the fault; nil if there are none.
func readableTools(members map[string]json.RawMessage, tools json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(tools, &list) != nil {
		return nil // the list is refused
	}
	changed := false
	for i, entry := range list {
		var t *sdk.Tool
		err := json.Unmarshal(entry, &t)
		if err == nil && t != nil {
			continue
		}
		var named struct {
			Name any `json:"name"`
		}
		_ = json.Unmarshal(entry, &named) // whatever can be read
		name, _ := named.Name.(string)
		list[i], changed = textOf(map[string]any{
			"name": name, "inputSchema": map[string]any{"type": "object"},
			"_meta": map[string]any{metaFault: fmt.Sprintf("its entry in the list can't be read: %.200s", fmt.Sprint(err))},
		}), true
	}
	if !changed {
		return nil
	}
	members["tools"] = textOf(list)
	return textOf(members)
}

// textOf returns a value of decoded JSON as JSON.
func textOf(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // such values always have a JSON form
		panic(err)
	}
	return text
}
