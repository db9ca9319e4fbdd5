// Package prompt makes of a generate effect what a model is asked. An effect has
// no text: it names events of the log by sequence, and descriptors of tools and
// files of prompts by hash.
//
// # Path
//
// Reader.Request builds the request of a generation (request.go). Items of the
// transcript become messages (messages.go): each event is decoded once, and its
// text and images are filled in (entry.go, content.go). What precedes the
// transcript is added to that (prompt.go). A model may ask for its tools in the
// form of its provider (rendered.go). StepLog is what a step hook reads (steplog.go).
//
// # Laws
//
//   - What a model is shown follows from the effect and the log alone. Calls
//     are named by position, r1t2c0, whatever ids the model gave them.
//   - What can never be read is a fault, and ends the run. What can't be read
//     now is an error: the effect is offered again.
//   - A sequence belongs to one connection. A server that lost the end of its log
//     uses sequences again, so a new incarnation empties the cache of events.
//   - Arguments that no event can hold are not read back: the model is shown an
//     object with their size in their place.
//   - Of a result that became a blob for its size, the model is shown the
//     beginning and the end.
//
// # Caches
//
// Four, each bounded by its bytes: events of the log for the next turns of their
// sessions, descriptors of tools and files of prompts by hash, and tools as a
// provider takes them, by provider and toolset. Counts tells of how much use each was.
//
// # Limits
//
// All in limits.go, with their units.
//
// # Testing
//
// log_test.go has a log in memory. The tests of internal/worker compare what Keep
// keeps of a settlement with what the log says.
package prompt
