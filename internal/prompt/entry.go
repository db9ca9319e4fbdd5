package prompt

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// entryKind is the kind of an event in a transcript.
type entryKind int

const (
	kindInput    entryKind = iota + 1 // a user's input
	kindTurn                          // a model's turn
	kindResults                       // results of tool calls
	kindEdit                          // an approval that changed a call's arguments
	kindImported                      // messages that were imported
)

// entry is the part of an event that a model is shown. It is shared, and never
// changed.
type entry struct {
	kind    entryKind
	text    string // with its blobs and parts filled in
	images  []executor.Part
	edited  string // of an approval: the arguments that were run
	batch   string // of calls: the batch in which they are numbered
	calls   []session.ObservedCall
	opaque  json.RawMessage
	results []result // of tool calls: one, or those of a batch that settled as a whole
	parts   []*entry // of an import: its messages, each an entry without a kind
	media   int64    // bytes of its images and documents: what the event states, or what they have if that is more
	bare    bool     // they were left out
}

type result struct {
	call   string // the effect's name, r1t2c0; empty: the one call that waited for a sync
	text   string // with its blobs and parts filled in
	cut    bool   // the middle of text is left out
	images []executor.Part
	status session.CallStatus
	fault  *session.Fault
}

// result returns a call's result, nil if the event has none.
func (s *entry) result(call string) *result {
	for i := range s.results {
		if s.results[i].call == call || s.results[i].call == "" {
			return &s.results[i]
		}
	}
	return nil
}

// bytes returns about what s takes in memory, with its overhead in the cache.
func (s *entry) bytes() int {
	n := s.textBytes() + bytesOf(s.images)
	for i := range s.results {
		n += bytesOf(s.results[i].images)
	}
	for _, part := range s.parts {
		n += bytesOf(part.images)
	}
	return n
}

// textBytes is bytes without images and documents.
func (s *entry) textBytes() int {
	n := 384 + len(s.text) + len(s.edited) + len(s.opaque)
	for i := range s.calls {
		c := &s.calls[i]
		n += 128 + len(c.Arguments) + len(c.ToolName) + len(c.ProviderCallID)
	}
	for i := range s.results {
		r := &s.results[i]
		n += 64 + len(r.call) + len(r.text) + len(r.status)
		if r.fault != nil {
			n += 64 + len(r.fault.Code) + len(r.fault.Detail)
		}
	}
	for _, part := range s.parts {
		n += part.textBytes()
	}
	return n
}

// measure sets s.media, given what the event states. An entry that was to have at
// most left bytes is bare if it would have more.
func (s *entry) measure(stated, left int64) {
	s.media, s.bare = max(stated, int64(s.bytes()-s.textBytes())), stated > left
}

// withoutMedia returns the entry without its images and documents: the lines of
// text that name them stay.
func (s *entry) withoutMedia() *entry {
	bare := *s
	bare.bare, bare.images, bare.results = true, nil, slices.Clone(s.results)
	for i := range bare.results {
		bare.results[i].images = nil
	}
	bare.parts = s.eachPart((*entry).withoutMedia)
	return &bare
}

// shortened returns the entry with the beginnings and ends of its texts: a request
// has no room for more. The arguments of calls stay.
func (s *entry) shortened() *entry {
	short := *s
	short.text = middleCut(s.text, earlyHeadBytes, earlyTailBytes, nil)
	short.results = slices.Clone(s.results)
	for i := range short.results {
		r := &short.results[i]
		r.cut = r.cut || len(r.text) > earlyHeadBytes+earlyTailBytes
		r.text = middleCut(r.text, earlyHeadBytes, earlyTailBytes, nil)
	}
	short.parts = s.eachPart((*entry).shortened)
	return &short
}

// bodies make the body into which an event is decoded, by its type. Models are
// shown no other types.
var bodies = map[string]func() any{
	session.TypeRunRequested:           func() any { return new(session.RunRequested) },
	session.TypeSteerRequested:         func() any { return new(session.SteerRequested) },
	session.TypeRunEdited:              func() any { return new(session.RunEdited) },
	session.TypeScheduleSet:            func() any { return new(session.ScheduleSet) },
	session.TypeTranscriptImported:     func() any { return new(session.TranscriptImported) },
	session.TypeApprovalDecided:        func() any { return new(session.ApprovalDecided) },
	session.TypeToolCallsObserved:      func() any { return new(session.ToolCallsObserved) },
	session.TypeGenerationSettled:      func() any { return new(session.GenerationSettled) },
	session.TypeToolCallSettled:        func() any { return new(session.ToolCallSettled) },
	session.TypeReplyGiven:             func() any { return new(session.ReplyGiven) },
	session.TypeChildRequested:         func() any { return new(session.ChildRequested) },
	session.TypeChildSettled:           func() any { return new(session.ChildSettled) },
	session.TypeToolBatchSettled:       func() any { return new(session.ToolBatchSettled) },
	session.TypeWorkspaceSnapshotReady: func() any { return new(session.WorkspaceSnapshotReady) },
	session.TypeWorkspaceSyncUnchanged: func() any { return new(session.WorkspaceSyncUnchanged) },
}

