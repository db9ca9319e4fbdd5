package web

import "net/http"

var (
	sequence = map[string]any{"type": "integer", "minimum": 1}
	moment   = map[string]any{"type": "integer"}
)

// upTo is a count of at most n.
func upTo(n int) map[string]any {
	return map[string]any{"type": "integer", "minimum": 1, "maximum": n}
}

// inspectRoutes are the operations that the inspector's pages use besides the others.
// They show what the log has, and how a session folds it. Programs may use them too; the
// clients in other languages have no methods for them.
var inspectRoutes = []route{
	{
		method: http.MethodGet, path: "/v1/caller", name: "getCaller", out: "CallerShown", inspect: true,
		doc: "Says who the token is, and what it may do.",
		do:  (*call).getCaller,
	},
	{
		method: http.MethodGet, path: "/v1/live", name: "followSessions", right: RightRead, stream: true, out: "SessionRow", inspect: true,
		doc:   "Streams the rows of sessions as they change, as server-sent events: the data is a row as a list has it. Without a position it begins now. The event `reset` says that too much has changed since the position: read the list again.",
		query: []parameter{{"after", "The id of an event of this stream: it goes on after it. The header Last-Event-ID wins.", sequence}},
		do:    (*call).followSessions,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/live", name: "followEvents", right: RightRead, stream: true, out: "EventHead", inspect: true,
		doc:   "Streams the events of a session as they are stored, as server-sent events: the id is the sequence. Without a position it begins now.",
		query: []parameter{{"after", "A sequence: the events after it. The header Last-Event-ID wins.", sequence}},
		do:    (*call).followEvents,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/events", name: "listEvents", right: RightRead, out: "EventList", inspect: true,
		doc:   "Lists the events of a session, with what each of them did.",
		query: []parameter{{"from", "The list begins with the first event that is not before this sequence.", sequence}, {"limit", "The most events of an answer; 500 if absent.", upTo(eventsMax)}},
		do:    (*call).listEvents,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/events/{seq}", name: "getEvent", right: RightRead, out: "EventShown", inspect: true,
		doc: "Returns an event of a session, and all that it did: notices, effects, and what it changed in the state.",
		do:  (*call).getEvent,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/events/{seq}/raw", name: "getRawEvent", right: RightRead, stored: true, gives: []string{"application/octet-stream"}, inspect: true,
		doc: "Returns the bytes of an event, as they are stored.",
		do:  (*call).getRawEvent,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/events/{seq}/text", name: "getEventText", right: RightRead, gives: []string{"text/plain"}, inspect: true,
		doc: "Returns all of an event's data, as JSON in a file of text.",
		do:  (*call).getEventText,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/state", name: "getState", right: RightRead, out: "StateShown", inspect: true,
		doc: "Returns the state of a session after one of its events. It is folded here, and needs no session-actor.",
		query: []parameter{
			{"at", "A sequence: the state after the last event that is not after it; the newest if absent.", sequence},
			{"record", "False leaves the record out. It has a reference to each item of the transcript, so it may be a hundred times as large as the view.", map[string]any{"type": "boolean"}},
		},
		do: (*call).getState,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/diff", name: "getDiff", right: RightRead, out: "ChangeList", inspect: true,
		doc:   "Returns how the states after two events of a session differ.",
		query: []parameter{{"a", "As at of a state: the one before.", sequence}, {"b", "As at of a state: the one after.", sequence}},
		do:    (*call).getDiff,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/timeline", name: "getTimeline", right: RightRead, out: "Timeline", inspect: true,
		doc:   "Returns what took a session's time: runs, turns, calls, waits, and what is open.",
		query: []parameter{{"from", "Unix milliseconds: not what ended before.", moment}, {"to", "Unix milliseconds: not what began after.", moment}},
		do:    (*call).getTimeline,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/tools", name: "getTools", right: RightRead, out: "ToolsShown", inspect: true,
		doc:   "Says which tools a turn was offered, and why not the others.",
		query: []parameter{{"turn", "The turn, such as r1t2; the latest one if absent.", text}},
		do:    (*call).getTools,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/batch", name: "getBatch", right: RightRead, out: "BatchShown", inspect: true,
		doc:   "Says how the calls of the latest turn were planned: groups, what conflicts with what, what asked for a person, and what the model said.",
		query: []parameter{{"at", "A sequence: as of the last event that is not after it; the newest if absent.", sequence}},
		do:    (*call).getBatch,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/effects", name: "getEffects", right: RightRead, out: "EffectList", inspect: true,
		doc:   "Lists the latest effects of a session, whether they are stored as the fold asks for them, and who works on the open ones.",
		query: []parameter{{"limit", "The most effects of an answer; 200 if absent.", upTo(effectsMax)}},
		do:    (*call).getEffects,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/preview", name: "previewEvent", right: RightRead, in: "PreviewRequest", out: "Preview", inspect: true,
		doc: "Folds an event on a copy of the session's state, and says what would come of it. Nothing is published.",
		do:  (*call).previewEvent,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/release", name: "releaseSession", right: RightOperate, in: "ReleaseRequest", out: "Taken", inspect: true,
		doc: "Ends the quarantine that the caller has seen, as `refold release` does: within 15 seconds the session goes on from the event at which it stopped. If the cause remains, it stops again.",
		do:  (*call).release,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/verify", name: "verifySession", right: RightRead, out: "Verified", inspect: true,
		doc: "Folds a session again from its first event, and compares it with what is stored of it. It changes nothing.",
		do:  (*call).verifySession,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/proof", name: "getProof", right: RightRead, stored: true, out: "Proof", inspect: true,
		doc: "Returns what a page compares when it folds the session again: the hashes of states, and of what is stored.",
		do:  (*call).getProof,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/install", name: "getInstall", right: RightRead, stored: true, gives: []string{"application/octet-stream"}, inspect: true,
		doc: "Returns the install record that the session pinned, as canonical msgpack.",
		do:  (*call).getInstall,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/log", name: "getLog", right: RightRead, stored: true, gives: []string{"application/octet-stream"}, inspect: true,
		doc: "Returns the events of a session as they are stored, in the frames that package internal/prove describes: a page of at most 2,000 events and about 8 MiB.",
		query: []parameter{
			{"from", "The page begins with the first event that is not before this sequence.", sequence},
			{"to", "The log ends with the last event that is not after this sequence.", sequence},
		},
		do: (*call).getLog,
	},
	{
		method: http.MethodGet, path: "/v1/fleet", name: "getFleet", right: RightRead, out: "FleetShown", global: true, inspect: true,
		doc: "Says which bridges and session-actors run, what they serve, and the latest install records. It listens for a heartbeat of each, so it takes a second. Needs a token without a scope.",
		do:  (*call).getFleet,
	},
	{
		method: http.MethodGet, path: "/v1/installs/{seq}/changes", name: "getInstallChanges", right: RightRead, out: "ChangeList", global: true, inspect: true,
		doc: "Returns how one of the latest install records differs from the one before it. Needs a token without a scope.",
		do:  (*call).getInstallChanges,
	},
	{
		method: http.MethodGet, path: "/v1/system", name: "getSystem", right: RightRead, out: "SystemShown", global: true, inspect: true,
		doc: "Says how the log is stored, and which sessions are stopped. Needs a token without a scope.",
		do:  (*call).getSystem,
	},
	{
		method: http.MethodPost, path: "/v1/verify", name: "verifyAll", right: RightRead, stream: true, out: "VerifyStep", global: true, inspect: true,
		doc: "Folds all sessions again, and compares them with what is stored. It streams those that differ and how far it is, as server-sent events, and ends with the sum. It changes nothing. Needs a token without a scope.",
		do:  (*call).verifyAll,
	},
}
