// Package refold is for a program that owns an agent: a model, a system text and
// tools. Its sessions survive the death of any process, this one included.
//
// # Usage
//
//	rt, err := refold.Open(ctx, embedded.Dir("data"))
//	…
//	defer rt.Close()
//	helper, err := rt.Agent("helper",
//		refold.Model(openai.Model("gpt-4.1")),
//		refold.System("You know the weather."),
//		refold.Tools(refold.Func("weather.get", weather, refold.RetrySafe())))
//	…
//	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?", refold.Submission("order-7"))
//	…
//	for u, err := range run.Updates(ctx) {
//		if text, ok := u.(refold.Text); ok { … }
//	}
//	answer, err := run.Wait(ctx)
//
// A [Runtime] has the log of the sessions, and serves agents. An [Agent] is a model and
// tools; a [Session] is a conversation with it; a [Run] is one request of a session.
// Sessions and runs are in the log, and handles on them do no I/O of their own.
//
// # Where the log is
//
// Package embedded keeps it in a directory, and needs no server: the whole system runs
// in this process. [NATS] is the same program on servers, with any number of processes
// that serve and ask the same agents. Everything else stays the same.
//
// # Definitions
//
// What [Runtime.Agent] is given is the agent's definition. A session gets it with the
// next Ask, also one that began under another prompt or with other tools. A run keeps
// the config that it was requested with. If two programs ask one session with two
// definitions, no run has the other's: the session refuses such a request, and Ask sets
// its own definition and repeats it.
//
// A definition that lacks a tool which the session's overrides, its config or a run
// names is refused, and so is one that binds a tool more loosely than the install
// record of the servers.
//
// # Crashes
//
// A program that is killed and runs again asks with the same [Submission]: it gets the
// same run.
//
//   - Killed before Ask returned: the request is taken once.
//   - Killed in a turn: the model is asked again, and readers get [TextRestarted].
//   - Killed in a call of a [RetrySafe] tool, or just after it: the call starts again,
//     with the same idempotency key. It ran twice, and it is settled once.
//   - Killed in another call: its outcome is unknown. The model is told, and so is the
//     caller, in Answer.Calls.
//   - Killed after the end: Ask returns the run, and Wait its answer at once.
//
// # Reading
//
// [Run.Updates], [Session.Updates] and [Run.Wait] read the log, and fold it in this
// process: what they say is what happened, in the log's order, each thing once, also
// after a lost connection. Text comes earlier, while the model writes it. The position
// of an update is valid in any process. All readers of a session in one process share one
// reading of the log; a slow reader holds up nobody, and loses nothing.
//
// A user who may not read the log is told less, and [Partial] says what.
//
// [Session.Transcript] is the whole conversation, for people and for providers' APIs.
//
// # Rights
//
// On servers with the accounts of refold roles, a program that owns an agent has the role
// app, and one with [ServedElsewhere] has app-ask, or client: docs/agents.md. What a user may not do
// fails with an error that names the right, and the roles that have it.
//
// # People
//
// A tool with [NeedsApproval] waits for a person: [Session.Approvals] shows the call,
// and a decision counts for the arguments that were shown. Steer, Pause, Resume,
// Interrupt and Cancel control runs; each returns when the session took or refused it.
//
// # Testing
//
// Package refoldtest has a model that says what the test says, and a runtime in a
// directory of the test: no key, no network.
//
// # Other packages
//
//   - provider/openai, anthropic, gemini, compatible: models.
//   - tools/mcp, tools/host: tools that are no Go functions, for [ToolsFrom].
//   - bridge, bridge/executor, bridge/function: serve tools and models of a session
//     that somebody else owns.
//   - client: everything that can be done with sessions.
//   - codec, planner, space, subjects, actors: pure. Bytes, plans, manifests, names,
//     and the fold of a session.
//   - cmd: the daemons session-actor and bridge, and the command line program refold.
//
// docs/architecture.md follows an event through them, and docs/stability.md says which of
// them stay as they are.
package refold
