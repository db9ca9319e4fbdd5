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

// Members of _meta that hold what a server wrote as it wrote it: the structured
// content of an answer, the schema of a tool that is listed. The SDK makes floats
// of the numbers in there, which have no 9007199254740993; what is in a text it
// leaves alone.
const (
	metaStructured = "refold/structured"
	metaSchema     = "refold/schema"
)

// structuredOf returns the structured content of an answer, with its numbers as
// the server wrote them; nil if there is none.
func structuredOf(r *sdk.CallToolResult) any {
	return kept(r.Meta, metaStructured, r.StructuredContent)
}

// schemaOf returns the schema of a tool's arguments, with its numbers as the
// server wrote them; nil if there is none.
func schemaOf(t *sdk.Tool) any { return kept(t.Meta, metaSchema, t.InputSchema) }

// kept returns the value that a member of _meta holds as it was written;
// without one, the SDK's.
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

// exact returns a message with its structured content in _meta as well, if it
// has some, and with the schema of each tool that it lists. All other messages
// are returned as they are.
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

// keepSchemas keeps the schemas of a list of tools, and reports whether there
// are any. What is no such list stays as it is.
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

// keep puts the text of a member into the object's _meta too, and reports
// whether there is such a member.
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
	if meta == nil { // it was null
		meta = map[string]json.RawMessage{}
	}
	var err error
	if meta[name], err = json.Marshal(string(value)); err == nil {
		object["_meta"], err = json.Marshal(meta)
	}
	return err == nil, err
}

// exactly has the messages of an HTTP answer keep what floats would change, and
// an answer that is no stream end with an error where it is too long.
func exactly(r *http.Response) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if kind == "text/event-stream" {
		r.Body = &body{of: r.Body, more: eventsOf(r.Body)}
	} else {
		r.Body = &body{of: r.Body, more: wholeOf(r.Body, kind == "application/json")}
	}
	r.ContentLength = -1
	r.Header.Del("Content-Length")
}

// body is an answer's body, or a program's output, as it is passed on.
type body struct {
	of   io.Closer
	more func() ([]byte, error) // the next part; with an error the last
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

// errTooLong says that an answer is longer than a message may be.
var errTooLong = fmt.Errorf("the answer has more than %d bytes", messageBytesMax)

// wholeOf returns the parts of a body that is one part. One that is too long
// ends with errTooLong.
func wholeOf(r io.Reader, isMessage bool) func() ([]byte, error) {
	return func() ([]byte, error) {
		text, err := io.ReadAll(io.LimitReader(r, messageBytesMax+1))
		switch {
		case err != nil:
			return text, err
		case len(text) > messageBytesMax:
			return nil, errTooLong
		case isMessage:
			text = exact(text)
		}
		return text, io.EOF
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
