package web

import (
	"net/http"
	"time"
)

// route is an operation: a row of the table from which /openapi.json is written. Types
// are those of the bodies, as Go names them; empty: none.
type route struct {
	method, path string
	name         string // of the operation, for generated clients
	right        Right
	doc          string // the first sentence is its summary
	in, out      string // JSON
	status       int    // of a success; 0: 200
	created      string // type of a second success, 202, whose body it is
	query        []parameter
	keyed        bool     // it takes Idempotency-Key
	stream       bool     // it is no operation with an end: text/event-stream
	long         bool     // its body is a whole conversation, with files
	takes        []string // media types of a body that is not JSON
	gives        []string // media types of an answer that is not JSON
	open         openness
	global       bool // it is about all sessions: a token with a scope may not
	inspect      bool // it is for the inspector's pages: clients need no method for it
	stored       bool // it sends what is stored as it is: not if the server masks secrets
	do           func(*call) (any, error)
}

// openness says when an operation needs no token.
type openness int

const (
	never    openness = iota
	withAuth          // if the server has tokens at all
	always
	byLink // the path has a token of its own
)

// parameter is one of a query.
type parameter struct {
	name, doc string
	schema    map[string]any
}

// bytes returns the limit of the body.
func (rt *route) bytes(l *Limits) int64 {
	switch {
	case rt.long:
		return l.ChatBytes
	case len(rt.takes) > 0:
		return l.FileBytes
	}
	return l.BodyBytes
}

// waits returns how long the client asks the operation to wait for an end.
func (rt *route) waits(c *call) time.Duration {
	if rt.created == "" {
		return 0
	}
	return c.wait()
}

// routes is the table of all operations.
var routes []route

func init() { // the operations refer to the table themselves
	routes = append(routes, runRoutes...)
	routes = append(routes, readRoutes...)
	routes = append(routes, controlRoutes...)
	routes = append(routes, scheduleRoutes...)
	routes = append(routes, peopleRoutes...)
	routes = append(routes, aiSDKRoutes...)
	routes = append(routes, aguiRoutes...)
	routes = append(routes, serverRoutes...)
	routes = append(routes, inspectRoutes...)
}

var (
	text  = map[string]any{"type": "string"}
	count = map[string]any{"type": "integer", "minimum": 1}
)

var runRoutes = []route{
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/runs", name: "startRun", right: RightAsk, in: "RunRequest", out: "RunState", created: "RunAccepted", keyed: true,
		doc: "Requests a run. The session begins with its first run. With the header `Prefer: wait=60` the answer is the run's end, if it comes within so many seconds; else 202 tells where to follow it.",
		do:  (*call).startRun,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/runs/{run}", name: "getRun", right: RightRead, out: "RunState",
		doc: "Returns a run as it is now, and its answer if it has ended.",
		do:  (*call).getRun,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/runs/{run}/cancel", name: "cancelRun", right: RightAsk, in: "Reason", out: "Taken", keyed: true,
		doc: "Ends a run at once, the active one or a queued one. A call that has begun may still take effect.",
		do:  func(c *call) (any, error) { return c.control(cancel) },
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/runs/{run}/input", name: "editRun", right: RightAsk, in: "SteerRequest", out: "Taken",
		doc: "Gives a queued run another input: a text.",
		do:  (*call).editRun,
	},
}

