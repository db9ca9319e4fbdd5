package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

// errNoLog is the error of reading for a request that no bridge made.
var errNoLog = errors.New("no bridge made this step request: there is no log to read")

// StepResult is how an executor ended a call.
type StepResult struct {
	Text  string // the whole, up to 8 MiB; a line stands for each blob that is no text
	Parts []Part // the text, then the images that lines of it name; nil: it has none
	Error *Error // why the call did not succeed; nil if it did, or if that is not known
}

// Input returns the input that the run began with, as a model is shown it: text,
// and images in Parts. Blobs are read, and refused if their bytes are not those
// of their hash. An error wraps *Error if reading again is of no use.
func (s StepRequest) Input(ctx context.Context) (Message, error) {
	e, err := s.event(ctx, s.InputSeq)
	if err != nil {
		return Message{}, err
	}
	said, err := s.reader.said(ctx, e)
	if err != nil {
		return Message{}, err
	}
	return userMessage(session.Item{Seq: s.InputSeq}, said)
}

// Messages returns the conversation so far as the model would be shown it next,
// without steers that wait: inputs, answers, calls with their results, of this
// run and of those before it. They are the latest of the session's transcript,
// from at most 512 items; Cut says that there are earlier ones. Large results
// are shortened as they are for a model. Blobs and errors are as for Input.
func (s StepRequest) Messages(ctx context.Context) ([]Message, error) {
	if s.reader == nil {
		return nil, errNoLog
	}
	return s.reader.messages(ctx, &session.Generation{Session: s.Session, Effect: s.Effect, Items: s.items})
}

// Result returns the result of one of Calls, read from the log. A call that the
// session itself refused or ended has its Code as Error, and nothing is read.
// Blobs and errors are as for Input.
func (s StepRequest) Result(ctx context.Context, c StepCall) (StepResult, error) {
	if c.Code != "" {
		return StepResult{Error: &Error{Code: c.Code}}, nil
	}
	e, err := s.event(ctx, c.Seq)
	if err != nil {
		return StepResult{}, err
	}
	settled, err := endOfCall(e, c.Effect)
	if err != nil {
		return StepResult{}, err
	}
	var result StepResult
	if f := settled.Error; f != nil {
		result.Error = &Error{Code: f.Code, Detail: f.Detail, Retryable: f.Retryable}
	}
	if result.Text, err = s.reader.text(ctx, c.Seq, settled.Output); err != nil {
		return StepResult{}, err
	}
	images, err := s.reader.images(ctx, c.Seq, settled.Output)
	if err != nil {
		return StepResult{}, err
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

// Arguments returns the whole arguments of one of Calls: JSON text as they were
// carried out, or as the model wrote them if they were refused. If they were cut
// they are read from the log, or from a blob if no event could hold them. Errors
// are as for Input.
func (s StepRequest) Arguments(ctx context.Context, c StepCall) (string, error) {
	if !c.ArgumentsCut {
		return c.Arguments, nil
	}
	seq := c.CallsSeq
	if c.Edit != 0 {
		seq = c.Edit
	}
	e, err := s.event(ctx, seq)
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
			return s.whole(ctx, seq, &asked.Calls[i])
		}
	}
	return "", unreadable(seq, "has no arguments of "+c.Effect)
}

// whole returns a call's arguments, also those in a blob.
func (s StepRequest) whole(ctx context.Context, seq uint64, call *session.ObservedCall) (string, error) {
	if call.ArgumentsBlob == nil {
		return call.Arguments, nil
	}
	if call.Size > contentBytesMax {
		return "", tooMuch(seq, contentBytesMax)
	}
	return s.reader.text(ctx, seq, &session.Content{Blob: call.ArgumentsBlob, Size: call.Size})
}

// event returns an event of the session. The log has those that an effect names.
func (s StepRequest) event(ctx context.Context, seq uint64) (session.Event, error) {
	if s.reader == nil {
		return session.Event{}, errNoLog
	}
	events, err := s.reader.wire.Events(ctx, s.Session, []uint64{seq})
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return session.Event{}, unreadable(seq, "is not in the log of session "+s.Session)
	case err != nil:
		return session.Event{}, fmt.Errorf("read the log: %w", err)
	}
	return events[0], nil
}
