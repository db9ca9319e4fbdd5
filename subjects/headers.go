package subjects

import "strconv"

// Headers that Refold sets or reads. The server defines those that begin with Nats-.
const (
	HeaderContentType       = "Content-Type"
	HeaderTraceParent       = "traceparent"
	HeaderLog               = "Refold-Log"             // the identity of the log that the message is for
	HeaderWhere             = "Refold-Where"           // of a heartbeat: server, domain and account, for people
	HeaderSession           = "Refold-Session"         // of a request to a service as a tool: the calling session
	HeaderEffect            = "Refold-Effect"          // the effect's name, r1t2c0
	HeaderStart             = "Refold-Start"           // a ULID of this start of the call
	HeaderTool              = "Refold-Tool"            // the tool_id
	HeaderIdempotencyKey    = "Refold-Idempotency-Key" // the same for every start of the call
	HeaderTimeoutMS         = "Refold-Timeout-Ms"      // how long the caller waits for the answer
	HeaderMsgID             = "Nats-Msg-Id"
	HeaderTTL               = "Nats-TTL"
	HeaderExpectLastSubject = "Nats-Expected-Last-Subject-Sequence"
	HeaderExpectLastOn      = "Nats-Expected-Last-Subject-Sequence-Subject"
	HeaderPinID             = "Nats-Pin-Id"
	HeaderBatchID           = "Nats-Batch-Id"
	HeaderBatchSequence     = "Nats-Batch-Sequence"
	HeaderBatchCommit       = "Nats-Batch-Commit"
	HeaderSubject           = "Nats-Subject"
	HeaderSequence          = "Nats-Sequence"
	HeaderTimeStamp         = "Nats-Time-Stamp"
	HeaderNumPending        = "Nats-Num-Pending"
	HeaderLastSequence      = "Nats-Last-Sequence"
	HeaderRollup            = "Nats-Rollup"
	HeaderSchedule          = "Nats-Schedule"
	HeaderScheduleTarget    = "Nats-Schedule-Target"
	HeaderKVOperation       = "KV-Operation"
	HeaderServiceError      = "Nats-Service-Error"
	HeaderServiceErrorCode  = "Nats-Service-Error-Code"
	HeaderStatus            = "Status"
	HeaderDescription       = "Description"
)

// MetadataLog is the key of the log's identity, a ULID, in the metadata of its stream.
const MetadataLog = "refold_log"

// MetadataWakes is a key in the metadata of a stream of timers that was created for a
// log with events, until all open wakes of the log are asked.
const MetadataWakes = "refold_wakes"

// WakesMissing is the value of MetadataWakes.
const WakesMissing = "missing"

// RollupSubject is the HeaderRollup of a message that replaces all earlier messages
// of its subject; only buckets allow it.
const RollupSubject = "sub"

// ScheduleAt begins the HeaderSchedule of a message that is sent once; an RFC 3339
// time follows.
const ScheduleAt = "@at "

// ContentTypeMsgpack is the Content-Type of effects.
const ContentTypeMsgpack = "application/msgpack"

// EventID returns the Nats-Msg-Id of an event that has this id: <sid>.<id>. The
// server compares the ids of all messages of a stream, and two sessions may have
// events of one id.
func EventID(sid, id string) string { return sid + "." + id }

// UnnumberedID returns the Nats-Msg-Id of a notice without a number: <sid>.<hash of it>.
func UnnumberedID(sid, hash string) string { return sid + "." + hash }

// NoticeID returns the Nats-Msg-Id of a session's nth notice: <sid>.<n>.
func NoticeID(sid string, n uint64) string { return sid + "." + strconv.FormatUint(n, 10) }
