package prompt

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// imported returns the entry of an import, with its blob.
func (r *Reader) imported(ctx context.Context, seq uint64, b *session.TranscriptImported, left int64) (*entry, error) {
	data, err := r.blob(ctx, seq, b.Blob)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != b.Size {
		return nil, unreadable(seq, fmt.Sprintf("has a blob of %d bytes, and says %d", len(data), b.Size))
	}
	s := &entry{kind: kindImported, parts: make([]*entry, len(b.Messages))}
	contents := make([]session.ImportedContent, len(b.Messages))
	stated := int64(0)
	for i := range b.Messages {
		m := &b.Messages[i]
		if m.Offset < 0 || m.Size < 0 || m.Offset+m.Size > int64(len(data)) {
			return nil, unreadable(seq, fmt.Sprintf("has a message %d beyond its blob", i))
		}
		if err := json.Unmarshal(data[m.Offset:m.Offset+m.Size], &contents[i]); err != nil || len(contents[i].Calls) != m.Calls {
			return nil, unreadable(seq, fmt.Sprintf("has a message %d that can't be decoded", i))
		}
		stated += mediaBytes(contents[i].Content)
	}
	most := left
	if stated > left {
		most = -1
	}
	for i := range contents {
		c := &contents[i]
		// A result is shown as others are: of a long one the beginning and the end.
		each := r.whole
		if b.Messages[i].Role == session.RoleTool {
			each = r.preview(new(bool))
		}
		part := &entry{calls: make([]session.ObservedCall, len(c.Calls))}
		if part.text, part.images, err = r.content(ctx, seq, c.Content, most, each); err != nil {
			return nil, err
		}
		for k := range c.Calls {
			part.calls[k] = session.ObservedCall{ToolName: c.Calls[k].Name, Arguments: c.Calls[k].Arguments}
		}
		if b.Messages[i].Role == session.RoleTool {
			part.results = []result{{text: part.text, images: part.images}}
			if c.Failed {
				part.results[0].fault = &session.Fault{}
			}
			part.text, part.images = "", nil
		}
		part.batch = fmt.Sprintf("r0t%d", i+1) // a run has no number 0
		s.parts[i] = part
	}
	s.measure(stated, left)
	return s, nil
}

// eachPart returns the entries of an import as fn returns them.
func (s *entry) eachPart(fn func(*entry) *entry) []*entry {
	if s.parts == nil {
		return nil
	}
	parts := make([]*entry, len(s.parts))
	for i, part := range s.parts {
		parts[i] = fn(part)
	}
	return parts
}

// importedAmong returns the entries of the imported messages with which items begin. An
// import is the beginning of a transcript, of which cut items left the window. A list that
// goes on after it has it to its end; a compaction's may end in its middle.
func importedAmong(items []session.Item, entries map[uint64]*entry, cut int) ([]*entry, error) {
	n := 0
	var of *entry
	for n < len(items) && entries[items[n].Seq] != nil && entries[items[n].Seq].kind == kindImported {
		of = entries[items[n].Seq]
		n++
	}
	if n == 0 {
		return nil, nil
	}
	first := len(of.parts) - n
	if n == len(items) {
		first = cut
	}
	if first < 0 || first+n > len(of.parts) {
		return nil, unreadable(items[0].Seq, fmt.Sprintf("has %d messages, and the generation lists %d after %d", len(of.parts), n, first))
	}
	return of.parts[first : first+n], nil
}

// importedMessage returns the message of an item that was imported: parts are the entries
// of the list, and i is the item's place in it.
func importedMessage(it session.Item, parts []*entry, i int) (executor.Message, error) {
	s, at := parts[i], i-1-int(it.Call)
	if it.Role == session.RoleTool && (at < 0 || int(it.Call) >= len(parts[at].calls) || len(s.results) == 0) {
		return executor.Message{}, unreadable(it.Seq, "has the result of a call that no message makes")
	}
	m := executor.Message{Role: string(it.Role)}
	switch it.Role {
	case session.RoleUser:
		text, images := cutText(it, s.text, s.images)
		m.Text, m.Parts = text, shown(text, images)
	case session.RoleAssistant:
		m.Text = s.text
		for k := range s.calls {
			m.Calls = append(m.Calls, executor.MessageCall{ID: callID(s.batch, k), Name: s.calls[k].ToolName, Arguments: s.calls[k].Arguments})
		}
	case session.RoleTool:
		asked, r := parts[at], &s.results[0]
		m.CallID, m.Text, m.Error = callID(asked.batch, int(it.Call)), r.text, r.fault != nil
		if m.Text == "" {
			m.Text = "(no output)"
		}
		if it.Shown == session.ShownCleared {
			m.Text = clearedText(m.CallID, asked.calls[it.Call].ToolName, len(m.Text), false)
			break
		}
		text, images := cutText(it, m.Text, r.images)
		m.Text, m.Parts = text, shown(text, images)
	}
	return m, nil
}
