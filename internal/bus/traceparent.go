package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// traceParentBytes is the length of every traceparent of version 00.
const traceParentBytes = 55

// traceParentOf returns the trace context of a message, empty if it has none of the
// right length. It is what its publisher says, and decides nothing.
func traceParentOf(h nats.Header) string {
	if parent := h.Get(subjects.HeaderTraceParent); len(parent) == traceParentBytes {
		return parent
	}
	return ""
}

// TraceParentAt returns the trace context that the event at a sequence came with,
// empty if it came with none.
func (b *Bus) TraceParentAt(ctx context.Context, seq uint64) (string, error) {
	m, err := b.leaderGet(ctx, b.names.LogStream(), getRequest{Seq: max(seq, 1)})
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", seq, err)
	}
	return traceParentOf(m.header), nil
}
