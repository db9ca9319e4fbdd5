package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
)

// events reads the body of an answer as JSON events, in whatever form a server
// sends them: as server-sent events with any line ends, comments, keep-alives
// and no last empty line, or as JSON, one value or several. As an io.Reader it
// writes them in the one form that all libraries read: a line `data: ` for each
// event, before it a line `event: ` if the event has a type, and an empty line.
type events struct {
	body *watched
	in   *bufio.Reader
	json *json.Decoder // of an answer that is JSON; nil: lines
	open bool          // the form is known
	cr   bool          // the latest line ended with a carriage return
	line []byte        // buffer of nextLine

	media string   // the media type that the server declared
	queue [][]byte // read, and not returned
	held  []byte   // an event that ends within a character
	some  bool     // an event was read
	err   error    // after the queue

	out []byte // for Read
}

// reported is an error that a server sent within an answer.
type reported struct{ ServerError }

func (r *reported) Error() string { return "the server reported an error" }

// errEmpty means that a response has no content.
var errEmpty = errors.New("the answer is empty")

// doneMarker ends a stream of chat completions.
const doneMarker = "[DONE]"

// IsDone reports whether an event is the mark that ends a stream of chat
// completions.
func IsDone(data []byte) bool { return bytes.HasPrefix(data, []byte(doneMarker)) }

// Events returns the events of a response of the endpoint's client. Each is a
// JSON object, or the mark of IsDone. The last pair has an error, unless the
// body ended without one. The data is valid until the next pair.
func Events(response *http.Response) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		e, ok := response.Body.(*events)
		if !ok { // a library wrapped it: its bytes are events again
			e = &events{body: &watched{}, in: bufio.NewReader(response.Body)}
		}
		for {
			data, err := e.next()
			if errors.Is(err, io.EOF) || !yield(data, err) || err != nil {
				return
			}
		}
	}
}

// Read reads the events in the form of all libraries.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		data, err := e.next()
		if err != nil {
			return 0, err
		}
		if IsDone(data) { // only chat completions have it, and use Events
			continue
		}
		var kind struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &kind) == nil && kind.Type != "" && !strings.ContainsAny(kind.Type, "\r\n") {
			e.out = fmt.Appendf(e.out, "event: %s\n", kind.Type)
		}
		e.out = fmt.Appendf(e.out, "data: %s\n\n", oneLine(data))
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

func (e *events) Close() error { return e.body.Close() }

// oneLine returns JSON without line ends, which are space there.
func oneLine(data []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
}

// next returns the next event, or the error that ends them.
func (e *events) next() ([]byte, error) {
	for len(e.queue) == 0 {
		if e.err != nil {
			return nil, e.err
		}
		if err := e.fill(); err != nil {
			if e.held != nil {
				e.queue, e.held = append(e.queue, e.held), nil
			}
			if e.err = err; errors.Is(err, io.EOF) && !e.some {
				e.err = errEmpty
			}
		}
	}
	data := e.queue[0]
	e.queue = e.queue[1:]
	return data, nil
}

// fill reads until the queue may have an event.
func (e *events) fill() error {
	if !e.open {
		e.open = true
		if err := e.detect(); err != nil {
			return err
		}
	}
	if e.json == nil {
		return e.readEvent()
	}
	var value json.RawMessage
	if err := e.json.Decode(&value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return ErrBroken
		}
		return err
	}
	e.body.event = 0
	return e.take("", value)
}

// detect finds out the form of the body from its beginning, since media types
// are often wrong.
func (e *events) detect() error {
	if mark, err := e.in.Peek(1); err == nil && mark[0] == 0xEF {
		if mark, err = e.in.Peek(3); err == nil && string(mark) == "\xEF\xBB\xBF" {
			_, _ = e.in.Discard(3)
		}
	}
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return err
		}
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		_ = e.in.UnreadByte() // a byte was read
		switch {
		case c == '{' || c == '[':
			e.json = json.NewDecoder(e.in)
		case strings.IndexByte("deir:", c) < 0: // data, event, id, retry, a comment
			return e.unexpected()
		}
		return nil
	}
}

