package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
)

// Codes of failed calls, in addition to those that services return themselves.
const (
	CodeServiceMissing  = "service_missing" // there are no responders
	CodeServiceRefused  = "service_refused" // the service's metadata can't be used
	CodeToolChanged     = "tool_changed"    // it is less safe than the session's registry says
	CodeSecretMissing   = "secret_missing"  // of a header; nothing was sent
	CodeServiceError    = "service_error"   // the service reports a failure
	CodeRequestTooLarge = "request_too_large"
	CodeNotAllowed      = "not_allowed" // the bridge has no permission for the subject

	codeTryAgain = "try_again"
	codeUnknown  = "outcome_unknown"
)

// again says whether a request may be sent again.
type again int

const (
	never   again = iota
	missing       // no service received it
	busy          // the service refuses it for now
	lost          // the answer was lost, and a repetition does no harm
)

// codes are the failures that services report by a number, as in HTTP.
var codes = map[string]struct {
	code    string
	refused bool // nothing took effect, and it may be temporary
	vague   bool // it may have taken effect
}{
	"400": {code: "bad_request"},
	"401": {code: "unauthorized"},
	"403": {code: "forbidden"},
	"404": {code: "not_found"},
	"408": {code: "timeout", vague: true},
	"409": {code: "conflict"},
	"422": {code: "bad_request"},
	"429": {code: "rate_limited", refused: true},
	"500": {code: CodeServiceError},
	"502": {code: "bad_gateway", vague: true},
	"503": {code: "unavailable", refused: true},
	"504": {code: "timeout", vague: true},
}

var ownCode = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// resultOf turns a reply into a result.
func (t *Tool) resultOf(r presence.ServiceReply, redactor *secrets.Redactor) (executor.Result, again) {
	result := executor.Result{Output: string(r.Data)}
	if r.ErrorCode == "" && r.Error == "" {
		return result, never
	}
	known, ok := codes[r.ErrorCode]
	result.Error = &executor.Error{Code: known.code, Detail: cmp.Or(redactor.Clip(r.Error, errorTextMax), "service "+t.Service+" gives no reason")}
	switch {
	case ok:
	case len(r.ErrorCode) <= codeBytesMax && ownCode.MatchString(r.ErrorCode):
		result.Error.Code = r.ErrorCode
		known.refused = r.ErrorCode == codeTryAgain
		known.vague = r.ErrorCode == codeUnknown
	default:
		result.Error.Code = CodeServiceError
		if r.ErrorCode != "" {
			result.Error.Detail = redactor.Clip(r.ErrorCode, quotedMax) + ": " + result.Error.Detail
		}
	}
	switch {
	case r.ErrorCode == codeUnknown, known.vague && !t.metadata.RetrySafe:
		result.Unknown = true
		result.Error.Detail = fmt.Sprintf("service %s says %s, the call may have taken effect: %s", t.Service, r.ErrorCode, result.Error.Detail)
		result.Error.Code = codeUnknown
	case known.refused, known.vague:
		result.Error.Retryable = true
		return result, busy
	}
	return result, never
}

// gone returns the result of a call whose reply can't come any more: every instance
// that may have received it is gone.
func (t *Tool) gone() (executor.Result, again) {
	detail := fmt.Sprintf("service %s is gone: no instance that may have received the call answers any more", t.Service)
	if t.metadata.RetrySafe {
		return executor.Result{Error: &executor.Error{Code: CodeServiceMissing, Detail: detail + "; start it", Retryable: true}}, lost
	}
	return executor.Result{Unknown: true, Error: &executor.Error{Code: codeUnknown, Detail: "the call may have taken effect: " + detail}}, never
}

// failed returns the result of a request without a reply. It returns err itself
// if ctx ended, since the bridge knows best what to do.
func (t *Tool) failed(ctx context.Context, err error) (executor.Result, again, error) {
	var denied *natsio.PermissionError
	var large *natsio.MaxPayloadError
	fault := &executor.Error{Detail: err.Error()}
	result := executor.Result{Error: fault}
	switch {
	case errors.Is(err, presence.ErrNobodyServes):
		fault.Code, fault.Retryable = CodeServiceMissing, true
		fault.Detail = fmt.Sprintf("service %s is not there: nobody listens on %s, and nothing took effect; start it", t.Service, t.Subject)
		return result, missing, nil
	case errors.As(err, &denied):
		fault.Code = CodeNotAllowed
		if denied.Op == "subscribe" {
			break // replies can't be received: the request may have arrived
		}
		return result, never, nil
	case errors.As(err, &large):
		fault.Code = CodeRequestTooLarge
		return result, never, nil
	case ctx.Err() != nil:
		return executor.Result{}, never, err
	case errors.Is(err, presence.ErrAnswerLost) && t.metadata.RetrySafe:
		fault.Code, fault.Retryable = codeTryAgain, true
		return result, lost, nil
	default:
		fault.Code = CodeServiceError
	}
	if !t.metadata.RetrySafe {
		fault.Code, fault.Detail, result.Unknown = codeUnknown, "the call may have taken effect: "+fault.Detail, true
	}
	return result, never, nil
}
