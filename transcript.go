package refold

import (
	"context"
	"fmt"
	"strings"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// Transcript is the conversation of a session.
type Transcript struct {
	Session string
	Seq     uint64            // of the last event that was read
	Entries []TranscriptEntry // in order: inputs, texts, calls, results, decisions, ends of runs
}

// TranscriptEntry is one entry of a conversation. Its kinds are client.EntryRun,
// EntryInput, EntryText, EntryCall, EntryResult and others.
type TranscriptEntry = client.TranscriptEntry

// Transcript returns the whole conversation, also what left the model's view. It folds
// the log, and needs no session-actor. A text in a blob is read up to 1 MiB; brackets say
// what is left out. It fails with client.ErrNoSession if the session has no event, and
// for a user who may not read the log.
func (s *Session) Transcript(ctx context.Context) (*Transcript, error) {
	if s.rt.unread != nil {
		return nil, fmt.Errorf("transcript of session %s: %w", s.id, s.rt.unread)
	}
	t := &Transcript{Session: s.id}
	last, err := transcript.Each(ctx, s.rt.client, s.id, func(e *transcript.Entry) { t.Entries = append(t.Entries, *e) })
	if err != nil {
		return nil, fmt.Errorf("transcript of session %s: %w", s.id, err)
	}
	t.Seq = last.Seq
	return t, nil
}

// Markdown returns the conversation for people.
func (t *Transcript) Markdown() string {
	return t.print(func(out *strings.Builder) transcript.Format {
		return &transcript.Markdown{Out: out, Session: t.Session}
	})
}

// OpenAI returns the conversation as a messages array of OpenAI's chat API, in JSON. A
// call without a result has one that says so, since the API requires one.
func (t *Transcript) OpenAI() []byte {
	return []byte(t.print(func(out *strings.Builder) transcript.Format { return &transcript.OpenAI{Out: out} }))
}

// Anthropic returns the conversation as a messages array of Anthropic's API, as OpenAI
// does.
func (t *Transcript) Anthropic() []byte {
	return []byte(t.print(func(out *strings.Builder) transcript.Format { return &transcript.Anthropic{Out: out} }))
}

func (t *Transcript) print(format func(*strings.Builder) transcript.Format) string {
	var out strings.Builder
	f := format(&out)
	for i := range t.Entries {
		f.Entry(&t.Entries[i])
	}
	f.End()
	return out.String()
}
