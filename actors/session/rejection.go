package session

import (
	"strconv"
	"strings"
)

// Rejection says why an event had no effect. The set is closed and the text
// is the wire form.
type Rejection string

// The rejections of rules version 1.
const (
	RejectUndecodable         Rejection = "undecodable"          // neither JSON nor msgpack, or no envelope
	RejectUnsupportedVersion  Rejection = "unsupported_version"  // v is not 1
	RejectUnknownType         Rejection = "unknown_type"         // no such event
	RejectReservedType        Rejection = "reserved_type"        // an event that a later release will have
	RejectWrongDoor           Rejection = "wrong_door"           // comes through another door
	RejectNotPermitted        Rejection = "not_permitted"        // the install policy keeps it to ctl
	RejectInvalidData         Rejection = "invalid_data"         // unknown field, wrong type, bad value
	RejectDuplicateEvent      Rejection = "duplicate_event"      // id seen before
	RejectDuplicateSubmission Rejection = "duplicate_submission" // same submission, other content
	RejectStale               Rejection = "stale"                // speaks of something long over
	RejectSessionClosed       Rejection = "session_closed"       // nothing reopens it
	RejectApprovalStale       Rejection = "approval_stale"       // nothing waits for this decision
	RejectRunActive           Rejection = "run_active"           // when_busy is reject
	RejectQueueFull           Rejection = "queue_full"           // queue_max reached
	RejectMissingProvider     Rejection = "missing_provider"     // no config names one
	RejectMissingModel        Rejection = "missing_model"        // no config names one
	RejectUnknownProfile      Rejection = "unknown_profile"      // not in the registry
	RejectUnknownTool         Rejection = "unknown_tool"         // not in the registry
	RejectInvalidRegistry     Rejection = "invalid_registry"     // or it would leave something naming what it lacks
	RejectRegistryLoosens     Rejection = "registry_loosens"     // it binds a tool more loosely than the install record
	RejectInvalidRule         Rejection = "invalid_rule"         // a step rule
	RejectRunNotActive        Rejection = "run_not_active"       // no run is active
	RejectUnknownEffect       Rejection = "unknown_effect"       // never asked
	RejectEffectSettled       Rejection = "effect_settled"       // settled before, otherwise
	RejectBatchMismatch       Rejection = "batch_mismatch"       // not the whole batch, or not what stands
	RejectPlanMismatch        Rejection = "plan_mismatch"        // of another plan
	RejectUnknownCall         Rejection = "unknown_call"         // not of this batch
	RejectIllegalTransition   Rejection = "illegal_transition"   // not from where it stands
	RejectUnknownSpace        Rejection = "unknown_space"        // no grant is about it, or nothing of it is there
	RejectNothingStaged       Rejection = "nothing_staged"       // there is nothing to apply
	RejectWorkspaceInvalid    Rejection = "workspace_invalid"    // a name that a space lacks, or something would be left dangling
	RejectLimitExceeded       Rejection = "limit_exceeded"       // over a limit of limits.go
)

// Error returns the wire form.
func (r Rejection) Error() string { return string(r) }

// Codes of results and of ended runs that the session itself gives. Those of
// rejected calls come from the planner.
const (
	CodeLimitExceeded    = "limit_exceeded"
	CodeDeadlineExceeded = "deadline_exceeded"
	CodeOutcomeUnknown   = "outcome_unknown"
	CodeBadSettlement    = "bad_settlement"
	CodeApprovalDenied   = "approval_denied"
	CodeApprovalExpired  = "approval_expired"
	CodeCancelled        = "cancelled"
	CodeBudget           = "budget"
	CodeExplicit         = "explicit"
	CodeRunDeadline      = "run_deadline"
	CodeTurnsMax         = "turns_max"
	CodeTranscriptFull   = "transcript_full"

	CodeWorkspaceUntrusted = "workspace_untrusted" // of a sync: another manifest than the requested one, or an untrusted one

	CodePackRefused   = "pack_refused"   // of a call of extensions_enable: it does not begin, or what was read does not count
	CodeAlreadyLoaded = "already_loaded" // the same: the pack is applied; no failure
)

// refusal is a rejection with its detail, inside the fold.
type refusal struct {
	code   Rejection
	detail string
}

// refuse returns a refusal; detail is cut to DetailBytesMax.
func refuse(code Rejection, detail string) *refusal {
	return &refusal{code: code, detail: clip(detail, DetailBytesMax)}
}

// clip cuts text to at most n bytes without splitting a character. What is cut
// is copied, so that a state never keeps a large text alive for its beginning.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return strings.Clone(text[:n])
}

// quoted writes a foreign text, cut and in ASCII: which other characters can be
// printed changes with Go's own releases, and a detail may enter the state.
func quoted(text string) string { return strconv.QuoteToASCII(clip(text, NameBytesMax)) }
