package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Members of _meta with text as the server wrote it: the structured content of
// an answer, and the schema of a listed tool. The SDK turns their numbers into
// floats, which can't represent 9007199254740993. It does not change text.
const (
	metaStructured = "refold/structured"
	metaSchema     = "refold/schema"
)

// structuredOf returns the structured content of an answer with exact numbers,
// or nil.
func structuredOf(r *sdk.CallToolResult) any {
	return kept(r.Meta, metaStructured, r.StructuredContent)
}

// schemaOf returns the schema of a tool's arguments with exact numbers, or nil.
func schemaOf(t *sdk.Tool) any { return kept(t.Meta, metaSchema, t.InputSchema) }

// kept returns the value of a member of _meta, or otherwise if there is none.
func kept(meta sdk.Meta, name string, otherwise any) any {
	text, ok := meta[name].(string)
	if !ok {
		return otherwise
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return otherwise
	}
	return value
}

// legible is readable and exact for a message over HTTP. It does not drop any.
func legible(message []byte) []byte {
	if fixed := readable(message); fixed != nil {
		message = fixed
	}
	return exact(message)
}

// exact returns a message with a copy of its structured content, and of the
// schema of each listed tool, in _meta. Other messages are returned unchanged.
func exact(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) && !bytes.Contains(message, []byte(`"inputSchema"`)) {
		return message
	}
	var whole, result map[string]json.RawMessage
	if json.Unmarshal(message, &whole) != nil || json.Unmarshal(whole["result"], &result) != nil {
		return message
	}
	structured, err := keep(result, "structuredContent", metaStructured)
	if err != nil || !keepSchemas(result) && !structured {
		return message
	}
	if whole["result"], err = json.Marshal(result); err != nil {
		return message
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return message
	}
	return text
}

// keepSchemas copies the schemas of a list of tools, and reports whether there
// are any. It changes nothing else.
func keepSchemas(result map[string]json.RawMessage) bool {
	var tools []map[string]json.RawMessage
	if list, has := result["tools"]; !has || json.Unmarshal(list, &tools) != nil {
		return false
	}
	some := false
	for _, tool := range tools {
		one, err := keep(tool, "inputSchema", metaSchema)
		if err != nil {
			return false
		}
		some = some || one
	}
	list, err := json.Marshal(tools)
	if err != nil || !some {
		return false
	}
	result["tools"] = list
	return true
}

// keep copies the text of a member into the object's _meta, and reports whether
// there is such a member.
func keep(object map[string]json.RawMessage, member, name string) (bool, error) {
	value, has := object[member]
	if !has {
		return false, nil
	}
	meta := map[string]json.RawMessage{}
	if given, has := object["_meta"]; has {
		if err := json.Unmarshal(given, &meta); err != nil {
			return false, err
		}
	}
	if meta == nil { // null
		meta = map[string]json.RawMessage{}
	}
	var err error
	if meta[name], err = json.Marshal(string(value)); err == nil {
		object["_meta"], err = json.Marshal(meta)
	}
	return err == nil, err
}

// exactly wraps the body of an HTTP answer so that its messages keep exact
// numbers, and an answer that is not a stream fails if it is too long.
func exactly(r *http.Response) {
	if kind := typeOf(r); kind == eventsType {
		r.Body = &body{of: r.Body, more: eventsOf(r.Body)}
	} else {
		r.Body = &body{of: r.Body, more: wholeOf(r.Body, kind == jsonType)}
	}
	r.ContentLength = -1
	r.Header.Del("Content-Length")
}

// typeOf returns the media type of an HTTP answer.
func typeOf(r *http.Response) string {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// body is the body of an answer, or a program's output, read in parts.
type body struct {
	of   io.Closer
	more func() ([]byte, error) // the next part; the last one comes with an error
	rest []byte
	err  error
}

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

func (b *body) Close() error { return b.of.Close() }

// errTooLong means that an answer is longer than a message may be.
var errTooLong = fmt.Errorf("the answer has more than %d bytes", messageBytesMax)

// wholeOf returns the parts of a body that has only one. If it is too long, it
// fails with errTooLong.
func wholeOf(r io.Reader, isMessage bool) func() ([]byte, error) {
	return func() ([]byte, error) {
		text, err := io.ReadAll(io.LimitReader(r, messageBytesMax+1))
		switch {
		case err != nil:
			return text, err
		case len(text) > messageBytesMax:
			return nil, errTooLong
		case isMessage:
			text = legible(text)
		}
		return text, io.EOF
	}
}

// eventsOf returns the events of a body. It does not change events that are too
// long or break off.
func eventsOf(r io.Reader) func() ([]byte, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	return func() ([]byte, error) {
		var event []byte
		for {
			part, err := lines.ReadSlice('\n')
			if len(event) == 0 {
				part = bytes.TrimPrefix(part, byteOrderMark)
			}
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

// exactEvent is exact for the data of an event, which may have several lines.
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
	messages := messagesOf(data)
	if len(messages) == 1 {
		if message := legible(data); bytes.Equal(message, data) {
			return event
		}
	}
	var all []byte
	for _, message := range messages {
		all = slices.Concat(all, []byte("data: "), oneLine(legible(message)), []byte("\n"), fields) // fields ends with the empty line
	}
	return all
}
