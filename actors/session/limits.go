package session

import (
	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Every limit of the fold, with its unit. limits_test.go asserts how they relate:
// whatever a client or a model sends, a state stays within StateBytesMax and an
// effect within EffectBytesMax, which is less than the 1 MiB that a NATS server
// accepts by default.
const (
	EventBytesMax     = 768 << 10 // an event's payload; publishers refuse more before sending
	NoticesMax        = 1<<32 - 1 // notices of a session
	NoticeBytesMax    = 768 << 10 // a notice's JSON; a larger output is replaced by its sequence
	SummaryBytesMax   = 8 << 10   // a summary's JSON
	SummaryTextMax    = 200       // characters of the text in a summary
	SummaryCallsMax   = 4         // tools that a summary names
	ProgressTextMax   = 8 << 10   // the turn's text in a TurnSettled
	ProgressOutputMax = 1 << 10   // the call's output in a CallSettled
	TroublesMax       = 16        // troubles of one heartbeat, and of one view
	HeartbeatToolsMax = 1024      // tool_ids of one heartbeat
	TroubleDetailMax  = 200       // bytes of a trouble's detail
	TextBytesMax      = 256 << 10 // inline text of one Content; larger content is a blob
	PartsMax          = 64        // parts of one Content, nested ones included
	IDBytesMax        = 64        // an event's id, a submission
	ByBytesMax        = 256       // an envelope's `by`
	IDsMax            = 128       // ids of events that a session remembers
	SubmissionsMax    = 10_000    // submissions that a session remembers at least, the newest

	SystemBytesMax = 64 << 10 // a config's system text
	ParamsBytesMax = 32 << 10 // a config's params, encoded
	FormatBytesMax = 16 << 10 // a config's response_format, encoded
	RepairsDefault = 1        // repairs of an answer
	RepairsMax     = 10       // upper limit of repairs
	NamesMax       = 512      // entries of a list of tools
	NameBytesMax   = 128      // a provider, model, profile or tool name in a config
	QueueMax       = 64       // upper limit of queue_max
	RulesMax       = 255      // newest version of the rules that a session can ever follow
	QueueDefault   = 16       // queued runs of a session
	QueueBytesMax  = 1 << 20  // configs of all queued runs, encoded
	RolesMax       = 16       // roles of a run
	RoleBytesMax   = 64       // a role
	TurnsDefault   = 100      // turns of a run
	TurnsMax       = 10_000   // upper limit of turns_max

	ItemsMax              = 10_000            // items of a transcript
	EffectBytesMax        = 768 << 10         // an effect's payload
	CallsMax              = 64                // calls of a batch that may run
	CallsSeenMax          = 1_024             // calls in one answer of a model
	StepCallsMax          = 256               // calls of earlier turns that a step hook is shown
	StepItemsMax          = 512               // items of the transcript that a step hook is shown
	StepArgumentBytesMax  = 1 << 10           // arguments of one call that a step hook is shown; the rest is in the log
	StepArgumentsBytesMax = 64 << 10          // arguments of all calls that a step hook is shown, the latest first
	CodeBytesMax          = 64                // a code in a settlement
	DetailBytesMax        = sentence.BytesMax // a detail, anywhere
	TokensMax             = 1 << 40           // a count in a usage
	OutputTokensMax       = 1<<31 - 1         // upper limit of output_tokens_max
	NumberMax             = 1 << 53           // a time, a duration, a size: exact in every JSON reader

	ChildDepthMax   = 4   // sessions below one another
	ChildrenOpenMax = 16  // open children of a run
	ChildrenMax     = 256 // children of a run
	ChildrenKeptMax = 64  // children that a session remembers to continue

	childRootBytes     = 36             // of a root's name that a child's begins with; prefixes of names have at most as many
	childHashChars     = 26             // of a hash in a child's name: 130 bits
	childRepeatFirstMS = 60 * 1000      // until a request is repeated first: it or its answer was lost
	childRepeatMS      = 60 * 60 * 1000 // between later repeats
	ChildDefaultMS     = 24 * 60 * 60 * 1000

	FactsMax          = 64      // facts of a session
	FactNameBytesMax  = 64      // a fact's name
	FactValueBytesMax = 256     // a fact's value
	HostIDBytesMax    = 128     // id and route of a host session
	HostRootBytesMax  = 1 << 10 // root of a host session

	WakesMax          = 8              // wakes that a session keeps open
	DeadlineDefaultMS = 10 * 60 * 1000 // an effect's, from the event that opens it
	DeadlineMaxMS     = 45 * 60 * 1000 // upper limit; REFOLD_FX keeps names for longer
	DeadlineMinMS     = 100            // lower limit
	RunDefaultMS      = 5 * 60 * 1000  // limit of one start of an effect
	StepDefaultMS     = 30 * 1000      // a step hook's deadline

	ApprovalDefaultMS = 24 * 60 * 60 * 1000       // an approval's, from when it is requested
	ReplyDefaultMS    = 24 * 60 * 60 * 1000       // a reply's, from when its call is opened
	LongMaxMS         = 400 * 24 * 60 * 60 * 1000 // deadline of a run, an approval, a reply or a sleep; it limits no bridge
	AttemptsMax       = 10                        // attempts at a generation
	RetryCodesMax     = 32                        // codes in a retry policy
	FallbackMax       = 8                         // models that a run may fall back to
	FallbackAfterMS   = 30 * 1000                 // of a model, if after_ms is absent
	BackoffDefaultMS  = 1000                      // before attempt 2
	BackoffCapMS      = 5 * 60 * 1000             // backoff_max_ms if it is absent
	SteersMax         = 64                        // steers that wait for a turn
	CostMax           = 1 << 50                   // micro-units
	PriceMax          = 1 << 40                   // micro-units for a million tokens
	ModelPricesMax    = 64                        // models with a price of their own

	BytesPerToken   = 4                    // of a model's input: how budgets estimate it
	ShownBytesMax   = 8 << 20              // of one blob of text that a model is shown
	PreviewBytesMax = 80 << 10             // the same for a result of more than TextBytesMax: its beginning and its end
	ImageBytes      = 1600 * BytesPerToken // size of an image in an estimate: about the most that providers count for one
	pageBytes       = 64 << 10             // of a PDF, for which an estimate counts one more page; a page counts as an image
	fileBytes       = 128                  // size of any other blob in an estimate: a line that names it

	SkillsActiveMax = 16 // skills of a config, and active skills of a run

	StateBytesMax = 31 << 18 // a state's canonical bytes; a snapshot of them must be less than codec.BytesMax
)

// inputBytesMax is how much one input may show a model: an inline text, or all its
// parts, each a blob.
const inputBytesMax = PartsMax * ShownBytesMax

// promptBytesMax is the maximal size of a generation's prompt: 64 parts with the
// longest path and media type, the names of all skills, 32 variables with the
// longest name and value, and a mark.
const promptBytesMax = space.PartsMax*(56+space.PathBytesMax+space.MediaTypeBytesMax+64) +
	space.SkillsMax*(2+space.TokenBytesMax) + space.VarsMax*(8+len(space.VarFact)+FactNameBytesMax+FactValueBytesMax) + 64

// itemFixedBytesMax is an item's encoding without its code, detail and edit:
// five keys, a role, a position, a sequence and the texts' headers.
const itemFixedBytesMax = 1 + 5 + 3 + 5 + 3 + 7 + 3 + 5 + 10 + 4 + 9

// itemWindowBytesMax is what a window keeps of an item: two keys and two numbers.
const itemWindowBytesMax = 6 + 5 + 6 + 5

// itemExtraBytesMax is what a list has of an item besides role, sequence and texts: five
// keys, the texts' headers, three numbers.
const itemExtraBytesMax = 1 + 5 + 7 + 5 + 5 + 6 + 2 + 3 + 9 + 3 + 5

// maxWindowBytes is the upper limit of what is counted of a transcript.
const maxWindowBytes = 1<<32 - 1

// itemEditBytesMax is an item's edit: a key and a sequence.
const itemEditBytesMax = 5 + 9

// itemsHeldMax is how many items a state may hold: the results of a batch may
// exceed ItemsMax, and the run then ends before its next turn.
const itemsHeldMax = ItemsMax + CallsSeenMax + queueHeldMax + SteersMax + 2

// queueHeldMax is how many runs a queue may hold: one more than it accepts, made of
// the steers that an ended run left.
const queueHeldMax = QueueMax + 1

// noticeFixedBytesMax is the size of a RunFinished besides its output: numbers, names, a
// code, a detail and a summary, with every character of the texts escaped.
const noticeFixedBytesMax = 1<<10 + 6*(64+CodeBytesMax+DetailBytesMax) + SummaryBytesMax

// SummaryTextBytesMax is the size of the text in a summary.
const SummaryTextBytesMax = 4 * SummaryTextMax

// callFixedBytesMax is the size of a tool call's effect besides its arguments.
const callFixedBytesMax = 2<<10 + ByBytesMax + 2*NameBytesMax + 3*HostIDBytesMax + HostRootBytesMax + planner.StepContextBytesMax

// toolRunMaxMS limits a tool's deadline_ms: a call may be open for twice as long,
// which leaves time to start it.
const toolRunMaxMS = DeadlineMaxMS / 2

// configFixedBytesMax is the size of a config besides lists, rules, codes, system
// and params: nineteen keys and those of their values, a provider, a hook, three
// names, sixteen numbers.
const configFixedBytesMax = 1<<10 + 3*NameBytesMax

// modelPriceBytesMax is the size of a model's price besides the model: five keys and
// four numbers.
const modelPriceBytesMax = 96

// submissionsHeldMax is how many submissions a state may hold.
const submissionsHeldMax = 2 * SubmissionsMax

// submissionNameBytes is the size of a shortened name: 96 bits. By chance two of
// 20,000 are equal in one of 10^20 sessions.
const submissionNameBytes = 24

// refBytesMax is the size of a reference in a list.
const refBytesMax = 80

// TranscriptBytesMax limits the encoded size of a transcript's items. It leaves
// room for the rest of a generation.
const TranscriptBytesMax = EffectBytesMax - effectFixedBytesMax

// effectFixedBytesMax is the size of a generation besides its items: system,
// params, 512 references of tools, names and numbers.
const effectFixedBytesMax = SystemBytesMax + ParamsBytesMax + FormatBytesMax + NamesMax*34 + SteersMax*itemFixedBytesMax + 4<<10
