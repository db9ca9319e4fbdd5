package engine

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Limits of labels whose values come from clients, operators and rules.
const (
	codesMax   = 64
	targetsMax = 64
	modelsMax  = 64
	toolsMax   = 256
)

// codeDescriptorMissing is the code of a turn whose bridge found no descriptor.
const codeDescriptorMissing = "descriptor_missing"

// The values of closed labels. A test compares them with the constants of
// actors/session and planner.
var (
	eventTypes = session.EventTypes()
	doors      = texts(subjects.Doors()...)
	lifecycles = texts(session.Completed, session.Failed, session.Cancelled, session.Interrupted)
	endCodes   = []string{
		"", session.CodeLimitExceeded, session.CodeDeadlineExceeded, session.CodeOutcomeUnknown, session.CodeBadSettlement, session.CodeApprovalDenied,
		session.CodeApprovalExpired, session.CodeCancelled, session.CodeBudget, session.CodeExplicit, session.CodeRunDeadline,
		session.CodeTurnsMax, session.CodeTranscriptFull, spaces.CodeWorkspaceUntrusted, spaces.CodePackRefused, session.CodeAlreadyLoaded, session.CodeDeclined, session.CodeSlept, session.CodeChildTaken,
		session.CodeInvalidAnswer, spaces.CodeApprovalStale,
		// Runs of clients that name what is gone.
		string(session.RejectUnknownTool), string(session.RejectUnknownProfile), string(session.RejectWorkspaceInvalid),
		// Codes that bridges give to generations.
		"auth", "bad_request", "content_filter", "context_length_exceeded", "malformed_answer", "network", "overloaded", "rate_limited", "model_error",
		"executor_panic", "bridge_lost", "transcript_unreadable", "request_too_large", "answer_too_large", codeDescriptorMissing, "hook_failed",
	}
	callStatuses = texts(session.CallSucceeded, session.CallFailed, session.CallCancelled, session.CallUnknown, session.CallIgnored)
)

// Bounds of histograms: for times that people wait, for times of a process, both in
// seconds, and for counts.
var (
	boundsLong  = []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86400}
	boundsShort = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5, 10}
	boundsCount = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
)

// Meters are the metrics of a session-actor. Register makes them; the zero value
// counts nothing.
//
// docs/observability.md lists them, and says what is not measured and why. No
// metric has a label for the session, run, effect, instance or user.
type Meters struct {
	events, rejections, notices, runs, tokens, cost, calls, refused *meter.Counter
	approvals, breaches, retries, asked, withdrawn, unknown         *meter.Counter
	takeovers, resets, commitErrors, loads, snapshots, compared     *meter.Counter
	quarantines, skipped                                            *meter.Counter

	runDuration, runTurns, runQueued, turnDuration, callDuration, approvalDuration *meter.Histogram
	foldDuration, storeDuration, commitMessages, latency, loadDuration, wakesLate  *meter.Histogram

	lanes     sync.Map      // number → *runningLane, for each lane that this process runs
	takenOver atomic.Uint64 // takeovers, without a registry too
	folded    atomic.Uint64 // events, likewise

	foreign atomic.Pointer[func() (heartbeats, others uint64)] // messages of other systems; nil until the process is connected

	pending, unstored, oldest, memory, memoryBytes, clockAhead *meter.Gauge

	quarantined, missing, logBytes, logBytesMax, durability, waiting, untaken, streamsWrong *meter.Gauge
}

// Register registers the metrics of a session-actor whose log has the given number
// of lanes (0: the default of streams.conf). With a nil registry the meters count
// nothing.
func Register(r *meter.Registry, lanes int) *Meters {
	if lanes == 0 {
		lanes = subjects.LanesDefault
	}
	numbers := make([]string, lanes)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	m := &Meters{}
	target := meter.Open(targetsMax, "class", "target")
	m.sessions(r, target)
	m.process(r, meter.Closed("lane", numbers...))
	m.server(r, target)
	return m
}

