package prompt

import (
	"context"
	"encoding/json"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// entryKind is what an event is to a model.
type entryKind int

const (
	kindInput   entryKind = iota + 1 // what a user said
	kindTurn                         // what a model said
	kindResults                      // of tool calls
	kindEdit                         // an approval that changed a call's arguments
)

// entry is what an event says, as far as a model is concerned. It is shared,
// and never changed.
type entry struct {
	kind    entryKind
	text    string // with its blobs and parts filled in
	images  []executor.Part
	edited  string // of an approval: the arguments that were run instead
	batch   string // of calls: the batch that they are numbered in
	calls   []session.ObservedCall
	opaque  json.RawMessage
	results []result // of tool calls: one, or those of a batch that settled as a whole
}

// result is what became of one tool call.
type result struct {
	call   string // the effect's name, r1t2c0; empty: that of the one call that waited for a sync
	text   string // with its blobs and parts filled in
	images []executor.Part
	status session.CallStatus
	fault  *session.Fault
}

// result returns what became of a call, nil if the event does not say.
func (s *entry) result(call string) *result {
	for i := range s.results {
		if s.results[i].call == call || s.results[i].call == "" {
			return &s.results[i]
		}
	}
	return nil
}

// bytes is about what s takes in memory, its place in the cache included.
func (s *entry) bytes() int {
	n := 384 + len(s.text) + len(s.edited) + len(s.opaque) + bytesOf(s.images)
	for i := range s.calls {
		c := &s.calls[i]
		n += 128 + len(c.Arguments) + len(c.ToolName) + len(c.ProviderCallID)
	}
	for i := range s.results {
		r := &s.results[i]
		n += 64 + len(r.call) + len(r.text) + len(r.status) + bytesOf(r.images)
		if r.fault != nil {
			n += 64 + len(r.fault.Code) + len(r.fault.Detail)
		}
	}
	return n
}

// bodies make what an event is decoded into, by its type. No model is shown others.
var bodies = map[string]func() any{
	session.TypeRunRequested:           func() any { return new(session.RunRequested) },
	session.TypeSteerRequested:         func() any { return new(session.SteerRequested) },
	session.TypeRunEdited:              func() any { return new(session.RunEdited) },
	session.TypeApprovalDecided:        func() any { return new(session.ApprovalDecided) },
	session.TypeToolCallsObserved:      func() any { return new(session.ToolCallsObserved) },
	session.TypeGenerationSettled:      func() any { return new(session.GenerationSettled) },
	session.TypeToolCallSettled:        func() any { return new(session.ToolCallSettled) },
	session.TypeToolBatchSettled:       func() any { return new(session.ToolBatchSettled) },
	session.TypeWorkspaceSnapshotReady: func() any { return new(session.WorkspaceSnapshotReady) },
	session.TypeWorkspaceSyncUnchanged: func() any { return new(session.WorkspaceSyncUnchanged) },
}

// decode returns an event's body. An error is a fault: it can't pass.
func decode(e session.Event) (any, error) {
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		return nil, unreadable(e.Seq, "can't be decoded: "+err.Error())
	}
	bodyOf := bodies[env.Type]
	if bodyOf == nil {
		return nil, unreadable(e.Seq, "is of the type "+env.Type+", which this bridge does not show to models")
	}
	body := bodyOf()
	if err := codec.Decode(env.Data, body); err != nil {
		return nil, unreadable(e.Seq, "can't be decoded: "+err.Error())
	}
	return body, nil
}

// entry returns what an event's body says, with the blobs that it refers to. An
// *Error is final: a model can't be shown the event. Other errors may pass.
func (r *Reader) entry(ctx context.Context, seq uint64, body any) (*entry, error) {
	s := new(entry)
	var content *session.Content
	var opaque codec.Raw
	switch b := body.(type) {
	case *session.RunRequested:
		s.kind, content = kindInput, &b.Input
	case *session.SteerRequested:
		s.kind, content = kindInput, &b.Input
	case *session.RunEdited:
		s.kind, content = kindInput, &b.Input
	case *session.ApprovalDecided:
		s.kind, s.edited = kindEdit, b.Arguments
	case *session.ToolCallsObserved:
		s.kind, s.calls, s.batch = kindTurn, b.Calls, placeOf(b.Effect)
		content, opaque = b.Text, b.Opaque
	case *session.GenerationSettled:
		s.kind, content, opaque = kindTurn, b.Text, b.Opaque
	case *session.ToolCallSettled:
		return r.results(ctx, seq, *b)
	case *session.ToolBatchSettled:
		return r.results(ctx, seq, b.Results...)
	case *session.WorkspaceSnapshotReady: // the one call that waited for it is not named
		return r.results(ctx, seq, session.ToolCallSettled{Status: string(session.CallSucceeded), Output: b.Output})
	case *session.WorkspaceSyncUnchanged:
		return r.results(ctx, seq, session.ToolCallSettled{Status: string(session.CallSucceeded), Output: b.Output})
	}
	var err error
	if s.opaque, err = jsonOf(opaque); err != nil {
		return nil, unreadable(seq, "can't be decoded: "+err.Error())
	}
	if s.text, err = r.text(ctx, seq, content, r.whole); err != nil {
		return nil, err
	}
	s.images, err = r.images(ctx, seq, content)
	return s, err
}

// results returns what became of tool calls. The texts of a batch share one limit,
// since each may be a blob.
func (r *Reader) results(ctx context.Context, seq uint64, settled ...session.ToolCallSettled) (*entry, error) {
	total := 0
	s := &entry{kind: kindResults, results: make([]result, len(settled))}
	for i := range settled {
		b := &settled[i]
		text, err := r.text(ctx, seq, b.Output, r.preview)
		if err != nil {
			return nil, err
		}
		images, err := r.images(ctx, seq, b.Output)
		if err != nil {
			return nil, err
		}
		if total += len(text) + bytesOf(images); total > requestBytesMax {
			return nil, tooMuch(seq, requestBytesMax)
		}
		s.results[i] = result{call: placeOf(b.Effect), text: text, images: images, status: session.CallStatus(b.Status), fault: b.Error}
	}
	return s, nil
}

// Keep keeps what a settlement says that was stored just now, as it would be
// read back: the session's next turn shows it to a model. A text in a blob is left
// to be read. body is a pointer to the event's body, and must not be changed.
func (r *Reader) Keep(sid string, seq uint64, body any) {
	var content *session.Content
	switch b := body.(type) {
	case *session.ToolCallSettled:
		content = b.Output
	case *session.ToolCallsObserved:
		content = b.Text
	case *session.GenerationSettled:
		content = b.Text
	default:
		return
	}
	if content != nil && (content.Blob != nil || len(content.Parts) > 0) {
		return
	}
	if s, err := r.entry(context.Background(), seq, body); err == nil {
		r.events.Put(eventKey{sid, seq}, s, s.bytes())
	}
}

// Result returns what a model is shown of a call's result.
func (r *Reader) Result(ctx context.Context, settled *session.ToolCallSettled) (string, error) {
	s, err := r.results(ctx, 1, *settled)
	if err != nil {
		return "", err
	}
	text, _ := shownResult(&s.results[0])
	return text, nil
}
