// Package scenario reads and writes the text form of a session's history: the
// events, and the changes after each one. The same files are the specification of
// the fold, tests of a running system, and the output of `refold replay --export`.
//
// # Path
//
// A file (Parse) is steps with prose between them. Read parses the input of a step
// into an Action: an event to publish, a clock to move, something to show. Picture
// draws the outcome from two Views and the notices between them, so a test of the
// fold and a test of the whole system draw the same lines.
//
// # Input
//
//	install builtin                         the built-in record (this must be the first step)
//	install {…}                             a record as JSON
//	run "text" [config={…}] [roles=["admin"]] [submission=a] [when_busy=steer] [via=ctl]
//	steer "text" [run=1]                    SteerRequested; via=ctl may follow here and below
//	cancel [run=1] [reason="…"]             RunCancelRequested; interrupt, pause and resume likewise
//	resume budget={"tokens":100} via=ctl    RunResumeRequested with a larger budget
//	edit 2 "text"                           RunEdited
//	complete [run=1] [code=c] [detail="…"]  RunCompleted; fail likewise: RunFailed
//	close                                   SessionClosed
//	erase [reason="…"]                      SessionErased
//	approve r1t1c0 [args={…}] [reason="…"]  ApprovalDecided, with the hashes that the view shows; deny likewise; hash=, manifest=; via=ctl, another door than approve
//	reply r1t1c0 "answer" [via=in]          ReplyGiven, with the hash that the view shows; declined="…" in place of the answer; hash=, output={…}
//	configure {…}                           SessionConfigured
//	registry {…}                            ToolRegistrySet; registry builtin: the built-in one
//	overrides session disable=["shell"]     ToolOverridesSet; scope run likewise, and enable=, force=
//	profile anthropic                       ToolProfileSelected
//	host ready [id=h1]                      HostSessionUpdated
//	facts name="value" name=null            FactsSet
//	settle r1t1 calls read_file(a) shell("go test")
//	settle r1t1 text "answer"               GenerationSettled; usage=10/5, 10/5/8 or 10/5/8/2 (in, out, read from and written to the cache) may follow here and above
//	settle r1t1 failed code "detail" [retryable]
//	settle r1t1s ok {"tool_choice":"none"}  StepPrepared; failed code "detail" likewise
//	settle r1t1c0 ok "output" [host=ready]  ToolCallSettled; failed, cancelled, unknown likewise; id=, root=, route= of the host session
//	settle r1t1 batch c0 ok "output" c1 failed code "detail"
//	settle w1                               WakeSettled
//	schedule set NAME "text" next=+1h [at=+0s] [cron="0 9 * * *"] [zone=…] [when_busy=queue] [catch_up=none] [config={…}] [roles=[…]] [rev=1]
//	schedule resume NAME next=+1h           ScheduleResumeRequested; pause and remove likewise, without next
//	fire NAME next=+24h [at=+1h]            ScheduleFired, of the schedule whose wake is open
//	sync NAME [version=1.4] [only=["tools"]] [apply=next_run] [grant={…}] [dry]
//	apply [NAME] [mode=next_run] [hash=…] [prompt_pack=…] [tool_catalog=…]
//	detach NAME                             WorkspaceDetached
//	settle y1 ready {…} [lacks=["…"]]       WorkspaceSnapshotReady; v, kind and space may be left out, files may be paths; sign=SEED by a key, source=package
//	settle y1 unchanged                     WorkspaceSyncUnchanged: with the first manifest of the space that the view shows
//	settle y1 failed code "detail" [problems=[…]]
//	event ctl {…}                           any envelope, as JSON
//	bytes llm c1ff                          any payload, as hex
//	clock +10m                              moves the time of the events that follow
//	show transcript | tools | turn | batch | run | queue | spaces | prompt | skills | progress | call r1t1c0 | effect r1t1
//
// A call's arguments are the values of the schema's required properties, in their
// order; missing ones are "x". name{…} gives them as JSON, name{blob 1048576} as a
// blob of that size. Schemas come from the registry that Read is given: the install
// record's, even after an event has set another.
//
// A ToolCallSettled may have plan_hash=…; a ToolBatchSettled always has one, before
// its results. If it is absent or `plan`, it is the hash of the open batch. A
// decision has the args_hash of the call in the view; hash=… sets another.
//
// # Picture
//
// The first line shows the session's status after its n-th event. The next lines
// are ended effects (-), calls that no longer wait for a person, with the reason
// (!), new effects (+; with the worker, if the host session names one), calls that
// wait for a person (?), notices (>), and other changes (=). An effect that ended
// without a settlement is withdrawn. Calls of a host loop are no effects; they are
// drawn from the view. Hashes are cut to eight digits.
//
// # Limits
//
// Sequences are printed as the number of the session's event, times as the
// difference from the session's clock.
package scenario
