// Package timeline derives spans from a session's events: the parts of a run, when
// each began and ended, and with what result. It is pure. A session-actor, a replay
// and an export a month later derive the same spans, because all of them read the
// log.
//
// # Path
//
// A Tracker follows one session: Follow is called after each State.Evolve, with the
// notices and the progress of that event, and returns the spans that ended with it.
// TraceID and SpanID give a Span its ids in a trace.
//
// # Laws
//
// Tests check them on every scenario:
//
//   - The same events give the same spans, however often they are folded.
//   - Places are unique: a session never has two spans of one place.
//   - A span's parent belongs to the same run, begins no later than the span, and
//     ends no earlier.
//   - Once a run has ended, none of its spans is open. A run that begins and ends
//     with one event has one span, of no duration.
//   - A tracker changes nothing in a state.
//
// # Places
//
// A place is the name of a span within its session:
//
//	r1        a run: from its request to RunFinished
//	r1q       its wait in the queue
//	r1p41     a pause; 41 is the sequence of the event that began it
//	r1t2      a turn: from the moment when it is begun until its batch is complete, or its text is there
//	r1t2s     its step hook
//	r1t2a1    an attempt at its generation; r1t2w1 the wait for the next attempt after it
//	r1t2k1    a compaction before its generation
//	r1t2g0    a group of its calls
//	r1t2c0    a call, and r1t2c0p its wait for a person
//
// # Times
//
// Begin and End are the session's clock, in Unix milliseconds, at the events that
// began and ended the span. The clock never goes back.
package timeline
