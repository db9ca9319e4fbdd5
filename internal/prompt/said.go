package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// said decodes an event and fetches the text that it refers to. An event that
// a model can't be shown is an *Error; other errors may pass.
func (r *Reader) said(ctx context.Context, e session.Event) (*entry, error) {
	env, err := envelopeOf(e)
	if err != nil {
		return nil, unreadable(e.Seq, "can't be decoded: "+err.Error())
	}
	s := &entry{typ: env.Type}
	var content *session.Content
	switch env.Type {
	case session.TypeRunRequested:
		var b session.RunRequested
		err = codec.Decode(env.Data, &b)
		content = &b.Input
	case session.TypeSteerRequested:
		var b session.SteerRequested
		err = codec.Decode(env.Data, &b)
		content = &b.Input
	case session.TypeRunEdited:
		var b session.RunEdited
		err = codec.Decode(env.Data, &b)
		content = &b.Input
	case session.TypeApprovalDecided:
		var b session.ApprovalDecided
		err = codec.Decode(env.Data, &b)
		s.edited = b.Arguments
	case session.TypeToolCallsObserved:
		var b session.ToolCallsObserved
		err = codec.Decode(env.Data, &b)
		content, s.calls, s.batch = b.Text, b.Calls, placeOf(b.Effect)
		if err == nil {
			s.opaque, err = jsonOf(b.Opaque)
		}
	case session.TypeGenerationSettled:
		var b session.GenerationSettled
		err = codec.Decode(env.Data, &b)
		content = b.Text
		if err == nil {
			s.opaque, err = jsonOf(b.Opaque)
		}
	case session.TypeToolCallSettled:
		var b session.ToolCallSettled
		if err = codec.Decode(env.Data, &b); err == nil {
			return s, r.results(ctx, e.Seq, s, []session.ToolCallSettled{b})
		}
	case session.TypeWorkspaceSnapshotReady:
		var b session.WorkspaceSnapshotReady
		if err = codec.Decode(env.Data, &b); err == nil {
			return s, r.enabled(ctx, e.Seq, s, b.Output)
		}
	case session.TypeWorkspaceSyncUnchanged:
		var b session.WorkspaceSyncUnchanged
		if err = codec.Decode(env.Data, &b); err == nil {
			return s, r.enabled(ctx, e.Seq, s, b.Output)
		}
	case session.TypeToolBatchSettled:
		var b session.ToolBatchSettled
		if err = codec.Decode(env.Data, &b); err == nil {
			return s, r.results(ctx, e.Seq, s, b.Results)
		}
	default:
		return nil, unreadable(e.Seq, "is of the type "+env.Type+", which this bridge does not show to models")
	}
	if err != nil {
		return nil, unreadable(e.Seq, "can't be decoded: "+err.Error())
	}
	if s.text, err = r.text(ctx, e.Seq, content); err == nil {
		s.images, err = r.images(ctx, e.Seq, content)
	}
	return s, err
}

// Keep keeps what a settlement says that was stored just now, as it would be
// read back: the session's next turn shows it to a model, and most often here.
// What is in blobs is left to be read.
func (r *Reader) Keep(sid string, seq uint64, body any) {
	var s *entry
	var content *session.Content
	var opaque codec.Raw
	switch b := body.(type) {
	case *session.ToolCallSettled:
		content = b.Output
		room := new(struct { // one allocation
			said   entry
			result [1]result
		})
		room.result[0] = result{call: placeOf(b.Effect), status: session.CallStatus(b.Status), fault: b.Error}
		s = &room.said
		s.typ, s.results = session.TypeToolCallSettled, room.result[:]
		if content != nil {
			s.results[0].text = content.Text
		}
	case *session.ToolCallsObserved:
		content, opaque = b.Text, b.Opaque
		s = &entry{typ: session.TypeToolCallsObserved, calls: b.Calls, batch: placeOf(b.Effect)}
	case *session.GenerationSettled:
		content, opaque = b.Text, b.Opaque
		s = &entry{typ: session.TypeGenerationSettled}
	default:
		return
	}
	if content != nil && (content.Blob != nil || len(content.Parts) > 0) {
		return
	}
	if content != nil && len(s.results) == 0 {
		s.text = content.Text
	}
	var err error
	if s.opaque, err = jsonOf(opaque); err == nil {
		r.events.put(sid, seq, s)
	}
}

