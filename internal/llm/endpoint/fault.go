package endpoint

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
)

// ServerError is an error as reported by a server.
type ServerError struct {
	Code, Kind, Message string
	Status              int           // the HTTP status in its body; 0: none
	After               time.Duration // the time to wait in its body; 0: none
}

// ErrBroken means that an answer can't be read, or is malformed.
var ErrBroken = errors.New("the answer can't be read")

// Failed turns an error of the client, or a library's error that wraps one,
// into a Failure. An error without a known cause is an answer that broke off.
func (e *Endpoint) Failed(err error) *Failure {
	var response *refused
	var other *unexpectedType
	var end *truncated
	var where *url.Error // it repeats the URL
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &response):
		return e.classify(response.status, response.header, ParseServerError(response.body))
	case errors.As(err, &other):
		return Final(llm.CodeBadRequest, "%s answered %s, no answer of a model: check the base URL", e.host, llm.Excerpt(e.Clean(other.media)))
	case errors.Is(err, errSilent):
		return paid(Temporary(llm.CodeNetwork, "the answer of %s broke off: it was %s", e.host, errSilent))
	case errors.As(err, &end):
		return paid(Temporary(llm.CodeNetwork, "no answer from %s: %s", e.host, e.Clean(end.Error())))
	case errors.As(err, &certificate):
		return Final(llm.CodeNetwork, "%s has no certificate that this machine trusts: %v", e.host, certificate.Err)
	case errors.As(err, &where):
		return Temporary(llm.CodeNetwork, "no answer from %s: %s", e.host, e.Clean(where.Err.Error()))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return e.BrokeOff()
	}
	return paid(Temporary(llm.CodeNetwork, "the answer of %s can't be read", e.host))
}

// BrokeOff returns the failure of an answer without an end.
func (e *Endpoint) BrokeOff() *Failure {
	return paid(Temporary(llm.CodeNetwork, "the answer of %s broke off", e.host))
}

// TooMuch returns the failure of an answer that exceeds the limits, or nil.
// bytes counts text, thoughts and arguments.
func (e *Endpoint) TooMuch(bytes, calls int) *Failure {
	if bytes <= answerBytesMax && calls <= session.CallsSeenMax {
		return nil
	}
	return Final(llm.CodeBadRequest, "%s answered more than %d bytes or %d calls: limit the answer in params",
		e.host, answerBytesMax, session.CallsSeenMax)
}

func paid(f *Failure) *Failure {
	f.Paid = true
	return f
}

// ParseServerError reads the error bodies of servers: {"error": {"code",
// "type", "message"}}, the same without error around it or in a list, or a text
// as error; Google's has status instead of type, and details.
func ParseServerError(body []byte) ServerError {
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
		return ServerError{Message: text}
	}
	var inner struct {
		Code    any              `json:"code"` // a text, a number or null
		Type    string           `json:"type"`
		Status  any              `json:"status"`
		Message string           `json:"message"`
		Details []map[string]any `json:"details"`
	}
	if json.Unmarshal(body, &inner) != nil {
		return ServerError{}
	}
	s := ServerError{Kind: inner.Type, Message: inner.Message}
	s.Code, _ = inner.Code.(string)
	if n, ok := inner.Code.(float64); ok && n >= http.StatusBadRequest && n < 600 {
		s.Status = int(n)
	}
	if status, ok := inner.Status.(string); ok && s.Kind == "" {
		s.Kind = status
	}
	return s.WithDetails(inner.Details)
}

// WithDetails adds the details that Google sends with its message.
func (s ServerError) WithDetails(details []map[string]any) ServerError {
	for _, d := range details {
		if reason, ok := d["reason"].(string); ok && s.Code == "" {
			s.Code = reason
		}
		if delay, ok := d["retryDelay"].(string); ok {
			if after, err := time.ParseDuration(delay); err == nil && after > 0 {
				s.After = min(after, 24*time.Hour)
			}
		}
	}
	return s
}

// kinds are HTTP statuses for kinds of errors in responses with status 200.
var kinds = map[string]int{
	"authentication_error": http.StatusUnauthorized, "permission_error": http.StatusForbidden,
	"invalid_request_error": http.StatusBadRequest, "invalid_prompt": http.StatusBadRequest, "not_found_error": http.StatusNotFound,
	"request_too_large": http.StatusRequestEntityTooLarge, "billing_error": http.StatusPaymentRequired,
	"rate_limit_error": http.StatusTooManyRequests, "rate_limit_exceeded": http.StatusTooManyRequests,
	"timeout_error": http.StatusRequestTimeout, "overloaded_error": 529, "RESOURCE_EXHAUSTED": http.StatusTooManyRequests,
	"INVALID_ARGUMENT": http.StatusBadRequest, "UNAUTHENTICATED": http.StatusUnauthorized, "PERMISSION_DENIED": http.StatusForbidden,
	"UNAVAILABLE": http.StatusServiceUnavailable,
}

