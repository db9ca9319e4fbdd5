package endpoint

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
)

// ErrBroken means that an answer can't be read, or is malformed.
var ErrBroken = errors.New("the answer can't be read")

// Failed turns an error of the client, or a library's error that wraps one,
// into a Failure. An error without a known cause is an answer that broke off.
func (e *Endpoint) Failed(err error) *Failure {
	var response *refused
	var inAnswer *reported
	var other *unexpectedType
	var quiet *silent
	var end *truncated
	var where *url.Error // it repeats the URL
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &response):
		return e.classify(response.status, response.header, ParseServerError(response.body))
	case errors.As(err, &inAnswer):
		return e.FailureOf(inAnswer.ServerError)
	case errors.As(err, &other):
		return e.notAnAnswer(other)
	case errors.As(err, &quiet) && quiet.begun:
		return paid(Temporary(llm.CodeNetwork, "the answer of %s broke off: it was %s, more than the %s of --model-idle", e.host, quiet, quiet.limit))
	case errors.As(err, &quiet):
		return Temporary(llm.CodeNetwork, "%s sent nothing within the %s of --model-first-byte", e.host, quiet.limit)
	case errors.Is(err, errEmpty):
		return paid(Temporary(llm.CodeNetwork, "%s sent an empty answer", e.host))
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

// notAnAnswer returns the failure of a response that is neither events nor JSON.
func (e *Endpoint) notAnAnswer(r *unexpectedType) *Failure {
	what := llm.Excerpt(e.Clean(cmp.Or(r.media, "no media type")))
	if r.text != "" {
		what += " with " + llm.Excerpt(e.Clean(r.text))
	}
	return Final(llm.CodeBadRequest, "%s answered %s, no answer of a model: check the base URL", e.host, what)
}

