package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
)

// Rejection is why an event had no effect. The set is closed and the text is the
// wire form.
type Rejection string

// The rejections of rules version 1.
const (
	RejectUndecodable         Rejection = "undecodable"                      // neither JSON nor msgpack, or no envelope
	RejectUnsupportedVersion  Rejection = "unsupported_version"              // `v` is not 1
	RejectUnknownType         Rejection = "unknown_type"                     // there is no such event
	RejectWrongDoor           Rejection = "wrong_door"                       // the event is not accepted through this door
	RejectNotPermitted        Rejection = Rejection(spaces.NotPermitted)     // the install policy keeps a field of the config to `ctl`; the budget of a RunResumeRequested through `in`; a reply through `in` that approvers alone may give; arguments that the policy denies; or a sync that the grant of its space does not permit
	RejectInvalidData         Rejection = Rejection(spaces.InvalidData)      // unknown field, wrong type, bad value
	RejectDuplicateEvent      Rejection = "duplicate_event"                  // the session accepted an event with this id before
	RejectDuplicateSubmission Rejection = "duplicate_submission"             // the same submission with other content
	RejectAgentChanged        Rejection = "agent_changed"                    // the request names a definition that is not the session's
	RejectStale               Rejection = Rejection(spaces.Stale)            // about an effect of an earlier turn, a batch before the latest, or a run that is neither active nor queued; or a reply to a call that has a result, or that waits with other arguments
	RejectSessionClosed       Rejection = "session_closed"                   // the session was closed
	RejectSessionErased       Rejection = "session_erased"                   // the session was erased: everything but a tombstone of session-actors is rejected
	RejectSessionHeld         Rejection = "session_held"                     // the session is held: SessionErased is rejected until a SessionHeld releases it
	RejectApprovalStale       Rejection = "approval_stale"                   // the call does not wait for approval, or waits with other arguments
	RejectRunActive           Rejection = "run_active"                       // a run is active, and `when_busy` is `reject`
	RejectQueueFull           Rejection = "queue_full"                       // `queue_max` runs wait already
	RejectMissingProvider     Rejection = "missing_provider"                 // no config names one
	RejectMissingModel        Rejection = "missing_model"                    // no config names one
	RejectUnknownProfile      Rejection = "unknown_profile"                  // the registry has no such profile
	RejectUnknownTool         Rejection = "unknown_tool"                     // the registry has no such tool, or binds no such descriptor
	RejectInvalidRegistry     Rejection = "invalid_registry"                 // it is faulty, it lacks something that the session, a run or a rule names, or it has a name of an applied pack's tool
	RejectRegistryLoosens     Rejection = "registry_loosens"                 // the registry binds a tool more loosely than the install record does: the detail says which tool, and in what
	RejectInvalidRule         Rejection = "invalid_rule"                     // a step rule is invalid: the detail says which, and where in its `when`
	RejectRunNotActive        Rejection = "run_not_active"                   // there is no active run
	RejectUnknownSchedule     Rejection = "unknown_schedule"                 // the session has no such schedule
	RejectUnknownEffect       Rejection = "unknown_effect"                   // the session never opened it, or has no such batch
	RejectEffectSettled       Rejection = "effect_settled"                   // it already has another settlement
	RejectBatchMismatch       Rejection = "batch_mismatch"                   // the results are not the batch's: a call is missing, named twice, open at a bridge, or has another result
	RejectPlanMismatch        Rejection = "plan_mismatch"                    // of another plan than the batch's
	RejectUnknownCall         Rejection = "unknown_call"                     // the batch has no such call
	RejectIllegalTransition   Rejection = "illegal_transition"               // not possible in this state: of a run that does not accept the request, or of a call whose group has not begun or that waits for a person
	RejectUnknownSpace        Rejection = Rejection(spaces.UnknownSpace)     // no grant is about the space, or there is nothing to detach
	RejectNothingStaged       Rejection = Rejection(spaces.NothingStaged)    // the apply has nothing to apply
	RejectWorkspaceInvalid    Rejection = Rejection(spaces.WorkspaceInvalid) // the workspace lacks a name, or the place in the detail names something that would be gone
	RejectLimitExceeded       Rejection = Rejection(spaces.LimitExceeded)    // over a limit; the detail names it
)

// Error returns the wire form.
func (r Rejection) Error() string { return string(r) }

