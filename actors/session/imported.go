package session

import (
	"fmt"

	"github.com/refold/refold/codec"
)

// TranscriptImported makes a conversation that was held elsewhere the head of the session's
// transcript. It comes before the first run, and once. The session reads no blob: the list
// says what each message is, and the blob has what it says.
//
//wire:example {"blob": "sha256-9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f", "messages": [{"role": "user", "offset": 0, "size": 40}, {"calls": 1, "role": "assistant", "offset": 40, "size": 90}, {"role": "tool", "offset": 130, "size": 30}], "size": 160}
type TranscriptImported struct {
	// The messages' content, one after another: an ImportedContent as JSON each.
	Blob codec.Ref `msgpack:"blob"`
	// The messages, in order: the first is a user's. A model's message follows one of a
	// user or of a tool, and as many results follow it as it has calls, in their order.
	Messages []ImportedMessage `msgpack:"messages" lim:"1..ImportedMax"`
	// Size of the blob in bytes.
	Size int64 `msgpack:"size" lim:"1..ImportedBytesMax"`
}

// ImportedMessage is one message of an imported conversation.
type ImportedMessage struct {
	// Of role assistant: calls that it makes.
	Calls int `msgpack:"calls,omitempty" lim:"0..CallsSeenMax"`
	// Where its content begins in the blob: where that of the message before ends.
	Offset int64 `msgpack:"offset" lim:"0..ImportedBytesMax"`
	// Who wrote it.
	Role Role `msgpack:"role"`
	// Bytes of its content in the blob.
	Size int64 `msgpack:"size" lim:"2..ImportedBytesMax"`
}

// ImportedContent is what the blob of a TranscriptImported has of a message, as JSON.
type ImportedContent struct {
	Calls   []ImportedCall `json:"calls,omitempty"`   // of a model
	Content *Content       `json:"content,omitempty"` // nil: empty
	Failed  bool           `json:"failed,omitempty"`  // of a result: that of a call that failed
}

// ImportedCall is a call of an imported message.
type ImportedCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
}

// Limits of imported conversations.
const (
	ImportedMax      = 8_000    // messages
	ImportedBytesMax = 32 << 20 // of their content: what a bridge reads of a blob
)

// ImportedMediaType is that of the blob of a TranscriptImported.
const ImportedMediaType = "text/jsonl"

// fault returns why the messages can't be the head of a conversation; "" if they can.
func (b *TranscriptImported) fault() string {
	at, open, last := int64(0), 0, RoleTool
	for i := range b.Messages {
		m := &b.Messages[i]
		why := ""
		switch {
		case m.Offset != at:
			why = fmt.Sprintf("offset: must be %d, where the message before ends", at)
		case i == 0 && m.Role != RoleUser:
			why = "role: the first message must be a user's"
		case m.Calls > 0 && m.Role != RoleAssistant:
			why = "calls: only a message of role assistant has calls"
		case m.Role == RoleTool && open == 0:
			why = "role: no call before it is without a result"
		case m.Role != RoleTool && open > 0:
			why = fmt.Sprintf("role: %d calls before it have no result", open)
		case m.Role == RoleAssistant && last == RoleAssistant:
			why = "role: a message of role assistant must follow one of another role"
		}
		if why != "" {
			return fmt.Sprintf("messages[%d].%s", i, why)
		}
		if at += m.Size; m.Role == RoleTool {
			open--
		}
		open, last = open+m.Calls, m.Role
	}
	switch {
	case open > 0:
		return fmt.Sprintf("messages: %d calls have no result", open)
	case at != b.Size:
		return fmt.Sprintf("size: the messages add up to %d bytes", at)
	}
	return ""
}

// transcriptImported begins the transcript with a conversation that was held elsewhere.
func (s *State) transcriptImported(b *TranscriptImported) *refusal {
	if why := b.fault(); why != "" {
		return refuse(RejectInvalidData, why)
	}
	if s.Run != nil || s.Runs > 0 || s.ItemCount() > 0 {
		return refuse(RejectIllegalTransition, "the session has a conversation already: import into a new session")
	}
	call := int16(0)
	for i := range b.Messages {
		m := &b.Messages[i]
		it := Item{Role: m.Role, Seq: s.Seq}
		if m.Role == RoleTool {
			it.Call = call
			call++
		} else {
			call = 0
		}
		s.appendItem(it, m.Size)
	}
	s.clipItems()
	return nil
}
