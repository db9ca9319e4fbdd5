// Package scenario reads and writes the text form of a session's history:
// given events, when one more, then what it leaves. The same files are the
// specification of the fold, tests against a running system, and what
// `refold replay --export` writes.
//
// # Path
//
// A file (Parse) is steps with prose between them. The input of a step is read
// by Read into an Action: an event to publish, a clock to move, something to
// show. What came of it is drawn by Picture from two Views and the notices
// between them, so that a test of the fold and a test of the whole system draw
// the same lines.
//
// # Input
//
//	install builtin                         the built-in record (this must be the first step)
//	install {…}                             a record as JSON
//	run "text" [config={…}] [submission=a] [when_busy=reject] [via=ctl]
//	configure {…}                           SessionConfigured
//	profile anthropic                       ToolProfileSelected
//	host ready [id=h1]                      HostSessionUpdated
//	facts name="value" name=null            FactsSet
//	settle r1t1 calls read_file(a) shell("go test")
//	settle r1t1 text "answer"               GenerationSettled; usage=10/5 (in, out) may follow
//	settle r1t1 failed code "detail"
//	settle r1t1c0 ok "output" [host=ready]  ToolCallSettled; failed, cancelled, unknown likewise
//	settle w1                               WakeSettled
//	event ctl {…}                           any envelope, as JSON
//	bytes llm c1ff                          any payload, as hex
//	clock +10m                              moves the time of the events that follow
//	show transcript | tools | effect r1t1
//
// A call's arguments are the values of the schema's required properties in
// their order, the missing ones filled with "x"; name{…} gives them as JSON.
//
// # Picture
//
// The first line tells where the session stands after its n-th event. Then
// what ended (-), what is asked (+), what was said (>), what changed (=).
//
// # Limits
//
// Sequences are printed as the number of the session's event, times as the
// distance from the session's clock.
package scenario
