package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	jsonType   = "application/json"
	eventsType = "text/event-stream"
)

// makeReadable makes the answer to a request over HTTP one that the SDK can decode. An
// answer that is no message, or that breaks off, becomes an error of this request:
// the SDK would end the session, and the calls of all others in it. Several messages
// in one answer become events. What is no request of ours, a stream of events, and a
// refusal, which the SDK reads by its status, are only made exact.
func makeReadable(r *http.Request, response *http.Response, progress *callProgress) {
	kind, id := typeOf(response), idOf(r)
	if id == nil || kind == eventsType || response.StatusCode/100 != 2 {
		exactly(response)
		return
	}
	text := bufio.NewReader(response.Body)
	a := &answer{id: id, kind: kind, status: response.StatusCode, progress: progress}
	response.Header.Set("Content-Type", jsonType)
	if begins(text) == '[' {
		a.events = true
		response.Header.Set("Content-Type", eventsType)
	}
	response.Body = &body{of: response.Body, more: func() ([]byte, error) { return a.read(text), io.EOF }}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
}

// idOf returns the id of the request that an HTTP request has, nil if there is none.
func idOf(r *http.Request) json.RawMessage {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return nil
	}
	sent, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer sent.Close()
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.NewDecoder(sent).Decode(&request) != nil || request.Method == "" {
		return nil
	}
	return request.ID
}

// begins returns the first byte of a text after space, 0 if there is none.
func begins(text *bufio.Reader) byte {
	for n := 1; ; n++ {
		start, err := text.Peek(n)
		if err != nil {
			return 0
		}
		if rest := bytes.TrimLeft(bytes.TrimPrefix(start, byteOrderMark), " \t\r\n"); len(rest) > 0 && rest[0] < 0x80 {
			return rest[0]
		}
	}
}

// answer is the answer to one request over HTTP.
type answer struct {
	id       json.RawMessage
	kind     string // its media type
	status   int
	events   bool // its messages are written as events
	progress *callProgress
}

// read returns the answer's messages, or an error in their place.
func (a *answer) read(from io.Reader) []byte {
	text, err := io.ReadAll(io.LimitReader(from, messageBytesMax+1))
	switch {
	case err != nil:
		return a.unread("the answer broke off: " + err.Error())
	case len(text) > messageBytesMax:
		return a.unread(errTooLong.Error())
	}
	messages := messagesOf(text)
	at := a.among(messages)
	if at < 0 {
		what := fmt.Sprintf("the server answered %d %s", a.status, a.kind)
		if a.progress != nil { // what it said is whole here: it is redacted, and then cut
			what += ", " + strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "\uFFFD")), " ")
		}
		return a.unread(what + ", which is no message")
	}
	var all []byte
	for i, message := range messages {
		if i == at { // whatever its id is: it came as the answer to this request
			message = withID(message, a.id)
		}
		if message = legible(message); isMessage(message) && (i == at || a.events) {
			all = append(all, a.shaped(message)...)
		}
	}
	return all
}

// among returns which of the messages is the answer: the one with the request's id,
// else the first one; -1 if none is.
func (a *answer) among(messages [][]byte) int {
	first := -1
	for i, message := range messages {
		var has map[string]json.RawMessage
		if json.Unmarshal(message, &has) != nil || has["method"] != nil || has["result"] == nil && has["error"] == nil {
			continue
		}
		if id, ok := numberOf(has["id"]); ok && bytes.Equal(id, a.id) {
			return i
		}
		if first < 0 && isMessage(legible(withID(message, a.id))) {
			first = i
		}
	}
	return first
}

func withID(message []byte, id json.RawMessage) []byte {
	var has map[string]json.RawMessage
	if json.Unmarshal(message, &has) != nil || bytes.Equal(has["id"], id) {
		return message
	}
	has["id"] = id
	return textOf(has)
}

// unread returns an error in the place of the answer.
func (a *answer) unread(why string) []byte {
	a.progress.setUnread()
	return a.shaped(textOf(map[string]any{"jsonrpc": "2.0", "id": a.id, "error": map[string]any{"code": jsonrpc.CodeInternalError, "message": why}}))
}

// shaped returns a message as the answer's type has it.
func (a *answer) shaped(message []byte) []byte {
	if !a.events {
		return message
	}
	return slices.Concat([]byte("data: "), oneLine(message), []byte("\n\n"))
}

// isMessage reports whether the SDK can decode a message.
func isMessage(text []byte) bool {
	_, err := jsonrpc.DecodeMessage(text)
	return err == nil
}

// oneLine returns JSON without line breaks.
func oneLine(text []byte) []byte {
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		return text
	}
	return line.Bytes()
}

// messagesOf returns the messages of a text. The protocol 2025-03-26 allowed several,
// in an array.
func messagesOf(text []byte) [][]byte {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, byteOrderMark))
	var batch []json.RawMessage
	if len(text) == 0 || text[0] != '[' || json.Unmarshal(text, &batch) != nil {
		return [][]byte{text}
	}
	all := make([][]byte, 0, len(batch))
	for _, message := range batch {
		all = append(all, message)
	}
	return all
}
