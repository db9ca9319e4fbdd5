// Package traces makes OpenTelemetry spans of what package timeline derives from
// the log and of what a bridge starts, and sends them to a collector.
//
// # Path
//
// A session-actor hands over the spans that ended (Tracer.Ended), a bridge its
// starts (Tracer.Started, Tracer.Finished). A sampled one becomes a message of
// OTLP (span.go) and waits in a queue; a goroutine sends what waits in batches
// (export.go). `refold trace` makes the same messages from the log (Render).
//
// # Guarantees
//
//   - Ids are hashes of prefix, session and place: the span of an effect that is
//     asked twice, of a session that another process took over and of a late
//     export is the same span. Nobody has to carry an id for that.
//   - Nobody waits for a collector. What the queue has no room for is counted and
//     dropped; `refold trace` exports it again at any later time.
//   - No text of a conversation leaves the process unless Content is set.
//
// # Names
//
// names.go has the names of the GenAI conventions as of version 1.41.0. Form.Latest
// gives the newer set, of which one attribute that is used here has another name.
package traces