var readRoutes = []route{
	{
		method: http.MethodGet, path: "/v1/sessions", name: "listSessions", right: RightRead, out: "SessionList",
		doc: "Lists sessions, the one with the latest activity first.",
		query: []parameter{
			{"name", "The beginning of the sessions' ids.", text},
			{"state", "One of these states, separated by commas: running, waiting_input, paused, interrupting, completed, failed, cancelled, interrupted, open, closed, quarantined, unknown, silent.", text},
			{"waits_for", "What the session waits for: approval, input, model, …", text},
			{"model", "The model of the latest run, or provider/model.", text},
			{"parent", "A session: those that carry out its calls.", text},
			{"tree", "A session that is no child: it, its children, theirs, and so on.", text},
			{"since", "A time: sessions that did something since then.", map[string]any{"type": "string", "format": "date-time"}},
			{"all", "Also the sessions that did nothing for a week, last.", map[string]any{"type": "boolean"}},
			{"after", "The cursor of an earlier answer.", text},
			{"limit", "The most sessions of an answer; 50 if absent.", map[string]any{"type": "integer", "minimum": 1, "maximum": listMax}},
		},
		do: (*call).listSessions,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}", name: "getSession", right: RightRead, out: "View",
		doc: "Returns the view of a session: its runs, calls, tools and latest messages as they are now.",
		do:  (*call).getSession,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/transcript", name: "getTranscript", right: RightRead, gives: []string{"application/json", "text/markdown"},
		doc:   "Returns the whole conversation: entries as `refold transcript --format json` prints them, in a list; Markdown; or a messages array of OpenAI's or Anthropic's API. The header `ETag` has the sequence of the session's last event, in quotes.",
		query: []parameter{{"format", "The form; json if absent.", map[string]any{"type": "string", "enum": transcriptForms}}},
		do:    (*call).transcript,
	},
	{
		method: http.MethodGet, path: "/v1/sessions/{sid}/updates", name: "followSession", right: RightRead, stream: true, out: "Update",
		doc: "Streams what happens in a session, as server-sent events: the data is an Update as JSON, the id is its position. A stream goes on after a position, each update once. Without one it begins now. A comment comes each 15 seconds. The event `problem` ends a stream.",
		query: []parameter{
			{"after", "A position: the stream goes on after it. The header Last-Event-ID wins. `start` is the session's beginning.", text},
			{"run", "A run: only its updates, from its beginning if `after` is absent. The stream ends with the run; a client that asks again then gets 204.", count},
		},
		do: (*call).followSession,
	},
}

