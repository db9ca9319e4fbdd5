package session

import (
	"strconv"
	"strings"
)

// Rejection is why an event had no effect. The set is closed and the text is the
// wire form.
type Rejection string

// The rejections of rules version 1.
const (
	RejectUndecodable         Rejection = "undecodable"          // neither JSON nor msgpack, or no envelope
	RejectUnsupportedVersion  Rejection = "unsupported_version"  // v is not 1
	RejectUnknownType         Rejection = "unknown_type"         // no such event
	RejectReservedType        Rejection = "reserved_type"        // an event that a later release will have
	RejectWrongDoor           Rejection = "wrong_door"           // came through another door
	RejectNotPermitted        Rejection = "not_permitted"        // the install policy allows it through ctl alone
	RejectInvalidData         Rejection = "invalid_data"         // unknown field, wrong type, bad value
	RejectDuplicateEvent      Rejection = "duplicate_event"      // id was seen before
	RejectDuplicateSubmission Rejection = "duplicate_submission" // same submission, other content
	RejectStale               Rejection = "stale"                // about something that ended long ago
	RejectSessionClosed       Rejection = "session_closed"       // the session is closed for good
	RejectApprovalStale       Rejection = "approval_stale"       // nothing waits for this decision
	RejectRunActive           Rejection = "run_active"           // when_busy is reject
	RejectQueueFull           Rejection = "queue_full"           // queue_max reached
	RejectMissingProvider     Rejection = "missing_provider"     // no config names one
	RejectMissingModel        Rejection = "missing_model"        // no config names one
	RejectUnknownProfile      Rejection = "unknown_profile"      // not in the registry
	RejectUnknownTool         Rejection = "unknown_tool"         // not in the registry
	RejectInvalidRegistry     Rejection = "invalid_registry"     // or something would name a part that the registry lacks
	RejectRegistryLoosens     Rejection = "registry_loosens"     // it binds a tool more loosely than the install record
	RejectInvalidRule         Rejection = "invalid_rule"         // a step rule
	RejectRunNotActive        Rejection = "run_not_active"       // no run is active
	RejectUnknownEffect       Rejection = "unknown_effect"       // never opened
	RejectEffectSettled       Rejection = "effect_settled"       // settled before, with other content
	RejectBatchMismatch       Rejection = "batch_mismatch"       // not the whole batch, or not its results
	RejectPlanMismatch        Rejection = "plan_mismatch"        // names another plan
	RejectUnknownCall         Rejection = "unknown_call"         // not of this batch
	RejectIllegalTransition   Rejection = "illegal_transition"   // not allowed in this lifecycle
	RejectUnknownSpace        Rejection = "unknown_space"        // no grant covers it, or the session has none of it
	RejectNothingStaged       Rejection = "nothing_staged"       // nothing to apply
	RejectWorkspaceInvalid    Rejection = "workspace_invalid"    // a space lacks a name, or something would be left dangling
	RejectLimitExceeded       Rejection = "limit_exceeded"       // over a limit of limits.go
)

// Error returns the wire form.
func (r Rejection) Error() string { return string(r) }

// Codes of results and of ended runs that the session itself makes. Codes of
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
	CodeInvalidAnswer    = "invalid_answer" // of a run; also of the item that tells the model what is wrong with its answer

	CodeWorkspaceUntrusted = "workspace_untrusted" // of a sync: the manifest is not the requested one, or is not trusted

	CodeApprovalStale = "approval_stale" // of a call of extensions_enable: another manifest is read than the approved one
	CodePackRefused   = "pack_refused"   // of a call of extensions_enable: it can't begin, or the manifest was refused
	CodeAlreadyLoaded = "already_loaded" // the same: the pack is already applied; no failure
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

// clip cuts text to at most n bytes without splitting a character. Cut text is
// copied, so that a state does not keep all of a large text alive.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return strings.Clone(text[:n])
}

// quoted quotes a foreign text, cut and in ASCII: which other characters count as
// printable changes between Go releases, and a detail may enter the state.
func quoted(text string) string { return strconv.QuoteToASCII(clip(text, NameBytesMax)) }
