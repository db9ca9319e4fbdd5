package prompt

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

// stepLog implements executor.StepLog.
type stepLog struct {
	reader *Reader
	of     *executor.StepRequest
	items  []session.Item
}

// StepLog returns what of reads from the log; items are the latest of the
// session's transcript.
func (r *Reader) StepLog(of *executor.StepRequest, items []session.Item) executor.StepLog {
	return &stepLog{reader: r, of: of, items: items}
}

// Input reads the event with the run's input.
func (l *stepLog) Input(ctx context.Context) (executor.Message, error) {
	e, err := l.event(ctx, l.of.InputSeq)
	if err != nil {
		return executor.Message{}, err
	}
	said, err := l.reader.said(ctx, e)
	if err != nil {
		return executor.Message{}, err
	}
	return userMessage(session.Item{Seq: l.of.InputSeq}, said)
}

// Messages reads the conversation.
func (l *stepLog) Messages(ctx context.Context) ([]executor.Message, error) {
	return l.reader.messages(ctx, &session.Generation{Session: l.of.Session, Effect: l.of.Effect, Items: l.items})
}

// Result reads the result of a call.
func (l *stepLog) Result(ctx context.Context, c executor.StepCall) (executor.StepResult, error) {
	e, err := l.event(ctx, c.Seq)
	if err != nil {
		return executor.StepResult{}, err
	}
	settled, err := endOfCall(e, c.Effect)
	if err != nil {
		return executor.StepResult{}, err
	}
	var result executor.StepResult
	if f := settled.Error; f != nil {
		result.Error = &executor.Error{Code: f.Code, Detail: f.Detail, Retryable: f.Retryable}
	}
	if result.Text, err = l.reader.text(ctx, c.Seq, settled.Output); err != nil {
		return executor.StepResult{}, err
	}
	images, err := l.reader.images(ctx, c.Seq, settled.Output)
	if err != nil {
		return executor.StepResult{}, err
	}
	result.Parts = shown(result.Text, images)
	return result, nil
}

// endOfCall returns what an event says of how a call ended.
func endOfCall(e session.Event, call string) (*session.ToolCallSettled, error) {
	env, err := envelopeOf(e)
	if err != nil {
		return nil, err
	}
	var all session.ToolBatchSettled
	switch env.Type {
	case session.TypeToolBatchSettled:
		err = codec.Decode(env.Data, &all)
	case session.TypeToolCallSettled:
		all.Results = make([]session.ToolCallSettled, 1)
		err = codec.Decode(env.Data, &all.Results[0])
	}
	if err != nil {
		return nil, unreadable(e.Seq, "can't be decoded: "+err.Error())
	}
	for i := range all.Results {
		if all.Results[i].Effect == call {
			return &all.Results[i], nil
		}
	}
	return nil, unreadable(e.Seq, "has no result of "+call)
}

// Arguments reads the arguments of a call that are cut.
func (l *stepLog) Arguments(ctx context.Context, c executor.StepCall) (string, error) {
	seq := c.CallsSeq
	if c.Edit != 0 {
		seq = c.Edit
	}
	e, err := l.event(ctx, seq)
	if err != nil {
		return "", err
	}
	env, err := envelopeOf(e)
	if err != nil {
		return "", err
	}
	var asked session.ToolCallsObserved
	var edit session.ApprovalDecided
	switch env.Type {
	case session.TypeToolCallsObserved:
		err = codec.Decode(env.Data, &asked)
	case session.TypeApprovalDecided:
		err = codec.Decode(env.Data, &edit)
	}
	switch {
	case err != nil:
		return "", unreadable(seq, "can't be decoded: "+err.Error())
	case edit.Call == c.Effect:
		return edit.Arguments, nil
	}
	for i := range asked.Calls {
		if callID(placeOf(asked.Effect), i) == c.Effect {
			return l.whole(ctx, seq, &asked.Calls[i])
		}
	}
	return "", unreadable(seq, "has no arguments of "+c.Effect)
}

// whole returns a call's arguments, also those in a blob.
func (l *stepLog) whole(ctx context.Context, seq uint64, call *session.ObservedCall) (string, error) {
	if call.ArgumentsBlob == nil {
		return call.Arguments, nil
	}
	if call.Size > ContentBytesMax {
		return "", tooMuch(seq, ContentBytesMax)
	}
	return l.reader.text(ctx, seq, &session.Content{Blob: call.ArgumentsBlob, Size: call.Size})
}

// event returns an event of the session. The log has those that an effect names.
func (l *stepLog) event(ctx context.Context, seq uint64) (session.Event, error) {
	events, err := l.reader.store.Events(ctx, l.of.Session, []uint64{seq})
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return session.Event{}, unreadable(seq, "is not in the log of session "+l.of.Session)
	case err != nil:
		return session.Event{}, fmt.Errorf("read the log: %w", err)
	}
	return events[0], nil
}
