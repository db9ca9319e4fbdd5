package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ServerError is an error as reported by a server.
type ServerError struct {
	Code, Kind, Message string
	Field               string        // of the request, that the server refused
	RequestID           string        // the server's
	Status              int           // the HTTP status in its body; 0: none
	After               time.Duration // the time to wait in its body; 0: none
}

// errorDepthMax bounds the objects within an error.
const errorDepthMax = 6

// ParseServerError reads an error body in any form: JSON, whose message may
// stand in another object, in a list or in a text of JSON, or text, or HTML. If
// no member is known, the message is the beginning of the body.
func ParseServerError(body []byte) ServerError {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	var s ServerError
	var value any
	if json.Unmarshal(body, &value) != nil {
		s.Message = words(body)
		return s
	}
	s.read(value, 0)
	if s.Message == "" && len(body) > len("null") {
		s.Message = string(body)
	}
	if m := waits.FindStringSubmatch(strings.ToLower(s.Message)); m != nil && s.After == 0 {
		unit := "s"
		if strings.ContainsAny(m[1], "hms") {
			unit = ""
		}
		s.wait(strings.TrimRight(m[1], ".") + unit)
	}
	return s
}

// waits matches the time to wait in a message: `try again in 1.5s`, `retry after
// 20 seconds`.
var waits = regexp.MustCompile(`(?:again in|retry after|retry in) ([0-9][0-9.hms]*)`)

// messages are the members with the text of an error, the most telling first.
var messages = []string{"message", "msg", "detail", "error_description", "error_message", "errorMessage", "error_msg", "status_msg", "errors", "description", "title"}

// read adds a value of an error's JSON. What is known already stays.
func (s *ServerError) read(value any, depth int) {
	if depth > errorDepthMax {
		return
	}
	switch v := value.(type) {
	case string:
		var inner any
		if text := strings.TrimSpace(v); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &inner) == nil {
			s.read(inner, depth+1)
		} else if s.Message == "" {
			s.Message = text
		}
	case []any:
		if len(v) > 0 {
			s.read(v[0], depth+1)
		}
	case map[string]any:
		s.object(v, depth)
	}
}

func (s *ServerError) object(v map[string]any, depth int) {
	name, isText := v["error"].(string)
	if _, said := v["message"].(string); isText && said { // the error's kind, beside its message
		set(&s.Kind, name)
	} else {
		s.read(v["error"], depth+1)
	}
	for _, member := range []string{"base_resp", "innererror"} { // MiniMax, Azure
		if inner, ok := v[member].(map[string]any); ok {
			s.read(inner, depth+1)
		}
	}
	switch code := v["code"].(type) {
	case string:
		set(&s.Code, code)
		if n, err := strconv.Atoi(code); err == nil {
			s.status(float64(n))
		}
	case float64:
		s.status(code)
		set(&s.Code, strconv.FormatFloat(code, 'f', -1, 64))
	}
	for _, member := range []string{"status", "status_code"} {
		if n, ok := v[member].(float64); ok && s.Status == 0 {
			s.status(n)
		}
	}
	text(v, &s.Kind, "type", "status")
	text(v, &s.Field, "param", "field")
	text(v, &s.RequestID, "request_id", "requestId")
	if loc, ok := v["loc"].([]any); ok {
		path := make([]string, len(loc))
		for i, step := range loc {
			path[i] = fmt.Sprint(step)
		}
		set(&s.Field, strings.Join(path, "."))
	}
	for _, member := range messages {
		if s.Message == "" && v[member] != nil {
			s.read(v[member], depth+1)
		}
	}
	if meta, ok := v["metadata"].(map[string]any); ok { // OpenRouter
		var raw ServerError
		raw.read(meta["raw"], depth+1)
		if raw.Message != "" && !strings.Contains(s.Message, raw.Message) {
			s.Message = strings.TrimPrefix(s.Message+": "+raw.Message, ": ")
		}
		set(&s.Code, raw.Code)
	}
	if details, ok := v["details"].([]any); ok {
		s.details(details)
	}
}

// details adds the details that Google sends with its message.
func (s *ServerError) details(details []any) {
	for i := range details {
		d, _ := details[i].(map[string]any)
		if reason, ok := d["reason"].(string); ok {
			s.Code = reason
		}
		if delay, ok := d["retryDelay"].(string); ok {
			s.wait(delay)
		}
		violations, _ := d["fieldViolations"].([]any)
		for _, violation := range violations {
			if v, ok := violation.(map[string]any); ok {
				text(v, &s.Field, "field")
			}
		}
	}
}

func (s *ServerError) wait(text string) {
	if after, err := time.ParseDuration(text); err == nil && after > 0 {
		s.After = min(after, 24*time.Hour)
	}
}

func (s *ServerError) status(n float64) {
	if n >= http.StatusBadRequest && n < 600 {
		s.Status = int(n)
	}
}

// text sets a text that is empty to that of the first of these members that has one.
func text(v map[string]any, to *string, members ...string) {
	for _, member := range members {
		if value, ok := v[member].(string); ok {
			set(to, value)
		}
	}
}

func set(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

// words returns a text on one line, or the title of an HTML page.
func words(text []byte) string {
	if m := title.FindSubmatch(text); m != nil {
		text = m[1]
	} else if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		text = tag.ReplaceAll(text, []byte(" "))
	}
	return strings.ToValidUTF8(string(bytes.Join(bytes.Fields(text), []byte(" "))), "\uFFFD")
}

var (
	title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	tag   = regexp.MustCompile(`(?is)<(script|style).*?</(script|style)>|<[^>]*>`)
)
