package prompt

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/natsio"
)

type stepLog struct {
	*Reader
	request *executor.StepRequest
	items   session.ItemList
}

// StepLog returns the log as the hook of request reads it; items are the latest
// of the session's transcript.
func (r *Reader) StepLog(request *executor.StepRequest, items session.ItemList) executor.StepLog {
	return &stepLog{Reader: r, request: request, items: items}
}

// Input reads the event with the run's input.
func (l *stepLog) Input(ctx context.Context) (executor.Message, error) {
	body, err := l.body(ctx, l.request.InputSeq)
	if err != nil {
		return executor.Message{}, err
	}
	s, err := l.entry(ctx, l.request.InputSeq, body, mediaBytesMax)
	if err != nil {
		return executor.Message{}, err
	}
	return userMessage(session.Item{Seq: l.request.InputSeq}, s)
}

// Messages reads the conversation.
func (l *stepLog) Messages(ctx context.Context) ([]executor.Message, error) {
	items, err := itemsOf(l.items)
	if err != nil {
		return nil, err
	}
	return l.messages(ctx, l.request.Session, items, 0, false)
}

// Result reads the result of a call.
func (l *stepLog) Result(ctx context.Context, c executor.StepCall) (executor.StepResult, error) {
	body, err := l.body(ctx, c.Seq)
	if err != nil {
		return executor.StepResult{}, err
	}
	var settled []session.ToolCallSettled
	switch b := body.(type) {
	case *session.ToolBatchSettled:
		settled = b.Results
	case *session.ToolCallSettled:
		settled = []session.ToolCallSettled{*b}
	case *session.ReplyGiven:
		settled = []session.ToolCallSettled{b.Settled()}
	case *session.ChildSettled:
		settled = []session.ToolCallSettled{b.Settled()}
	}
	for i := range settled {
		if settled[i].Effect == c.Effect {
			return l.result(ctx, c.Seq, &settled[i])
		}
	}
	return executor.StepResult{}, unreadable(c.Seq, "has no result of "+c.Effect)
}

func (l *stepLog) result(ctx context.Context, seq uint64, settled *session.ToolCallSettled) (result executor.StepResult, err error) {
	if f := settled.Error; f != nil {
		result.Error = &executor.Error{Code: f.Code, Detail: f.Detail, Retryable: f.Retryable}
	}
	var images []executor.Part
	if result.Text, images, err = l.content(ctx, seq, settled.Output, mediaBytesMax, l.whole); err != nil {
		return executor.StepResult{}, err
	}
	result.Parts = shown(result.Text, images)
	return result, nil
}

// Arguments reads the whole arguments of a call, also from a blob.
func (l *stepLog) Arguments(ctx context.Context, c executor.StepCall) (string, error) {
	seq := c.CallsSeq
	if c.Edit != 0 {
		seq = c.Edit
	}
	body, err := l.body(ctx, seq)
	if err != nil {
		return "", err
	}
	switch b := body.(type) {
	case *session.ApprovalDecided:
		if b.Call == c.Effect {
			return b.Arguments, nil
		}
	case *session.ToolCallsObserved:
		for i := range b.Calls {
			if call := &b.Calls[i]; callID(batchOf(b.Effect), i) == c.Effect {
				text, _, err := l.whole(ctx, seq, &session.Content{Text: call.Arguments, Blob: call.ArgumentsBlob, Size: call.Size}, false)
				return text, err
			}
		}
	}
	return "", unreadable(seq, "has no arguments of "+c.Effect)
}

func (l *stepLog) body(ctx context.Context, seq uint64) (any, error) {
	events, err := l.store.Events(ctx, l.request.Session, []uint64{seq})
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return nil, unreadable(seq, "is not in the log of session "+l.request.Session)
	case err != nil:
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return Body(events[0])
}
