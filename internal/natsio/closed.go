package natsio

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// ClosedError means that the client library closed the connection for good, and does
// not reconnect: the server reported a violation. It is an ErrClosed. The caller must
// connect again.
type ClosedError struct {
	Where string
	Cause error // what the server reported
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("the connection to %s was closed for good: %v", e.Where, e.Cause)
}

// Is reports that it is an ErrClosed.
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

func (e *ClosedError) Unwrap() error { return e.Cause }

// onClosed records why the client library closed the connection.
func (c *Conn) onClosed(nc *nats.Conn) {
	if c.closing.Load() {
		return
	}
	cause := nc.LastError()
	if cause == nil {
		cause = nats.ErrConnectionClosed
	}
	err := &ClosedError{Where: c.Where, Cause: cause}
	c.Log.Error("nats_closed", "error", err.Error())
	c.closed(err)
}

// WhileOpen returns a context that ends when the connection is closed for good, with a
// *ClosedError as its cause. It does not end when the caller closes the connection.
// The caller must call stop.
func (c *Conn) WhileOpen(ctx context.Context) (open context.Context, stop func()) {
	open, cancel := context.WithCancelCause(ctx)
	unregister := context.AfterFunc(c.open, func() { cancel(context.Cause(c.open)) })
	return open, func() {
		unregister()
		cancel(nil)
	}
}

// ClosedForGood returns a *ClosedError if the client library closed the connection,
// nil otherwise.
func (c *Conn) ClosedForGood() error { return context.Cause(c.open) }
