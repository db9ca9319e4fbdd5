package bridge

import (
	"context"
	"errors"
	"time"
)

// runContext is what an executor runs under: it ends with its parent, when stop
// is called, and when the run time is over. context.WithTimeoutCause on top of
// WithCancelCause would be the same with two contexts for each effect.
type runContext struct {
	context.Context
	deadline time.Time
}

func withRunTime(parent context.Context, d time.Duration) (context.Context, context.CancelCauseFunc) {
	inner, end := context.WithCancelCause(parent)
	ctx := &runContext{Context: inner, deadline: time.Now().Add(d)}
	if limit, ok := parent.Deadline(); ok && limit.Before(ctx.deadline) {
		ctx.deadline = limit
	}
	timer := time.AfterFunc(d, func() { end(errRunTime) })
	return ctx, func(cause error) {
		timer.Stop()
		end(cause)
	}
}

// Deadline returns when the run time is over.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Err returns context.DeadlineExceeded if it was the run time that ended it.
func (c *runContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errRunTime) {
		return context.DeadlineExceeded
	}
	return err
}