// Codes of results and of ended runs that the session itself makes. Codes of
// rejected calls come from the planner.
const (
	CodeLimitExceeded    = "limit_exceeded"
	CodeDeadlineExceeded = "deadline_exceeded"
	CodeOutcomeUnknown   = "outcome_unknown"
	CodeBadSettlement    = spaces.CodeBadSettlement
	CodeApprovalDenied   = "approval_denied"
	CodeApprovalExpired  = "approval_expired"
	CodeCancelled        = spaces.CodeCancelled
	CodeBudget           = "budget"
	CodeExplicit         = "explicit"
	CodeRunDeadline      = "run_deadline"
	CodeTurnsMax         = "turns_max"
	CodeTranscriptFull   = "transcript_full"
	CodeInvalidAnswer    = "invalid_answer" // of a run; also of the item that tells the model what is wrong with its answer

	CodeDeclined = "declined" // of a call: whoever was asked gives no answer
	CodeSlept    = "slept"    // of a call: its time has come; no failure

	CodeAlreadyLoaded = "already_loaded" // the same: the pack is already applied; no failure
)

// IsSuccessCode reports whether a result that the session made with this code is no
// failure: the model is shown its detail.
func IsSuccessCode(code string) bool { return code == CodeAlreadyLoaded || code == CodeSlept }

// refusal is a rejection with its detail, inside the fold.
type refusal struct {
	code   Rejection
	detail string
	at     string // the field, if the detail does not begin with it
}

// refuse returns a refusal; detail is cut to DetailBytesMax.
func refuse(code Rejection, detail string) *refusal {
	return &refusal{code: code, detail: sentence.Clip(detail, DetailBytesMax)}
}

// in returns the refusal of a value in which a part is refused: outer is its name.
func (r *refusal) in(outer string) *refusal { return refuse(r.code, outer+"."+r.detail) }

// place returns the field that is refused; "" if the refusal names none.
func (r *refusal) place() string {
	if r.at != "" {
		return r.at
	}
	if place, _, found := strings.Cut(r.detail, ": "); found && !strings.Contains(place, " ") {
		return place
	}
	return ""
}

// unusable returns what is stored of a settlement that is refused: code and place.
func (r *refusal) unusable() sentence.Text {
	if place := r.place(); place != "" {
		return sentence.Say(sentence.UnusableAt, string(r.code), place)
	}
	return sentence.Say(sentence.Unusable, string(r.code))
}

// The refusals of values that a tag lim does not allow; see limits_gen.go.

func tooLong(field string, most int, hint ...string) *refusal {
	return refuse(RejectLimitExceeded, strings.Join(append([]string{field, "at most " + strconv.Itoa(most) + " bytes"}, hint...), ": "))
}

func tooShort(field string, least int) *refusal {
	if least == 1 {
		return refuse(RejectInvalidData, field+": is empty")
	}
	return refuse(RejectInvalidData, field+": at least "+strconv.Itoa(least)+" bytes")
}

func tooMany(field string, most int) *refusal {
	return refuse(RejectLimitExceeded, field+": at most "+strconv.Itoa(most))
}

// textsOutside refuses a list of more than most texts, and a text of it with other than
// low to high bytes.
func textsOutside(field string, all []string, most, low, high int) *refusal {
	if len(all) > most {
		return tooMany(field, most)
	}
	for i, text := range all {
		switch {
		case len(text) > high:
			return tooLong(itemOf(field, i), high)
		case len(text) < low:
			return tooShort(itemOf(field, i), low)
		}
	}
	return nil
}

func tooFew(field string, least int) *refusal {
	if least == 1 {
		return refuse(RejectInvalidData, field+": is empty")
	}
	return refuse(RejectInvalidData, field+": at least "+strconv.Itoa(least))
}

func outside(field string, got, low, high int64) *refusal {
	return refuse(RejectInvalidData, field+": "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10)+", not "+strconv.FormatInt(got, 10))
}

func noValue(field, got string, values ...string) *refusal {
	last := len(values) - 1
	if len(values) > 10 {
		return refuse(RejectInvalidData, field+": there is no "+sentence.Quoted(got))
	}
	return refuse(RejectInvalidData, field+": "+strings.Join(values[:last], ", ")+" or "+values[last]+", not "+sentence.Quoted(got))
}

func isOneOf(text string, values ...string) bool { return slices.Contains(values, text) }

func itemOf(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