// sessions registers the metrics of events, notices and effects.
func (m *Meters) sessions(r *meter.Registry, target *meter.Label) {
	lifecycle, endCode := meter.Closed("lifecycle", lifecycles...), meter.Closed("code", endCodes...)
	model := meter.Open(modelsMax, "model")
	m.events = r.Counter("refold.events", "{event}", "Events that were folded and whose outputs are stored.", meter.Closed("type", eventTypes...), meter.Closed("door", doors...), meter.Closed("outcome", "accepted", "rejected"))
	m.skipped = r.Counter("refold.events.skipped", "{event}", "Events whose subject names no session: nobody folds them.")
	r.Read(meter.KindCounter, "refold.log.foreign", "{message}", "Messages of other systems, which were ignored: heartbeats of their session-actors, and others, whose header any publisher may set.", []string{"kind"}, m.readForeign)
	m.rejections = r.Counter("refold.rejections", "{event}", "Events that had no effect, by the reason.", meter.Open(codesMax, "code"))
	m.notices = r.Counter("refold.notices", "{notice}", "Notices that were stored.", meter.Open(codesMax, "type"))
	m.runs = r.Counter("refold.runs", "{run}", "Runs that ended.", lifecycle, endCode)
	m.runDuration = r.Histogram("refold.run.duration", "s", "Time from a run's request to its end, by the log's clock. Runs that began under another owner are left out.", boundsLong, lifecycle)
	m.runTurns = r.Histogram("refold.run.turns", "{turn}", "Turns of runs that ended.", boundsCount, lifecycle)
	m.runQueued = r.Histogram("refold.run.queue.duration", "s", "Time that runs waited in the queue before they started.", boundsLong)
	m.turnDuration = r.Histogram("refold.turn.duration", "s", "Time from asking a generation to its end; each attempt counts.", boundsLong, target, meter.Closed("outcome", "succeeded", "failed"))
	m.tokens = r.Counter("refold.tokens", "{token}", "Tokens that generations used. Cached tokens are input, reasoning tokens output.", model, meter.Closed("kind", "input", "cached", "output", "reasoning"))
	m.cost = r.Counter("refold.cost", "{microunit}", "Cost of generations, in millionths of the currency of the prices.", model)
	m.calls = r.Counter("refold.calls", "{call}", "Calls that have a result.", meter.Open(toolsMax, "tool"), meter.Closed("status", callStatuses...))
	m.callDuration = r.Histogram("refold.call.duration", "s", "Time from asking a call to its result.", boundsLong, target)
	m.refused = r.Counter("refold.calls.refused", "{call}", "Calls that were not run, by the reason.", meter.Open(codesMax, "code"))
	m.approvals = r.Counter("refold.approvals", "{approval}", "Waits for a person that ended.", meter.Closed("decision", "approve", "edit", "deny", "expired", "closed"))
	m.approvalDuration = r.Histogram("refold.approval.duration", "s", "Time that calls waited for a person. Waits that began under another owner are left out.", boundsLong)
	m.breaches = r.Counter("refold.budget.breaches", "{breach}", "Runs that a budget paused or ended.", meter.Closed("budget", "tokens", "cost", "session_tokens", "session_cost"))
	m.retries = r.Counter("refold.retries", "{attempt}", "Generations that failed and are asked again, by the failure's code.", endCode)
	m.asked = r.Counter("refold.effects.asked", "{effect}", "Effects that were asked.", target)
	m.withdrawn = r.Counter("refold.effects.withdrawn", "{effect}", "Effects that were withdrawn.", target)
	m.unknown = r.Counter("refold.outcome_unknown", "{call}", "Calls of which nobody knows whether they took effect.", target)
}

