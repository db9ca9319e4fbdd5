// Package prompt builds a model's request from a generate effect. An effect has
// no text: it names events of the log by sequence, and descriptors of tools and
// files of prompts by hash.
//
// # Path
//
// Reader.Request builds the request of a generation (request.go). Items of the
// transcript become messages (messages.go): each event is decoded once, and its
// text and images are filled in (entry.go, content.go). The prompt is added
// before the transcript (prompt.go). A model may request its tools in the form of
// its provider (rendered.go). StepLog reads the log for a step hook (steplog.go).
//
// # Laws
//
//   - A request follows from the effect and the log alone. Calls are named by
//     position, r1t2c0, whatever ids the model gave them.
//   - A permanent problem is a fault, and ends the run. A temporary one is an
//     error: the effect is delivered again.
//   - A sequence is valid for one connection. A server that lost the end of its log
//     uses sequences again, so a new incarnation empties the cache of events.
//   - Arguments that no event can hold are not read back: the model is shown an
//     object with their size in their place.
//   - Of a result that became a blob for its size, the model is shown the
//     beginning and the end; likewise of any text over ContentBytesMax, and of
//     those before the latest 64 MiB of a transcript. No text is a fault.
//
// # Caches
//
// Four, each bounded by its bytes: events of the log for the next turns of their
// sessions, descriptors of tools and files of prompts by hash, and tools in the
// form of a provider, by provider and toolset. Counts has the hits and misses of
// each.
//
// # Limits
//
// All in limits.go, with their units.
//
// # Testing
//
// log_test.go has a log in memory. The tests of internal/worker compare what Keep
// caches of a settlement with the log.
package prompt
