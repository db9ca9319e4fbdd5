package subjects

import "strconv"

// Headers that Refold sets or reads. Those that begin with Nats- are the
// server's own.
const (
	HeaderContentType       = "Content-Type"
	HeaderTraceParent       = "traceparent"
	HeaderSession           = "Refold-Session"         // of a request to a service that is a tool: the caller
	HeaderEffect            = "Refold-Effect"          // the effect's name, r1t2c0
	HeaderStart             = "Refold-Start"           // a ULID of this start of it
	HeaderTool              = "Refold-Tool"            // the tool_id
	HeaderIdempotencyKey    = "Refold-Idempotency-Key" // the same for every start of the call
	HeaderTimeoutMS         = "Refold-Timeout-Ms"      // for how long the answer is awaited
	HeaderSignatureKey      = "Refold-Signature-Key"   // of a published pack: the public key that signed its manifest
	HeaderSignature         = "Refold-Signature"       // and the signature, in base64url without padding
	HeaderMsgID             = "Nats-Msg-Id"
	HeaderExpectLastSubject = "Nats-Expected-Last-Subject-Sequence"
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

// RollupSubject is the HeaderRollup with which a message replaces all earlier
// ones of its subject; only buckets have it.
const RollupSubject = "sub"

// ScheduleAt begins the HeaderSchedule of a message that is sent once; a time
// as in RFC 3339 follows.
const ScheduleAt = "@at "

// ContentTypeMsgpack is the Content-Type of effects.
const ContentTypeMsgpack = "application/msgpack"

// NoticeID returns the Nats-Msg-Id of a session's nth notice: <sid>.<n>.
func NoticeID(sid string, n uint64) string { return sid + "." + strconv.FormatUint(n, 10) }