// process registers the metrics of this process.
func (m *Meters) process(r *meter.Registry, lane *meter.Label) {
	done := meter.Closed("outcome", "stored", "failed", "same", "different", "not_verified")
	r.Read(meter.KindGauge, "refold.lane.owned", "{lane}", "1 for a lane that this process owns, 0 for one that it runs and lost.", []string{"lane"}, m.readOwned)
	m.pending = r.Gauge("refold.lane.pending", "{event}", "Events of the lane that were not delivered when the latest one was.", lane)
	m.unstored = r.Gauge("refold.lane.unstored", "{event}", "Delivered events of the lane that are not acknowledged.", lane)
	m.oldest = r.Gauge("refold.lane.age", "s", "Age of the oldest event of the lane that is not acknowledged.", lane)
	m.takeovers = r.Counter("refold.lane.takeovers", "{takeover}", "Times that this process became the lane's owner.", lane)
	m.resets = r.Counter("refold.lane.resets", "{reset}", "Times that the lane began anew under the same owner.", lane)
	m.foldDuration = r.Histogram("refold.fold.duration", "s", "Time to fold an event; one event in 16 is measured.", boundsShort)
	m.storeDuration = r.Histogram("refold.store.duration", "s", "Time to store the outputs of the events that are stored together.", boundsShort)
	m.commitMessages = r.Histogram("refold.commit.messages", "{message}", "Messages that are stored together.", boundsCount)
	m.commitErrors = r.Counter("refold.commit.errors", "{message}", "Messages that were not stored at a try.", meter.Closed("code", "payload_differs", "too_large", "stream_full", "unknown_outcome"))
	m.latency = r.Histogram("refold.event.latency", "s", "Time from an event's timestamp in the log until its outputs are stored.", boundsShort)
	m.memory = r.Gauge("refold.sessions.memory", "{session}", "Sessions in memory.", lane)
	m.memoryBytes = r.Gauge("refold.sessions.bytes", "By", "Memory that sessions take, about.", lane)
	m.loads = r.Counter("refold.sessions.loads", "{session}", "Sessions that were loaded, by what they were loaded from.", meter.Closed("from", "snapshot", "log", "new"))
	m.loadDuration = r.Histogram("refold.load.duration", "s", "Time to load a session.", boundsShort)
	m.snapshots = r.Counter("refold.snapshots", "{snapshot}", "Snapshots, by whether they were stored.", done)
	m.compared = r.Counter("refold.snapshots.compared", "{snapshot}", "Snapshots that were compared with what the log folds to.", done)
	m.quarantines = r.Counter("refold.quarantines", "{session}", "Sessions that this process stopped.", meter.Closed("reason", "payload_differs", "too_large", "panic", "kills", "log_damaged", "isolated"))
	m.wakesLate = r.Histogram("refold.wakes.late", "s", "How late wakes were when a session-actor settled them.", boundsLong)
	m.clockAhead = r.Gauge("refold.clock.ahead", "s", "How far this machine's clock is ahead of the server's; negative: behind.")
	r.Read(meter.KindGauge, "refold.rules", "{version}", "Version of the rules that new sessions follow.", nil, func(yield func(float64, ...string)) { yield(session.RulesVersion) })
}

// server registers the gauges that the owner of lane 0 reads from the server.
func (m *Meters) server(r *meter.Registry, target *meter.Label) {
	m.quarantined = r.Gauge("refold.quarantined", "{session}", "Sessions that are stopped now.")
	m.missing = r.Gauge("refold.log.missing", "{event}", "Events that the log has lost.")
	m.logBytes = r.Gauge("refold.log.bytes", "By", "Size of the log.")
	m.logBytesMax = r.Gauge("refold.log.limit", "By", "Size that the log may have; absent without a limit.")
	m.durability = r.Gauge("refold.durability", "{state}", "1 for what the servers do before they acknowledge.", meter.Closed("is", "unknown", "interval", "replicated", "always"))
	m.waiting = r.Gauge("refold.effects.waiting", "{effect}", "Effects that wait to be taken by a bridge, or that one holds.", target)
	m.streamsWrong = r.Gauge("refold.streams.wrong", "{finding}", "What is wrong with the streams: one is missing, was changed or has no leader, a consumer is paused, a limit of the account is reached.")
	m.untaken = r.Gauge("refold.effects.untaken", "{effect}", "Effects that no bridge has taken yet.", target)
}

func texts[T ~string](all ...T) []string {
	list := make([]string, len(all))
	for i, v := range all {
		list[i] = string(v)
	}
	return list
}

func (l *Lane) gauge() {
	m, n := l.host.meters, strconv.Itoa(l.number)
	m.unstored.Set(float64(len(l.order)), n)
	age := time.Duration(0)
	if len(l.order) > 0 {
		age = max(0, l.now.Sub(time.UnixMilli(l.order[0].arrival.Event.Time)))
	}
	m.oldest.Set(age.Seconds(), n)
	m.memory.Set(float64(len(l.sessions)), n)
	bytes, _ := l.memory()
	m.memoryBytes.Set(float64(bytes), n)
	if running, ok := m.lanes.Load(l.number); ok {
		running.(*runningLane).sessions.Store(int64(len(l.sessions)))
		running.(*runningLane).bytes.Store(int64(bytes))
	}
}

// reasonOf returns the label value for the cause of a quarantine.
func reasonOf(cause error) string {
	switch {
	case is[*isolatedError](cause): // first: it wraps what failed
		return "isolated"
	case is[*journal.ViolationError](cause):
		return "payload_differs"
	case is[*natsio.MaxPayloadError](cause):
		return "too_large"
	case is[*panicError](cause):
		return "panic"
	case is[*killedError](cause):
		return "kills"
	case is[*damageError](cause):
		return "log_damaged"
	}
	return meter.Other
}

// is reports whether err wraps an error of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
