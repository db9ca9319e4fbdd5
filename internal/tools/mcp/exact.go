package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// metaStructured is the member of an answer's _meta that holds its structured
// content as the server wrote it. The SDK makes floats of the numbers in there,
// which have no 9007199254740993; what is in a text it leaves alone.
const metaStructured = "refold/structured"

// structuredOf returns the structured content of an answer, with its numbers as
// the server wrote them; nil if there is none.
func structuredOf(r *sdk.CallToolResult) any {
	text, ok := r.Meta[metaStructured].(string)
	if !ok {
		return r.StructuredContent
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var structured any
	if d.Decode(&structured) != nil {
		return r.StructuredContent
	}
	return structured
}

// exact returns a message with its structured content in _meta as well, if it
// has some. All other messages are returned as they are.
func exact(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) {
		return message
	}
	var whole, result, meta map[string]json.RawMessage
	if json.Unmarshal(message, &whole) != nil || json.Unmarshal(whole["result"], &result) != nil {
		return message
	}
	structured, has := result["structuredContent"]
	if !has {
		return message
	}
	if given, has := result["_meta"]; has && json.Unmarshal(given, &meta) != nil {
		return message
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	set := func(in map[string]json.RawMessage, name string, value any) {
		if err == nil {
			in[name], err = json.Marshal(value)
		}
	}
	set(meta, metaStructured, string(structured))
	set(result, "_meta", meta)
	set(whole, "result", result)
	text, failed := json.Marshal(whole)
	if err != nil || failed != nil {
		return message
	}
	return text
}

// exactly has the messages of an HTTP answer keep their structured content.
func exactly(r *http.Response) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json":
		r.Body = &body{of: r.Body, more: wholeOf(r.Body)}
	case "text/event-stream":
		r.Body = &body{of: r.Body, more: eventsOf(r.Body)}
	default:
		return
	}
	r.ContentLength = -1
	r.Header.Del("Content-Length")
}

// body is what comes of an answer's body.
type body struct {
	of   io.ReadCloser
	more func() ([]byte, error) // the next part; with an error the last
	rest []byte
	err  error
}

// Read reads of the next part.
func (b *body) Read(to []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.rest, b.err = b.more()
	}
	n := copy(to, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close closes the body.
func (b *body) Close() error { return b.of.Close() }

// wholeOf returns the parts of a body that is one message. One that is too long
// is left to who reads it.
func wholeOf(r io.Reader) func() ([]byte, error) {
	more := func() ([]byte, error) {
		part := make([]byte, 32<<10)
		n, err := r.Read(part)
		return part[:n], err
	}
	first := true
	return func() ([]byte, error) {
		if !first {
			return more()
		}
		first = false
		text, err := io.ReadAll(io.LimitReader(r, messageBytesMax))
		if err == nil && len(text) < messageBytesMax {
			return exact(text), io.EOF
		}
		return text, err
	}
}

// eventsOf returns the events of a body. What is too long is left as it is, and
// so is what breaks off.
func eventsOf(r io.Reader) func() ([]byte, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	return func() ([]byte, error) {
		var event []byte
		for {
			part, err := lines.ReadSlice('\n')
			event = append(event, part...)
			switch {
			case err != nil && !errors.Is(err, bufio.ErrBufferFull):
				return event, err
			case len(event) > messageBytesMax:
				return event, nil
			case bytes.HasSuffix(event, []byte("\n\n")), bytes.HasSuffix(event, []byte("\n\r\n")):
				return exactEvent(event), nil
			}
		}
	}
}

// exactEvent is exact for the data of an event, which may stand in several lines.
func exactEvent(event []byte) []byte {
	var fields, data []byte
	for line := range bytes.Lines(event) {
		text, is := bytes.CutPrefix(line, []byte("data:"))
		if !is {
			fields = append(fields, line...)
			continue
		}
		data = append(data, bytes.TrimPrefix(text, []byte(" "))...)
	}
	message := exact(data)
	if bytes.Equal(message, data) {
		return event
	}
	return slices.Concat([]byte("data: "), message, []byte("\n"), fields) // the empty line is the last of fields
}