// EndedBy returns the failure of an answer that its server ended with a word for
// a failure, whose code is code.
func (e *Endpoint) EndedBy(code, word string) *Failure {
	return paid(Temporary(code, "%s ended the answer with %s", e.host, llm.Excerpt(e.Clean(word))))
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

// refusesThoughts reports whether the server refuses earlier thoughts: they are
// bound to another conversation, or it can't read them. Anthropic names the
// setting that drops them, OpenAI has a code, and the others name the member.
func (s ServerError) refusesThoughts() bool {
	return s.is("invalid_encrypted_content", "thinking_signature_invalid") || s.has("block_binding", "bound to a different conversation",
		"`signature` in `thinking`", "thought signature", "thought_signature", "encrypted content", "encrypted_content",
		"reasoning_content", "reasoning_details") ||
		strings.HasSuffix(s.Field, ".reasoning_content") || strings.HasSuffix(s.Field, ".reasoning_details")
}

// requiresThoughts reports whether the server refuses turns of the model without a
// thought: DeepSeek ("must be passed back", "missing") and Kimi ("is missing"), in
// thinking mode.
func (s ServerError) requiresThoughts() bool {
	return s.has("reasoning_content") && s.has("passed back", "missing", "is required", "must be provided", "must include", "must contain")
}

// Refuses reports whether the server refused the request for one of its members.
func (f *Failure) Refuses(member string) bool {
	if f.refusal == nil {
		return false
	}
	path := strings.FieldsFunc(f.refusal.Field, func(r rune) bool { return strings.ContainsRune(".[]/ ", r) })
	if slices.Contains(path, member) {
		return true
	}
	named := regexp.MustCompile("['\"`]" + member + `\b`)
	if strings.Contains(member, "_") { // no word of a sentence
		named = regexp.MustCompile(`\b` + member + `\b`)
	}
	return named.MatchString(f.refusal.Message)
}

// classify returns the failure for a server's response.
func (e *Endpoint) classify(status int, header http.Header, s ServerError) *Failure {
	s.RequestID = cmp.Or(s.RequestID, requestID(header))
	f := e.failureOf(status, header, s)
	f.Files = s.refusesFiles()
	if f.after = retryAfter(header, sentAt(header)); f.after == 0 {
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

func (e *Endpoint) failureOf(status int, header http.Header, s ServerError) *Failure {
	final := func(code, advice string) *Failure { return Final(code, "%s", e.told(status, s, advice)) }
	temporary := func(code string) *Failure { return Temporary(code, "%s", e.told(status, s, "")) }
	switch {
	case s.filtered(status):
		return final(llm.CodeContentFilter, "")
	case status == http.StatusRequestEntityTooLarge, status != http.StatusTooManyRequests && status != http.StatusUnauthorized && s.tooLong():
		return final(llm.CodeContextLength, "")
	case status == http.StatusUnauthorized, status == http.StatusForbidden, s.is("API_KEY_INVALID"):
		return Final(llm.CodeAuth, "%s", e.unauthorized(status, s))
	case s.malformed():
		return paid(temporary(llm.CodeMalformedAnswer))
	case status == http.StatusPaymentRequired, s.is("insufficient_quota", "billing_hard_limit_reached"), s.has("credit balance is too low"):
		return final(llm.CodeRateLimited, "")
	case status == http.StatusTooManyRequests, s.is("rate_limit_exceeded", "rate_limit_error"):
		return temporary(llm.CodeRateLimited)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == statusClosedRequest:
		return temporary(llm.CodeOverloaded)
	case status == http.StatusNotFound:
		return final(llm.CodeBadRequest, "; check the base URL and the model's name")
	case status < http.StatusBadRequest:
		return final(llm.CodeBadRequest, ", a redirect to "+e.leadsTo(header)+", which is not followed: check the base URL")
	}
	f := final(llm.CodeBadRequest, "")
	if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		f.refusal = &s
		f.NoThoughts = s.requiresThoughts()
		f.Thoughts = !f.NoThoughts && s.refusesThoughts()
	}
	return f
}

// statusClosedRequest is the status with which proxies report that a connection
// was closed, by whichever side.
const statusClosedRequest = 499

// told returns the detail for a server's response: its message, the field that
// it refused, its id for the request, and advice. Only the message is cut.
func (e *Endpoint) told(status int, s ServerError, advice string) string {
	head := fmt.Sprintf("%s answered %d", e.host, status)
	var about []string
	if s.Field != "" && !strings.Contains(s.Message, s.Field) {
		about = append(about, "field "+llm.Clip(e.Clean(s.Field), fieldBytesMax))
	}
	if s.RequestID != "" {
		about = append(about, "request "+llm.Clip(e.Clean(s.RequestID), fieldBytesMax))
	}
	tail := advice
	if len(about) > 0 {
		tail = " (" + strings.Join(about, ", ") + ")" + advice
	}
	if s.Message != "" {
		head += ": "
		head += llm.Clip(e.Clean(s.Message), max(3, session.DetailBytesMax-len(head)-len(tail)))
	}
	return head + tail
}

// unauthorized returns the detail for a refusal of the key, or of what it may do.
// The server's message often quotes a part of the key.
func (e *Endpoint) unauthorized(status int, s ServerError) string {
	s.Message = masked.ReplaceAllString(e.Clean(s.Message), "[key]")
	advice := ""
	switch {
	case s.Message == "":
		advice = ": check the key, and that it may use this model"
	case s.has("api key", "api-key", "apikey", "x-api-key", "credential", "authentication token", "bearer"):
		advice = "; check the key"
		s.Message = strings.TrimRight(s.Message, ". ")
	}
	return e.told(status, s, advice)
}

// masked matches a key of which the server shows a part.
var masked = regexp.MustCompile(`[\w-]*\*{2,}[\w*-]*|[\w-]+(\.{3}|…)[\w-]+|sk-[\w-]*(\.{3}|…)`)

// filtered reports whether a server refused what the conversation says.
func (s ServerError) filtered(status int) bool {
	return s.is("content_filter", "content_policy_violation", "bio_policy", "image_content_policy_violation",
		"ResponsibleAIPolicyViolation", "data_inspection_failed", "DataInspectionFailed", "sensitive_words_detected", "1301") ||
		(status == http.StatusBadRequest || status == http.StatusForbidden) && s.has("content management policy", "content exists risk",
			"was flagged", "been flagged", "inappropriate content", "requires moderation")
}

// malformed reports whether the server could not read its model's own answer:
// Groq, Ollama and llama.cpp fail then, and another answer may be readable.
func (s ServerError) malformed() bool {
	return s.is("tool_use_failed", "output_parse_failed", "json_validate_failed") || s.has("failed to call a function",
		"tool call validation failed", "error parsing tool call", "failed to parse tool call", "failed to parse input at pos")
}

// requestID returns the id that a server gave a request, "" for none.
func requestID(header http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid", "X-Goog-Request-Id", "X-Trace-Id", "Cf-Ray"} {
		if id := header.Get(name); id != "" {
			return id
		}
	}
	return ""
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
// encoded, or a long part of it.
func (e *Endpoint) Clean(text string) string {
	if e.key != "" {
		text = e.redactor.Text(strings.ReplaceAll(text, e.key, "[key]"))
		text = keyWord.ReplaceAllStringFunc(text, func(word string) string {
			for i := 0; i+keyPartLength <= len(word); i++ {
				if strings.Contains(e.key, word[i:i+keyPartLength]) {
					return "[key]"
				}
			}
			return word
		})
	}
	return strings.Join(strings.Fields(text), " ")
}

// keyPartLength is the length from which a part of a key is not repeated.
const keyPartLength = 10

// keyWord matches a word that may have a part of a key.
var keyWord = regexp.MustCompile(`[\w-]{10,}`)