// unexpected returns the error for a body that is neither events nor JSON. One
// that claims to be is broken.
func (e *events) unexpected() error {
	if e.media == mediaStream || e.media == mediaJSON {
		return ErrBroken
	}
	text, _ := io.ReadAll(io.LimitReader(e.in, faultBytesMax))
	return &unexpectedType{media: e.media, text: words(text)}
}

// readEvent reads lines up to the end of an event.
func (e *events) readEvent() error {
	name, data, lines := "", []byte(nil), 0
	for {
		line, err := e.nextLine()
		if err != nil && len(line) == 0 {
			if lines > 0 && errors.Is(err, io.EOF) { // no empty line at the end
				if bad := e.take(name, data); bad != nil {
					return bad
				}
			}
			return err
		}
		if len(line) == 0 {
			e.body.event = 0
			return e.take(name, data)
		}
		field, value, colon := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			e.body.event = 0 // a comment
		case "event":
			name = string(value)
		case "data":
			if lines++; lines > 1 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "id", "retry":
		default:
			if !e.some && !colon && lines == 0 {
				e.in = bufio.NewReader(io.MultiReader(bytes.NewReader(append(slices.Clone(line), '\n')), e.in))
				return e.unexpected()
			}
		}
	}
}

// nextLine returns a line without its end, which is a line feed, a carriage
// return or both. It is valid until the next call.
func (e *events) nextLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.in.ReadByte()
		switch {
		case err != nil:
			return e.line, err
		case c == '\n' && e.cr && len(e.line) == 0:
			e.cr = false
			continue
		case c == '\n', c == '\r':
			e.cr = c == '\r'
			return e.line, nil
		}
		e.cr = false
		e.line = append(e.line, c)
	}
}

// take adds an event to the queue, unless it only keeps the connection alive.
// The error is one that the server reports in it.
func (e *events) take(name string, data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case IsDone(data):
		e.some = true
		e.push(data)
		return nil
	case name == "error" && len(data) > 0:
		return &reported{ParseServerError(data)}
	case len(data) == 0 || data[0] != '{' && data[0] != '[':
		return nil // empty, or a word such as ping
	case data[0] == '[': // Gemini's API without alt=sse
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil {
			return ErrBroken
		}
		for _, value := range list {
			if err := e.take(name, value); err != nil {
				return err
			}
		}
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil {
		if len(members) == 0 || isKeepAlive(members) {
			return nil
		}
		if isError(members) {
			return &reported{ParseServerError(data)}
		}
	}
	e.some = true
	e.push(slices.Clone(data))
	return nil
}

// isKeepAlive reports whether an event says no more than that the server is alive.
func isKeepAlive(members map[string]json.RawMessage) bool {
	switch string(members["type"]) {
	case `"ping"`, `"keepalive"`, `"keep-alive"`, `"keep_alive"`, `"heartbeat"`:
		return true
	}
	return false
}

// isError reports whether an event is an error, in any server's form. Some send
// a member error without a value in every event.
func isError(members map[string]json.RawMessage) bool {
	switch string(members["error"]) {
	case "", "null", `""`, "{}", "false":
	default:
		return true
	}
	if string(members["object"]) == `"error"` || strings.HasSuffix(strings.ToLower(string(members["type"])), `error"`) {
		return true
	}
	for _, name := range []string{"type", "object", "choices", "candidates", "usageMetadata", "promptFeedback", "usage", "response", "id"} {
		if _, ok := members[name]; ok {
			return false
		}
	}
	for _, name := range []string{"message", "msg", "detail", "errors", "code", "status_code", "base_resp"} {
		if _, ok := members[name]; ok {
			return true
		}
	}
	return false
}

// push adds an event to the queue. A character that is split between two events
// moves into the second one.
func (e *events) push(data []byte) {
	if e.held != nil {
		before, after := joinSplit(e.held, data)
		e.queue, e.held, data = append(e.queue, before), nil, after
	}
	if endsSplit(data) {
		e.held = data
		return
	}
	e.queue = append(e.queue, data)
}
