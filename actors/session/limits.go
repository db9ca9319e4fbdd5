package session

import (
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Every limit of the fold, with its unit. Their relations are asserted in
// limits_test.go: whatever a client or a model says, a state stays within
// StateBytesMax and an effect within EffectBytesMax, which is less than the
// 1 MiB that a NATS server takes by default.
const (
	EventBytesMax     = 768 << 10 // an event's payload; publishers refuse more before sending
	NoticeBytesMax    = 768 << 10 // a notice's JSON; a larger output is given by its sequence
	ProgressTextMax   = 8 << 10   // what a TurnSettled has of the turn's text
	ProgressOutputMax = 1 << 10   // what a CallSettled has of the call's output
	TroublesMax       = 16        // troubles of one heartbeat, and of one view
	TroubleDetailMax  = 200       // bytes of a trouble's detail
	TextBytesMax      = 256 << 10 // inline text of one Content; larger content is a blob
	PartsMax          = 64        // parts of one Content, nested ones included
	IDBytesMax        = 64        // an event's id, a submission
	ByBytesMax        = 256       // an envelope's `by`
	IDsMax            = 128       // ids of events that a session remembers
	SubmissionsMax    = 10_000    // submissions that a session remembers

	SystemBytesMax = 64 << 10 // a config's system text
	ParamsBytesMax = 32 << 10 // a config's params, encoded
	FormatBytesMax = 16 << 10 // a config's response_format, encoded
	NamesMax       = 512      // entries of a list of tools
	NameBytesMax   = 128      // a provider, model, profile or tool name in a config
	QueueMax       = 64       // queue_max may not exceed it
	QueueDefault   = 16       // queued runs of a session
	QueueBytesMax  = 1 << 20  // configs of all queued runs, encoded
	RolesMax       = 16       // roles of a run
	RoleBytesMax   = 64       // a role
	TurnsDefault   = 100      // turns of a run
	TurnsMax       = 10_000   // turns_max may not exceed it

	ItemsMax              = 10_000    // items of a transcript
	EffectBytesMax        = 768 << 10 // an effect's payload
	CallsMax              = 64        // calls of a batch that may run
	CallsSeenMax          = 1_024     // calls that one answer of a model may hold
	StepCallsMax          = 256       // calls of earlier turns that a step hook is shown
	StepItemsMax          = 512       // items of the transcript that a step hook is shown
	StepArgumentBytesMax  = 1 << 10   // of a call's arguments that a step hook is shown; the rest is in the log
	StepArgumentsBytesMax = 64 << 10  // of all calls' arguments that a step hook is shown, the latest first
	CodeBytesMax          = 64        // a code in a settlement
	DetailBytesMax        = 256       // a detail, wherever it stands
	TokensMax             = 1 << 40   // a count in a usage
	OutputTokensMax       = 1<<31 - 1 // output_tokens_max may not exceed it
	NumberMax             = 1 << 53   // a time, a duration, a size: every JSON reader has it exactly

	FactsMax          = 64      // facts of a session
	FactNameBytesMax  = 64      // a fact's name
	FactValueBytesMax = 256     // a fact's value
	HostIDBytesMax    = 128     // id and route of a host session
	HostRootBytesMax  = 1 << 10 // root of a host session

	WakesMax          = 8              // wakes that a session keeps open
	DeadlineDefaultMS = 10 * 60 * 1000 // an effect's, from the event that opens it
	DeadlineMaxMS     = 45 * 60 * 1000 // the cap; REFOLD_FX keeps names for longer
	DeadlineMinMS     = 100            // the floor
	RunDefaultMS      = 5 * 60 * 1000  // what one start of an effect may take
	StepDefaultMS     = 30 * 1000      // a step hook's deadline

	ApprovalDefaultMS = 24 * 60 * 60 * 1000       // an approval's, from when it is requested
	LongMaxMS         = 400 * 24 * 60 * 60 * 1000 // deadline of a run or an approval: nothing is asked of a bridge by it
	AttemptsMax       = 10                        // attempts at a generation
	RetryCodesMax     = 32                        // codes in a retry policy
	BackoffDefaultMS  = 1000                      // before attempt 2
	BackoffCapMS      = 5 * 60 * 1000             // backoff_max_ms if it is not given
	SteersMax         = 64                        // steers that wait for a turn
	CostMax           = 1 << 50                   // micro-units
	PriceMax          = 1 << 40                   // micro-units for a million tokens

	BytesPerToken   = 4                    // of what a model is shown: how budgets estimate an input
	ShownBytesMax   = 8 << 20              // of one blob that is text, as a model is shown it
	PreviewBytesMax = 80 << 10             // the same for a result of more than TextBytesMax: its beginning and its end
	ImageBytes      = 1600 * BytesPerToken // what an image counts as: about the most that a provider counts for one
	fileBytes       = 128                  // what any other blob counts as: a line that names it

	GrantsMax         = 64             // grants of a record, and of a session through ctl
	GrantTargetsMax   = 16             // targets of a grant
	PacksMax          = 16             // packs that are applied
	GrantDigestsMax   = 16             // digests of a grant
	GrantKeysMax      = 8              // keys of a grant
	StagedMax         = 64             // spaces that are staged
	SyncsMax          = 8              // syncs that are open
	SyncsDoneMax      = 8              // syncs that are over and remembered
	SyncRunDefaultMS  = 60 * 1000      // what one reading of a space may take; its sync has twice that
	SyncRunMinMS      = 1000           // the floor
	SyncRunMaxMS      = 20 * 60 * 1000 // the cap
	RevisionBytesMax  = 128            // a source's revision
	LacksMax          = space.LacksMax // needs that a reader says are not met
	SkillsActiveMax   = 16             // skills of a config, and active skills of a run
	NoticeProblemsMax = 16             // problems in a notice

	StateBytesMax = 7 << 20 // a state's canonical bytes; a snapshot of them must be less than codec.BytesMax
)

// inputBytesMax is what one input shows a model at most: an inline text, or all
// its parts, each a blob.
const inputBytesMax = PartsMax * ShownBytesMax

// knownMax is how many manifests of a space a session has: staged, pending,
// applied.
const knownMax = 3

// promptBytesMax is what the prompt of a generation takes at most: 64 parts with
// the longest path and media type, the names of all skills, 32 variables with the
// longest name and value, and a mark.
const promptBytesMax = space.PartsMax*(40+space.PathBytesMax+space.MediaTypeBytesMax+64) +
	space.SkillsMax*(2+space.TokenBytesMax) + space.VarsMax*(8+len(space.VarFact)+FactNameBytesMax+FactValueBytesMax) + 64

// itemFixedBytesMax is an item's encoding without its code, detail and edit:
// five keys, a role, a position, a sequence and the texts' headers.
const itemFixedBytesMax = 1 + 5 + 3 + 5 + 3 + 7 + 3 + 5 + 10 + 4 + 9

// itemEditBytesMax is an item's edit: a key and a sequence.
const itemEditBytesMax = 5 + 9

// itemsHeldMax is how many items a state may hold: a batch may go over
// ItemsMax by its results; the run then ends before its next turn.
const itemsHeldMax = ItemsMax + CallsSeenMax + queueHeldMax + SteersMax + 2

// queueHeldMax is how many runs a queue may hold: one more than it takes, of
// steers that an ended run left.
const queueHeldMax = QueueMax + 1

// noticeFixedBytesMax is what a RunFinished holds besides its output: numbers,
// names, a code and a detail, with every character of the texts escaped.
const noticeFixedBytesMax = 1<<10 + 6*(64+CodeBytesMax+DetailBytesMax)

// callFixedBytesMax is what a tool call's effect holds besides its arguments.
const callFixedBytesMax = 2<<10 + ByBytesMax + 2*NameBytesMax + 3*HostIDBytesMax + HostRootBytesMax + planner.StepContextBytesMax

// toolRunMaxMS is what a tool's deadline_ms may be: a call of it may be open
// for twice as long, so that there is a time to start it in.
const toolRunMaxMS = DeadlineMaxMS / 2

// configFixedBytesMax is what a config holds besides lists, rules, codes, system
// and params: nineteen keys and those of what stands under them, a provider, a
// hook, three names, sixteen numbers.
const configFixedBytesMax = 1<<10 + 3*NameBytesMax

// refBytesMax is a reference in a list.
const refBytesMax = 80

// TranscriptBytesMax is the encoded size that a transcript's items may have. It
// leaves room for the rest of a generation.
const TranscriptBytesMax = EffectBytesMax - effectFixedBytesMax

// effectFixedBytesMax is what a generation holds besides its items: system,
// params, 512 references of tools, names and numbers.
const effectFixedBytesMax = SystemBytesMax + ParamsBytesMax + FormatBytesMax + NamesMax*34 + SteersMax*itemFixedBytesMax + 4<<10
