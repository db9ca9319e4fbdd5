package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/natsio"
)

// Problem says why a request was refused, as RFC 9457 has it.
type Problem struct {
	// about:blank: the code tells kinds of problems apart.
	Type string `json:"type" lim:"=about:blank"`
	// The status in words.
	Title string `json:"title" lim:"..64"`
	// The HTTP status.
	Status int `json:"status" lim:"400..599"`
	// For programs: why a session refused the request, or a code of HTTP.
	Code string `json:"code" lim:"..64"`
	// For people: what was wrong, and what to do.
	Detail string `json:"detail" lim:"any"`

	after time.Duration // of the header Retry-After; 0: none
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Code is a code of a problem that no session gave.
type Code string

// The codes of problems. A problem of a session has the session's own code.
const (
	CodeUnauthorized    Code = "unauthorized"           // there is no valid token
	CodeForbidden       Code = "forbidden"              // the token lacks a right, or may not name the agent
	CodeHostRefused     Code = "host_refused"           // the header Host names none of the server's hosts
	CodeOriginRefused   Code = "origin_refused"         // the page's origin is not on the list
	CodeNotFound        Code = "not_found"              // there is no such path
	CodeMethod          Code = "method_not_allowed"     // the path has no such method
	CodeBadRequest      Code = "bad_request"            // the body, the query or a header can't be read
	CodeMediaType       Code = "unsupported_media_type" // the body has another media type
	CodeTooLarge        Code = "too_large"              // the body has more bytes than the operation takes
	CodeTooManyRequests Code = "too_many_requests"      // this token's requests come too fast
	CodeTooManyStreams  Code = "too_many_streams"       // this token has too many streams
	CodeQuota           Code = "quota_exceeded"         // this token's files of a day have too many bytes
	CodeNoSession       Code = "no_session"             // the log has no event of the session
	CodeNoEvent         Code = "no_event"               // the session has no such event
	CodeNoTurn          Code = "no_turn"                // the session has no such turn
	CodeNoRun           Code = "no_run"                 // the session has no such run
	CodeNoCall          Code = "no_call"                // the session has no such call that waits
	CodeNoLink          Code = "no_link"                // the reply link is not of this server
	CodeLinkExpired     Code = "link_expired"           // the reply link has expired
	CodeNoAgent         Code = "no_agent"               // the server has no agent of the name
	CodeBadBlob         Code = "bad_blob"               // the handle is not of this session, or has expired
	CodeNoRegenerate    Code = "no_regenerate"          // a session does not answer a message again
	CodeNotQuarantined  Code = "not_quarantined"        // the session is not stopped, or not as the request says
	CodeTextInUse       Code = "text_in_use"            // the text of an event can't be removed now
	CodeQuarantined     Code = "quarantined"            // the session is stopped, and an operator must act
	CodeNoSessionActor  Code = "no_session_actor"       // no session-actor answers
	CodeServerLacks     Code = "server_lacks_right"     // the server's own NATS user lacks a right
	CodeUnavailable     Code = "unavailable"            // the server doesn't reach the log
	CodeTimeout         Code = "timeout"                // the operation took too long
	CodeInternal        Code = "internal"               // a fault of the server, which its log has
)

// problem returns a problem.
func problem(status int, code Code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// rejected are the statuses of what sessions refuse. All other codes are 422.
var rejected = map[session.Rejection]int{
	session.RejectNotPermitted:        http.StatusForbidden,
	session.RejectDuplicateEvent:      http.StatusConflict,
	session.RejectDuplicateSubmission: http.StatusConflict,
	session.RejectAgentChanged:        http.StatusConflict,
	session.RejectStale:               http.StatusConflict,
	session.RejectSessionClosed:       http.StatusConflict,
	session.RejectSessionErased:       http.StatusGone,
	session.RejectUnknownSchedule:     http.StatusNotFound,
	session.RejectSessionHeld:         http.StatusConflict,
	session.RejectApprovalStale:       http.StatusConflict,
	session.RejectRunActive:           http.StatusConflict,
	session.RejectQueueFull:           http.StatusConflict,
	session.RejectRunNotActive:        http.StatusConflict,
	session.RejectEffectSettled:       http.StatusConflict,
	session.RejectIllegalTransition:   http.StatusConflict,
}

// advice says what to do about a rejection.
var advice = map[session.Rejection]string{
	session.RejectDuplicateSubmission: "this Idempotency-Key was used for another request: send a new key with new content",
	session.RejectAgentChanged:        "other programs change the session's agent: repeat the request",
	session.RejectSessionClosed:       "the session has ended: use another one",
	session.RejectSessionErased:       "the session was deleted: use another one, under another name",
	session.RejectSessionHeld:         "the session may not be deleted: release it first, if you may",
	session.RejectApprovalStale:       "the call does not wait for this decision any more: list the approvals again",
	session.RejectRunActive:           "a run is active: wait for its end, or send another when_busy",
	session.RejectQueueFull:           "too many runs wait: send it again when one of them has ended",
	session.RejectRunNotActive:        "no run is active: request one",
	session.RejectStale:               "the run has ended: read the session's view",
	session.RejectIllegalTransition:   "the run is not in a state for this: read the session's view",
	session.RejectMissingModel:        "the agent names no model: name another agent, or set a model in the install record",
	session.RejectMissingProvider:     "the agent names no provider: name another agent, or set one in the install record",
	session.RejectNotPermitted:        "the install policy does not permit it",
	session.RejectUnknownTool:         "the session's registry has no such tool",
	session.RejectUnknownSchedule:     "list the session's schedules",
	session.RejectInvalidData:         "a value is not of the form that the document /openapi.json tells",
	session.RejectLimitExceeded:       "it is over a limit: send less",
}

// problemOf returns an error as a problem. ok is false for a fault of the server.
func problemOf(ctx context.Context, err error) (p *Problem, ok bool) {
	var refused *refold.RejectedError
	var stopped *refold.QuarantinedError
	var large *http.MaxBytesError
	var inUse *client.RedactionError
	var denied *natsio.PermissionError
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &p):
		return p, true
	case errors.As(err, &denied) && denied.Lacks != "":
		return problem(http.StatusForbidden, CodeForbidden, "the server's user on NATS lacks %s: start refold serve with --operator, --approver or --eraser, the context of a user with such a role", denied.Lacks), true
	case errors.As(err, &refused):
		detail := cmp.Or(refused.Detail, "the session refused it")
		if what := advice[refused.Code]; what != "" {
			detail += ": " + what
		}
		return problem(cmp.Or(rejected[refused.Code], http.StatusUnprocessableEntity), Code(refused.Code), "%s", detail), true
	case errors.As(err, &stopped):
		return problem(http.StatusConflict, CodeQuarantined, "%v; its events are kept, and an operator must act", stopped), true
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, CodeTooLarge, "the body has more than %d bytes: send less", large.Limit), true
	case errors.As(err, &inUse):
		return problem(http.StatusConflict, CodeTextInUse, "%v", inUse), true
	case errors.Is(err, client.ErrNoRun):
		return problem(http.StatusNotFound, CodeNoRun, "the session has no such run: runs count from 1"), true
	case errors.Is(err, client.ErrNoSession):
		return problem(http.StatusNotFound, CodeNoSession, "there is no such session: it begins with its first request of a run"), true
	case errors.As(err, &unknown):
		return problem(http.StatusServiceUnavailable, CodeUnavailable, "%v", err), true
	case client.IsDenied(err):
		return problem(http.StatusServiceUnavailable, CodeServerLacks, "%v", err), true
	case errors.Is(err, natsio.ErrNoView):
		p = problem(http.StatusServiceUnavailable, CodeNoSessionActor, "no session-actor answers: repeat the request later")
	case natsio.IsTransient(err) && !errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsio.ErrClosed), errors.Is(err, natsio.ErrNoServer), errors.Is(err, natsio.ErrStreamFull):
		p = problem(http.StatusServiceUnavailable, CodeUnavailable, "the server does not reach the log: repeat the request later")
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		p = problem(http.StatusGatewayTimeout, CodeTimeout, "it took too long: repeat the request, with the same Idempotency-Key if it has one")
	default:
		return problem(http.StatusInternalServerError, CodeInternal, "a fault of the server: its log has the cause"), false
	}
	p.after = retryAfter
	return p, true
}

// retryAfter is when a client may repeat a request that found something missing.
const retryAfter = time.Second

// write sends a problem.
func (p *Problem) write(w http.ResponseWriter) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	h := w.Header()
	if p.after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.after.Seconds())))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="refold"`)
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
