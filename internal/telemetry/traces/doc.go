// Package traces makes OpenTelemetry spans from the spans of package timeline and
// from a bridge's starts, and sends them to a collector.
//
// # Path
//
// A session-actor passes ended spans to Tracer.Ended, a bridge its starts to
// Tracer.Started and Tracer.Finished. A sampled span becomes an OTLP message
// (span.go) in a queue; a goroutine sends the queue in batches (export.go).
// `refold trace` makes the same messages from the log (Render).
//
// # Guarantees
//
//   - Ids are hashes of prefix, session and place: the span of an effect that is
//     published twice, of a session that another process took over and of a late
//     export is the same span, without an id in any message.
//   - Nothing waits for a collector. Spans that don't fit into the queue are
//     counted and dropped; `refold trace` can export them later.
//   - No text of a conversation leaves the process unless Content is set.
//
// # Names
//
// names.go has the names of the GenAI conventions as of version 1.41.0. Form.Latest
// selects the newer set, in which one attribute used here has another name.
package traces