var controlRoutes = []route{
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/steer", name: "steer", right: RightAsk, in: "SteerRequest", out: "RunAccepted", keyed: true,
		doc: "Gives the active run more input before its next turn. Without one it starts a run.",
		do:  (*call).steer,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/pause", name: "pause", right: RightAsk, in: "Reason", out: "Taken", keyed: true,
		doc: "Keeps the active run from beginning turns and calls, until it is resumed.",
		do:  func(c *call) (any, error) { return c.control(pause) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/resume", name: "resume", right: RightAsk, in: "ResumeRequest", out: "Taken", keyed: true,
		doc: "Lets the paused run go on, with a larger budget if its budget paused it.",
		do:  (*call).resume,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/interrupt", name: "interrupt", right: RightAsk, in: "Reason", out: "Taken", keyed: true,
		doc: "Ends the active run when its open work is settled.",
		do:  func(c *call) (any, error) { return c.control(interrupt) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/cancel", name: "cancel", right: RightAsk, in: "Reason", out: "Taken", keyed: true,
		doc: "Ends the active run at once.",
		do:  func(c *call) (any, error) { return c.control(cancel) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/complete", name: "complete", right: RightAsk, in: "Reason", out: "Taken", keyed: true,
		doc: "Ends the run that waits for input as completed: its output is the model's last answer.",
		do:  func(c *call) (any, error) { return c.control(complete) },
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/fail", name: "fail", right: RightAsk, in: "FailRequest", out: "Taken", keyed: true,
		doc: "Ends the run that waits for input as failed.",
		do:  (*call).fail,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/end", name: "endSession", right: RightOperate, out: "Taken", keyed: true,
		doc: "Ends the session for good: its runs are cancelled, and it takes no more requests.",
		do:  func(c *call) (any, error) { return c.control(end) },
	},
	{
		method: http.MethodDelete, path: "/v1/sessions/{sid}", name: "deleteSession", right: RightErase, in: "Reason", out: "Taken", keyed: true,
		doc: "Erases the session for good, also one that has ended: its runs are cancelled, its view and lists forget it, and its name is not used again. Its messages stay stored, and its transcript and updates show them, until `refold delete --erased` deletes them. A session that is held is 409 `session_held`.",
		do:  func(c *call) (any, error) { return c.control(erase) },
	},
	{
		method: http.MethodDelete, path: "/v1/sessions/{sid}/events/{seq}", name: "redactEvent", right: RightErase, out: "Redacted",
		doc: "Removes the text of an event for good. The session stays what it is, and everything that reads the event gets a copy without text. What the session still uses, or has decided by, is 409 `text_in_use`, and the detail says when to try again. It takes some seconds.",
		do:  (*call).redactEvent,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/hold", name: "holdSession", right: RightOperate, in: "Reason", out: "Taken", keyed: true,
		doc: "Holds the session: nobody can delete it until the hold ends.",
		do:  func(c *call) (any, error) { return c.control(hold) },
	},
	{
		method: http.MethodDelete, path: "/v1/sessions/{sid}/hold", name: "endHold", right: RightOperate, in: "Reason", out: "Taken", keyed: true,
		doc: "Ends the hold of the session.",
		do:  func(c *call) (any, error) { return c.control(release) },
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/facts", name: "setFacts", right: RightOperate, in: "FactsRequest", out: "Taken",
		doc: "Sets facts of the session, and removes those that are null, from its next turn on: all of them or none.",
		do:  (*call).setFacts,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/agent", name: "setAgent", right: RightOperate, in: "AgentRequest", out: "Taken",
		doc: "Gives the session the definition of an agent of this server, for its next request.",
		do:  (*call).setAgent,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/overrides", name: "setOverrides", right: RightOperate, in: "OverridesRequest", out: "Taken",
		doc: "Changes the tools that the session, or its active run, adds or leaves out.",
		do:  (*call).setOverrides,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/profile", name: "setProfile", right: RightOperate, in: "ProfileRequest", out: "Taken",
		doc: "Selects the profile of runs whose config names none, from the next turn on.",
		do:  (*call).setProfile,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/config", name: "setConfig", right: RightOperate, in: "ConfigRequest", out: "Taken",
		doc: "Sets the session's own config, for runs that are requested from now on and bring none.",
		do:  (*call).setConfig,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/registry", name: "setRegistry", right: RightOperate, in: "RegistryRequest", out: "Taken",
		doc: "Replaces the session's registry of tools from its next turn on. It may not bind a tool more loosely than the install record.",
		do:  (*call).setRegistry,
	},
}

var peopleRoutes = []route{
	{
		method: http.MethodGet, path: "/v1/approvals", name: "listApprovals", right: RightRead, out: "ApprovalList",
		doc:   "Lists the calls that wait for a person, with their arguments in full.",
		query: []parameter{{"session", "A session; all of them if absent.", text}},
		do:    (*call).listApprovals,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/approvals/{call}", name: "decide", right: RightApprove, in: "Decision", out: "Taken", keyed: true,
		doc: "Decides over a call that waits. The decision counts for the arguments with args_hash: if the call has others by now, or does not wait any more, it is 409 `approval_stale`.",
		do:  (*call).decide,
	},
	{
		method: http.MethodGet, path: "/v1/questions", name: "listQuestions", right: RightRead, out: "QuestionList",
		doc:   "Lists the calls that wait for a reply, with their arguments in full.",
		query: []parameter{{"session", "A session; all of them if absent.", text}},
		do:    (*call).listQuestions,
	},
	{
		method: http.MethodPost, path: "/v1/sessions/{sid}/questions/{call}", name: "reply", in: "Reply", out: "Taken", keyed: true,
		doc: "Answers a call that waits for a reply. A token with the right `approve` answers any; one with the right `ask` those that clients may answer. An answer that does not fit the call's schema is 422 `invalid_data`, and the call waits on. If the call has other arguments by now, or another answer, it is 409 `stale`.",
		do:  (*call).reply,
	},
	{
		method: http.MethodPost, path: "/v1/replies/{token}", name: "replyByLink", in: "LinkReply", out: "Taken", open: byLink,
		doc: "Answers the call that a reply link is for. It needs no other token. The first answer counts.",
		do:  (*call).replyByLink,
	},
	{
		method: http.MethodPut, path: "/v1/sessions/{sid}/blobs", name: "storeFile", right: RightAsk, out: "Blob", takes: []string{"*/*"},
		doc:   "Stores a file for the parts of this session's requests: an image, a PDF or text, by its content. Returns a handle, which is good for this session alone, for a day.",
		query: []parameter{{"name", "The file's name, which a model is shown.", text}},
		do:    (*call).storeFile,
	},
}

var serverRoutes = []route{
	{
		method: http.MethodGet, path: "/healthz", name: "health", open: always, out: "Health",
		doc: "Answers if the server lives.",
		do:  func(*call) (any, error) { return Health{Status: "ok"}, nil },
	},
	{
		method: http.MethodGet, path: "/readyz", name: "ready", open: withAuth, out: "Health",
		doc: "Answers if the server reaches the log.",
		do:  (*call).ready,
	},
	{
		method: http.MethodGet, path: "/openapi.json", name: "document", open: withAuth, gives: []string{"application/json"},
		doc: "Returns this document.",
		do:  (*call).openAPI,
	},
	{
		method: http.MethodGet, path: "/docs", name: "docs", open: withAuth, gives: []string{"text/html"},
		doc: "Returns a page that shows this document to people.",
		do:  (*call).docs,
	},
}
