package service

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/tools/retry"
	"github.com/refold/refold/subjects"
)

// callOptions are what a call needs from its Tools.
type callOptions struct {
	tools    *Tools
	wire     Wire
	header   map[string]string // with secrets
	redactor *secrets.Redactor // of what services were given
}

type callOptionsKey struct{}

// request sends one call, whose arguments fit the schema, to the service. It
// retries where that does no harm. If the instances that may have the call are gone,
// the wait for others counts from when one was heard last.
func (t *Tool) request(ctx context.Context, _ map[string]json.RawMessage) (executor.Result, error) {
	call, _ := function.CallOf(ctx)
	with, ok := ctx.Value(callOptionsKey{}).(callOptions)
	if !ok {
		return executor.Result{}, errors.New("a tool of a service is called through its Tools")
	}
	missedBy := time.Now().Add(with.tools.o.Patience)
	wait, tries := againWaitMin, 0
	for {
		result, once, err := t.send(ctx, with, call)
		var gone *goneError
		switch {
		case errors.As(err, &gone):
			result, once = t.gone()
			missedBy = gone.heard.Add(with.tools.o.Patience)
		case err != nil:
			return result, err
		}
		tries++
		next := time.Now().Add(wait)
		switch {
		case once == never, once == busy && tries >= busyTries, once == missing && next.After(missedBy), !retry.Fits(ctx, next):
			return result, nil
		}
		if err := executor.Wait(ctx, wait); err != nil {
			return result, err
		}
		wait = min(2*wait, againWaitMax)
	}
}

func (t *Tool) send(ctx context.Context, with callOptions, call executor.Call) (executor.Result, again, error) {
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	header := map[string]string{
		subjects.HeaderContentType: "application/json", subjects.HeaderSession: call.Session, subjects.HeaderEffect: call.Effect,
		subjects.HeaderStart: call.Start, subjects.HeaderTool: call.ToolID, subjects.HeaderIdempotencyKey: call.IdempotencyKey,
	}
	if call.Traceparent != "" {
		header[subjects.HeaderTraceParent] = call.Traceparent
	}
	maps.Copy(header, with.header)
	if end, ok := ctx.Deadline(); ok {
		header[subjects.HeaderTimeoutMS] = strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10)
	}
	ctx, done := with.tools.sent(ctx, t.Subject)
	defer done()
	reply, err := with.wire.Request(ctx, presence.ServiceRequest{Subject: t.Subject, Header: header, Data: arguments, Patient: !t.metadata.RetrySafe})
	var gone *goneError
	switch {
	case err != nil && errors.As(context.Cause(ctx), &gone):
		return executor.Result{}, lost, gone
	case err != nil:
		return t.failed(ctx, err)
	}
	result, once := t.resultOf(reply, with.redactor)
	return result, once, nil
}
