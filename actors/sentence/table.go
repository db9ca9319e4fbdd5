package sentence

// Number is the number of a sentence. A number is never used for another sentence.
type Number byte

// The sentences: why a run ended, or a step's hook has no answer.
const (
	own Number = iota // the text of somebody else that could be taken for a sentence

	TurnsMax
	TranscriptFull
	BudgetSpent
	RunDeadline
	SessionClosed
	ConfigUnfit
	NoSettlement
	Unusable
	UnusableAt

	// Why a call has no result of its tool, or what it may have done.
	MayHaveRun
	NotOpened
	InProgress
	Undecided
	Denied
	DeniedBecause
	NotDecided
	ArgumentsCut
	TooManyCalls

	// What is wrong with an answer.
	AnswerEmpty
	AnswerBlob
	AnswerParts
	AnswerEnded
	NoTurnToRepair

	// Why a call does not enable a pack.
	PackNotGranted
	VersionInName
	PackIsWorkspace
	PackForOperators
	SourceNeeded
	SourceDecided
	SourceNotGranted
	OptionsRefused
	IdentifierUnknown
	VersionTooLong
	VersionNotGranted
	SyncIsOpen
	PackIsWaiting
	PacksMax
	NoRoom
	NotRead
	OtherManifest
	NoSuchVersion
	OtherVersionRead
	OtherVersionAsked
	ReaderNotGranted
	NotSigned
	ManifestFault
	PackUnfit
	SpaceDetached
	AskedByOperator
	AnotherSync
	ReadForEndedCall
	CallersRunEnded
	CallersRunStopped

	SessionErased

	// How a call ended that waited for a reply or for a time.
	NotAnswered
	Slept
	StillWaiting

	// Why a session ended that carries out a call of another one.
	ParentStopped
	ParentClosed
	CallCarriedOut
)

// All returns the sentences by number. The first stands for the text of somebody else.
func All() []string { return table[:] }

// table has the sentences by number. {0} is the first argument.
var table = [...]string{
	own: "{0}",

	TurnsMax:       "the run has reached its limit of turns, {0}",
	TranscriptFull: "the transcript has {0} items, which is the limit: continue in a new session",
	BudgetSpent:    "the budget of {0} is spent: {1} used, about {2} for the next input, of {3}",
	RunDeadline:    "the run's deadline has passed",
	SessionClosed:  "the session was closed",
	ConfigUnfit:    "the run's config does not fit the session any more: see {0}",
	NoSettlement:   "{0} did not answer by the deadline",
	Unusable:       "the settlement can't be used: {0}",
	UnusableAt:     "the settlement can't be used: {0} at {1}",

	MayHaveRun:    "the call may have taken effect",
	NotOpened:     "the run was stopped before the call was started",
	InProgress:    "the run was stopped while the call was in progress; the call may have taken effect",
	Undecided:     "the run was stopped before anybody decided about the call",
	Denied:        "a person decided that the call does not run",
	DeniedBecause: "a person decided that the call does not run: {0}",
	NotDecided:    "nobody decided about the call in time, so it was not run",
	ArgumentsCut:  "the output limit cut the arguments off: call again with shorter ones, or in several calls",
	TooManyCalls:  "a batch runs at most {0} calls: make fewer at a time; {1} of {2} were refused",

	AnswerEmpty:    "the answer is empty",
	AnswerBlob:     "the answer is a blob, which is not read: answer with at most {0} bytes",
	AnswerParts:    "the answer has parts: answer with one text",
	AnswerEnded:    "the answer ended with {0}",
	NoTurnToRepair: "turns_max leaves no turn to repair it",

	PackNotGranted:    "no grant covers {0}: extensions_list shows the packs that exist",
	VersionInName:     "the extension is {0}: version {1} belongs in identifier, as in {2}",
	PackIsWorkspace:   "the extension {0} is a workspace, and models enable only packs: extensions_list shows the packs that exist",
	PackForOperators:  "only operators may enable {0}: extensions_list shows the packs that exist",
	SourceNeeded:      "the grant covers several packs: give the source, {0}",
	SourceDecided:     "the grant fixes the source of {0}: leave source out",
	SourceNotGranted:  "the grant is for source {0}, not {1}",
	OptionsRefused:    "packs take no options: leave them out",
	IdentifierUnknown: "the identifier is {0} or {1}, not {2}",
	VersionTooLong:    "a version has at most {0} bytes",
	VersionNotGranted: "the grant is for version {0}, not {1}",
	SyncIsOpen:        "a sync of the pack is open: try again when it has ended",
	PackIsWaiting:     "a version of the pack is staged or pending: an operator decides about it, or it is applied before the next turn",
	PacksMax:          "{0} packs are applied, which is the limit: an operator can detach one",
	NoRoom:            "the session has too many open syncs or staged spaces: try again when some have ended",
	NotRead:           "no trusted manifest could be read: the notice WorkspaceFailed tells an operator why",
	OtherManifest:     "the manifest has changed since it was approved: call the tool again, so that a person sees the new one",
	NoSuchVersion:     "there is no version {0} of {1} that the grant trusts: leave the version out, or ask for another",
	OtherVersionRead:  "{0}: the grant is for version {1}, and another was read",
	OtherVersionAsked: "{0}: version {1} was requested, and another was read",
	ReaderNotGranted:  "{0}: the grant is not for source {1}",
	NotSigned:         "{0}: the grant lists no digest of the manifest, and none of its keys signed it",
	ManifestFault:     "{0}: {1} at {2}",
	PackUnfit:         "{0}: the pack does not fit what is applied: the notice WorkspaceFailed tells an operator why",
	SpaceDetached:     "the space was detached",
	AskedByOperator:   "an operator requested the pack",
	AnotherSync:       "another sync of the space was requested",
	ReadForEndedCall:  "the call that it was read for has ended",
	CallersRunEnded:   "the run whose call requested it ended first",
	CallersRunStopped: "the run whose call requested it was stopped",

	SessionErased: "the session was erased",

	NotAnswered:  "nobody answered by the deadline",
	Slept:        "{0} seconds have passed",
	StillWaiting: "the run was stopped while the call waited",

	ParentStopped:  "the parent's run was stopped",
	ParentClosed:   "the parent was closed, or will not continue the session",
	CallCarriedOut: "the run for the parent's call has ended",
}