// FailureOf classifies an error in a response with status 200.
func (e *Endpoint) FailureOf(s ServerError) *Failure {
	status := s.Status
	for _, name := range []string{s.Kind, s.Code} {
		status = cmp.Or(status, kinds[name])
	}
	status = cmp.Or(status, http.StatusInternalServerError)
	return e.classify(status, nil, s)
}

func (s ServerError) is(names ...string) bool {
	return slices.Contains(names, s.Code) || slices.Contains(names, s.Kind)
}

// has reports whether the server's message contains one of words.
func (s ServerError) has(words ...string) bool {
	message := strings.ToLower(s.Message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
}

// tooLong reports whether the server's error means that the conversation is too
// long. Few servers have a code for it.
func (s ServerError) tooLong() bool {
	return s.is("context_length_exceeded", "string_above_max_length") || s.has("context length", "context window",
		"prompt is too long", "too many tokens", "context size", "input token count", "exceed context limit")
}

// refusesThoughts reports whether the server refuses earlier thoughts: they are
// bound to another conversation, or it can't read them. Anthropic names the
// setting that drops them, OpenAI has a code, and the others name the member.
func (s ServerError) refusesThoughts() bool {
	return s.is("invalid_encrypted_content", "thinking_signature_invalid") || s.has("block_binding", "bound to a different conversation",
		"`signature` in `thinking`", "thought signature", "thought_signature", "encrypted content", "encrypted_content",
		"reasoning_content", "reasoning_details")
}

// classify returns the failure for a server's response.
func (e *Endpoint) classify(status int, header http.Header, s ServerError) *Failure {
	answered := fmt.Sprintf("%s answered %d", e.host, status)
	if s.Message != "" {
		answered += ": " + e.Clean(s.Message)
	}
	var f *Failure
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, s.is("API_KEY_INVALID"):
		// The server's message often quotes a part of the key.
		return Final(llm.CodeAuth, "%s answered %d: check the key, and that it may use this model", e.host, status)
	case s.is("content_filter", "content_policy_violation", "bio_policy", "image_content_policy_violation"):
		return Final(llm.CodeContentFilter, "%s", answered)
	case status == http.StatusRequestEntityTooLarge, status != http.StatusTooManyRequests && s.tooLong():
		return Final(llm.CodeContextLength, "%s", answered)
	case status == http.StatusPaymentRequired, s.is("insufficient_quota", "billing_hard_limit_reached"), s.has("credit balance is too low"):
		return Final(llm.CodeRateLimited, "%s", answered)
	case status == http.StatusTooManyRequests, s.is("rate_limit_exceeded", "rate_limit_error"):
		f = Temporary(llm.CodeRateLimited, "%s", answered)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict:
		f = Temporary(llm.CodeOverloaded, "%s", answered)
	case status == http.StatusNotFound:
		f = Final(llm.CodeBadRequest, "%s; check the base URL and the model's name", answered)
	case status < http.StatusBadRequest:
		f = Final(llm.CodeBadRequest, "%s, a redirect to %s, which is not followed: check the base URL", answered, e.leadsTo(header))
	default:
		f = Final(llm.CodeBadRequest, "%s", answered)
		f.Thoughts = status == http.StatusBadRequest && s.refusesThoughts()
	}
	if f.after = retryAfter(header, time.Now()); f.after == 0 {
		f.after = s.After
	}
	switch header.Get("X-Should-Retry") {
	case "true":
		f.Err.Retryable = true
	case "false":
		f.Err.Retryable = false
	}
	return f
}

// leadsTo returns the origin to which a response redirects.
func (e *Endpoint) leadsTo(header http.Header) string {
	base, err := url.Parse(e.base)
	if err == nil {
		base, err = base.Parse(header.Get("Location"))
	}
	if err != nil {
		return "no address"
	}
	return llm.Clip(e.Clean(base.Scheme+"://"+base.Host), originBytesMax)
}

// Clean returns a server's message on one line and without the key, which may be
// encoded.
func (e *Endpoint) Clean(text string) string {
	if e.key != "" {
		text = e.redactor.Text(strings.ReplaceAll(text, e.key, "[key]"))
	}
	return strings.Join(strings.Fields(text), " ")
}