// Body returns the body of an event, as a pointer, if models are shown events of its
// type. An error is a fault, which is permanent.
func Body(e session.Event) (any, error) {
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

// entry returns the entry of an event's body, with the blobs that it refers to.
// An *Error is permanent: a model can't be shown the event. Other errors are
// temporary.
//
// With images and documents of more than left bytes, the entry is without them.
func (r *Reader) entry(ctx context.Context, seq uint64, body any, left int64) (*entry, error) {
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
	case *session.ScheduleSet:
		s.kind, content = kindInput, &b.Input
	case *session.TranscriptImported:
		return r.imported(ctx, seq, b, left)
	case *session.ChildRequested:
		s.kind, content = kindInput, &b.Input
	case *session.ApprovalDecided:
		s.kind, s.edited = kindEdit, b.Arguments
	case *session.ToolCallsObserved:
		s.kind, s.calls, s.batch = kindTurn, b.Calls, batchOf(b.Effect)
		content, opaque = b.Text, b.Opaque
	case *session.GenerationSettled:
		s.kind, content, opaque = kindTurn, b.Text, b.Opaque
	case *session.ToolCallSettled:
		return r.results(ctx, seq, left, *b)
	case *session.ReplyGiven:
		return r.results(ctx, seq, left, b.Settled())
	case *session.ChildSettled:
		return r.childResult(ctx, seq, left, b)
	case *session.ToolBatchSettled:
		return r.results(ctx, seq, left, b.Results...)
	case *session.WorkspaceSnapshotReady: // it does not name the one call that waited for it
		return r.results(ctx, seq, left, session.ToolCallSettled{Status: string(session.CallSucceeded), Output: b.Output})
	case *session.WorkspaceSyncUnchanged:
		return r.results(ctx, seq, left, session.ToolCallSettled{Status: string(session.CallSucceeded), Output: b.Output})
	}
	var err error
	if s.opaque, err = jsonOf(opaque); err != nil {
		return nil, unreadable(seq, "can't be decoded: "+err.Error())
	}
	if s.text, s.images, err = r.content(ctx, seq, content, left, r.whole); err != nil {
		return nil, err
	}
	s.measure(mediaBytes(content), left)
	return s, nil
}

// results returns the results of tool calls. The texts of a batch share one limit,
// since each may be a blob, and so do its images and documents.
func (r *Reader) results(ctx context.Context, seq uint64, left int64, settled ...session.ToolCallSettled) (*entry, error) {
	total := 0
	s := &entry{kind: kindResults, results: make([]result, len(settled))}
	stated := int64(0)
	for i := range settled {
		stated += mediaBytes(settled[i].Output)
	}
	most := left
	if stated > left {
		most = -1
	}
	for i := range settled {
		b := &settled[i]
		cut := false
		text, images, err := r.content(ctx, seq, b.Output, most, r.preview(&cut))
		if err != nil {
			return nil, err
		}
		if total+len(text) > requestBytesMax {
			text, cut = middleCut(text, earlyHeadBytes, earlyTailBytes, nil), true
		}
		total += len(text)
		s.results[i] = result{call: batchOf(b.Effect), text: text, cut: cut, images: images, status: session.CallStatus(b.Status), fault: b.Error}
	}
	s.measure(stated, left)
	return s, nil
}

// childResult returns the result of a call that another session carried out. Of one that a
// later call may continue the model is told by which argument.
func (r *Reader) childResult(ctx context.Context, seq uint64, left int64, b *session.ChildSettled) (*entry, error) {
	s, err := r.results(ctx, seq, left, b.Settled())
	if err != nil || !b.Kept {
		return s, err
	}
	s.results[0].text += "\n\n(To go on with this conversation, call the tool with \"continue\": \"" + b.Effect + "\".)"
	return s, nil
}

// Keep caches a settlement that was just stored, for the session's next turn, as
// if it were read back. A settlement with blobs is not cached. body is a pointer
// to the event's body, and the caller must not change it.
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
	if s, err := r.entry(context.Background(), seq, body, 0); err == nil {
		r.events.Put(eventKey{sid, seq}, s, s.bytes())
	}
}

// Result returns a call's result as a model is shown it.
func (r *Reader) Result(ctx context.Context, settled *session.ToolCallSettled) (string, error) {
	s, err := r.results(ctx, 1, 0, *settled)
	if err != nil {
		return "", err
	}
	text, _ := shownResult(&s.results[0])
	return text, nil
}
