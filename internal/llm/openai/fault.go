package openai

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/llm"
)

// failure is a try that brought no answer.
type failure struct {
	err   *bridge.Error
	after time.Duration // what the server asks to wait; 0: it doesn't say
}

// final returns a failure that another try would only repeat.
func final(code, format string, args ...any) *failure {
	return &failure{err: llm.Fail(code, format, args...)}
}

// passing returns a failure that another try may not have.
func passing(code, format string, args ...any) *failure {
	f := final(code, format, args...)
	f.err.Retryable = true
	return f
}

// refused is a response with an HTTP status that says that it is no answer.
type refused struct {
	status int
	header http.Header
	body   []byte // the beginning
}

func (r *refused) Error() string { return fmt.Sprintf("HTTP status %d", r.status) }

// refuse makes an error of such a response, before the library does: its own
// is lost if the body is not the JSON that it expects.
func refuse(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(req)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	// What can't be read only makes the detail shorter.
	body, _ := io.ReadAll(io.LimitReader(response.Body, faultBytesMax))
	return nil, &refused{status: response.StatusCode, header: response.Header, body: body}
}

// failed makes a failure of an error.
func (m *Model) failed(err error) *failure {
	var response *refused
	if errors.As(err, &response) {
		return m.classify(response.status, response.header, parseFault(response.body))
	}
	var inStream *ssestream.StreamError
	if errors.As(err, &inStream) {
		return m.told(parseFault(inStream.Event.Data))
	}
	var syntax *json.SyntaxError
	if errors.Is(err, errBroken) || errors.As(err, &syntax) {
		return passing(llm.CodeNetwork, "the answer of %s can't be read", m.host)
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return final(llm.CodeNetwork, "%s has no certificate that this machine trusts: %v", m.host, certificate.Err)
	}
	var where *url.Error // it repeats the URL
	if errors.As(err, &where) {
		err = where.Err
	}
	return passing(llm.CodeNetwork, "no answer from %s: %s", m.host, m.clean(err.Error()))
}

// said is what a server says is wrong.
type said struct {
	code, kind, message string
	status              int // some servers have an HTTP status for a code
}

// parseFault reads what servers send: {"error": {"code", "type", "message"}},
// the same without error around it or in a list, or with a text as error.
func parseFault(body []byte) said {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) == nil && len(outer.Error) > 0 {
		body = outer.Error
	}
	var text string
	if json.Unmarshal(body, &text) == nil {
		return said{message: text}
	}
	var inner struct {
		Code    any    `json:"code"` // a text, a number or null
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &inner) != nil {
		return said{}
	}
	s := said{kind: inner.Type, message: inner.Message}
	s.code, _ = inner.Code.(string)
	if n, ok := inner.Code.(float64); ok && n >= http.StatusBadRequest && n < 600 {
		s.status = int(n)
	}
	return s
}

// told makes a failure of what a server says in an answer that began well.
func (m *Model) told(s said) *failure {
	if s.status == 0 {
		s.status = http.StatusInternalServerError
	}
	return m.classify(s.status, nil, s)
}

// is reports whether code or type is one of these.
func (s said) is(names ...string) bool {
	for _, name := range names {
		if s.code == name || s.kind == name {
			return true
		}
	}
	return false
}

// tooLong reports whether the server says that the conversation is too long.
// Few servers have a code for it.
func (s said) tooLong() bool {
	if s.is("context_length_exceeded", "string_above_max_length") {
		return true
	}
	message := strings.ToLower(s.message)
	for _, words := range []string{"context length", "context window", "prompt is too long", "too many tokens", "context size"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// classify makes a failure of what a server answered.
func (m *Model) classify(status int, header http.Header, s said) *failure {
	answered := fmt.Sprintf("%s answered %d", m.host, status)
	if s.message != "" {
		answered += ": " + m.clean(s.message)
	}
	var f *failure
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		// What the server says here often quotes a part of the key.
		return final(llm.CodeAuth, "%s answered %d: check the key, and that it may use this model", m.host, status)
	case s.is("content_filter", "content_policy_violation"):
		return final(llm.CodeContentFilter, "%s", answered)
	case status == http.StatusRequestEntityTooLarge, status != http.StatusTooManyRequests && s.tooLong():
		return final(llm.CodeContextLength, "%s", answered)
	case status == http.StatusPaymentRequired, s.is("insufficient_quota", "billing_hard_limit_reached"):
		return final(llm.CodeRateLimited, "%s", answered)
	case status == http.StatusTooManyRequests, s.is("rate_limit_exceeded", "rate_limit_error"):
		f = passing(llm.CodeRateLimited, "%s", answered)
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		f = final(llm.CodeBadRequest, "%s", answered)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict:
		f = passing(llm.CodeOverloaded, "%s", answered)
	case status == http.StatusNotFound:
		f = final(llm.CodeBadRequest, "%s; check the base URL and the model's name", answered)
	default:
		f = final(llm.CodeBadRequest, "%s", answered)
	}
	f.after = retryAfter(header, time.Now())
	switch header.Get("X-Should-Retry") {
	case "true":
		f.err.Retryable = true
	case "false":
		f.err.Retryable = false
	}
	return f
}

// clean returns a server's words on one line and without the key.
func (m *Model) clean(text string) string {
	if m.key != "" {
		text = strings.ReplaceAll(text, m.key, "[key]")
	}
	return strings.Join(strings.Fields(text), " ")
}
