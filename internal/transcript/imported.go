package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// imported emits the messages of an import, as far as their blob is read, below a line
// that says how many there are.
func (r *Reader) imported(base Entry, b *session.TranscriptImported) {
	base.Line = fmt.Sprintf("imported %s, %d bytes, %s", Count(len(b.Messages), "message"), b.Size, b.Blob)
	r.Each(&base)
	text := r.text(&session.Content{Blob: &b.Blob, MediaType: session.ImportedMediaType, Size: b.Size})
	if int64(len(text)) != b.Size { // brackets describe the blob
		base.Kind, base.Line, base.Text = client.EntryInput, "", text
		r.Each(&base)
		return
	}
	turn, results := "", 0
	for i := range b.Messages {
		m := &b.Messages[i]
		entry := Entry{Seq: base.Seq, Time: base.Time}
		var c session.ImportedContent
		if err := json.Unmarshal([]byte(text[m.Offset:m.Offset+m.Size]), &c); err != nil {
			entry.Detail = err.Error()
		}
		if m.Role != session.RoleTool {
			turn = fmt.Sprintf("r0t%d", i+1)
		}
		switch entry.Text = r.text(c.Content); m.Role {
		case session.RoleUser:
			entry.Kind = client.EntryInput
		case session.RoleAssistant:
			entry.Turn, entry.Kind = turn, client.EntryText
			if entry.Text == "" && len(c.Calls) > 0 {
				entry.Kind = ""
			}
		case session.RoleTool:
			entry.Kind, entry.Turn, entry.Call = client.EntryResult, turn, fmt.Sprintf("%sc%d", turn, results)
			entry.Tool, entry.Status = r.tools[entry.Call], string(session.CallSucceeded)
			if c.Failed {
				entry.Status = string(session.CallFailed)
			}
			results++
		}
		r.Each(&entry)
		if m.Role != session.RoleTool {
			results = 0
		}
		for k := range c.Calls {
			call := Entry{Kind: client.EntryCall, Seq: base.Seq, Time: base.Time, Turn: turn, Call: fmt.Sprintf("%sc%d", turn, k), Tool: c.Calls[k].Name, Arguments: c.Calls[k].Arguments}
			r.tools[call.Call] = call.Tool
			r.Each(&call)
		}
	}
}
