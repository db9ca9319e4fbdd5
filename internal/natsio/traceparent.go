package natsio

import (
	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// traceParentBytes is the length of every traceparent of version 00.
const traceParentBytes = 55

// TraceParentOf returns the trace context of a message, empty if it has none of the
// right length. It is what its publisher says, and decides nothing.
func TraceParentOf(h nats.Header) string {
	if parent := h.Get(subjects.HeaderTraceParent); len(parent) == traceParentBytes {
		return parent
	}
	return ""
}