// enabled fills in what a sync says to the call that waited for it.
func (r *Reader) enabled(ctx context.Context, seq uint64, s *entry, output *session.Content) error {
	err := r.results(ctx, seq, s, []session.ToolCallSettled{{Status: string(session.CallSucceeded), Output: output}})
	if err == nil {
		s.results[0].call = ""
	}
	return err
}

// results fills in what became of tool calls. A batch's texts are bounded
// together, since each may be a blob.
func (r *Reader) results(ctx context.Context, seq uint64, s *entry, settled []session.ToolCallSettled) error {
	total := 0
	s.results = make([]result, len(settled))
	for i := range settled {
		b := &settled[i]
		text, err := r.output(ctx, seq, b.Output)
		if err != nil {
			return err
		}
		images, err := r.images(ctx, seq, b.Output)
		if err != nil {
			return err
		}
		if total += len(text) + bytesOf(images); total > requestBytesMax {
			return tooMuch(seq, requestBytesMax)
		}
		s.results[i] = result{call: placeOf(b.Effect), text: text, images: images, status: session.CallStatus(b.Status), fault: b.Error}
	}
	return nil
}

// text returns the text of c: parts are joined by a line break, blobs fetched.
func (r *Reader) text(ctx context.Context, seq uint64, c *session.Content) (string, error) {
	var b strings.Builder
	if err := r.appendText(ctx, seq, c, &b); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (r *Reader) appendText(ctx context.Context, seq uint64, c *session.Content, b *strings.Builder) error {
	switch {
	case c == nil:
	case c.Blob != nil && !session.IsShownAsText(c.MediaType):
		b.WriteString(fileText(c))
	case c.Blob != nil && c.Size > ContentBytesMax:
		return tooMuch(seq, ContentBytesMax)
	case c.Blob != nil:
		content, err := r.blob(ctx, seq, *c.Blob)
		if err != nil {
			return err
		}
		b.WriteString(Valid(string(content)))
	case len(c.Parts) > 0:
		for i := range c.Parts {
			if i > 0 {
				b.WriteByte('\n')
			}
			if err := r.appendText(ctx, seq, &c.Parts[i], b); err != nil {
				return err
			}
		}
	default:
		b.WriteString(c.Text)
	}
	if b.Len() > ContentBytesMax {
		return tooMuch(seq, ContentBytesMax)
	}
	return nil
}

// blob returns the content of a blob that an event refers to.
func (r *Reader) blob(ctx context.Context, seq uint64, ref codec.Ref) ([]byte, error) {
	content, err := r.store.Blob(ctx, ref)
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return nil, unreadable(seq, "refers to "+ref.String()+", which nobody stored")
	case errors.Is(err, journal.ErrOtherBytes):
		return nil, unreadable(seq, "refers to "+ref.String()+", under which the store holds other bytes: restore it from a backup")
	case errors.Is(err, journal.ErrTooLarge):
		return nil, tooMuch(seq, ContentBytesMax)
	case err != nil:
		return nil, fmt.Errorf("read %s of event %d: %w", ref, seq, err)
	}
	return content, nil
}

func tooMuch(seq uint64, max int) error {
	return &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("event %d has more than %d MiB of text", seq, max>>20)}
}

// Result returns what a model is shown of a call's result.
func (r *Reader) Result(ctx context.Context, settled *session.ToolCallSettled) (string, error) {
	s := &entry{typ: session.TypeToolCallSettled}
	if err := r.results(ctx, 1, s, []session.ToolCallSettled{*settled}); err != nil {
		return "", err
	}
	text, _ := shownResult(&s.results[0])
	return text, nil
}
