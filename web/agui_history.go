package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// aguiMessage is a message of a snapshot.
type aguiMessage struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`              // user, assistant or tool
	Content    any        `json:"content,omitempty"` // text, or a user's parts
	ToolCalls  []aguiCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`

	Metadata *aguiMetadata `json:"metadata,omitempty"`
}

// aguiCall is a call of an assistant's message.
type aguiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // function
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// aguiLogID is the id of a snapshot's message. The ids of a stream's messages are others,
// so that a snapshot replaces them: a page keeps the order of messages that it has, and
// appends those that it has not.
func aguiLogID[N string | uint64](of N) string { return fmt.Sprintf("log-%v", of) }

// aguiHistory is the conversation of the session of a call.
type aguiHistory struct {
	c       *call
	entries []refold.TranscriptEntry
}

// aguiHistory reads the conversation; a session that has not begun has none.
func (c *call) aguiHistory() (h aguiHistory, err error) {
	t, err := c.session().Transcript(c.ctx())
	switch {
	case errors.Is(err, client.ErrNoSession):
		return aguiHistory{c: c}, nil
	case err != nil:
		return h, err
	}
	return aguiHistory{c, t.Entries}, nil
}

// active returns the run that is active, and the sequence of its first event; 0: none is.
func (h aguiHistory) active() (run uint32, began uint64) {
	for i := range h.entries {
		switch e := &h.entries[i]; e.Kind {
		case client.EntryInput:
			run, began = e.Run, e.Seq
		case client.EntryEnd:
			if e.Run == run {
				run, began = 0, 0
			}
		}
	}
	return run, began
}

// all returns all messages.
func (h aguiHistory) all() ([]aguiMessage, error) {
	return h.messages(func(*refold.TranscriptEntry) bool { return true })
}

// until returns the messages of the runs before a run, and those of the run until an
// event.
func (h aguiHistory) until(run uint32, seq uint64) ([]aguiMessage, error) {
	return h.messages(func(e *refold.TranscriptEntry) bool { return e.Run < run || e.Run == run && e.Seq <= seq })
}

// messages returns the messages of some entries.
func (h aguiHistory) messages(has func(*refold.TranscriptEntry) bool) ([]aguiMessage, error) {
	all := []aguiMessage{}
	turn := "" // of the last message of an assistant
	at := 0
	for i := range h.entries {
		e := &h.entries[i]
		if !has(e) {
			continue
		}
		switch e.Kind {
		case client.EntryInput, client.EntrySteer:
			content, err := h.said(e)
			if err != nil {
				return nil, err
			}
			all = append(all, aguiMessage{ID: aguiLogID(e.Seq), Role: "user", Content: content})
		case client.EntryText, client.EntryCall:
			if turn != e.Turn {
				turn, at = e.Turn, len(all)
				all = append(all, aguiMessage{ID: aguiLogID(e.Turn), Role: "assistant"})
			}
			if e.Kind == client.EntryText {
				all[at].Content = e.Text
				continue
			}
			call := aguiCall{ID: e.Call, Type: "function"}
			call.Function.Name, call.Function.Arguments = e.Tool, orObject(e.Arguments)
			all[at].ToolCalls = append(all[at].ToolCalls, call)
		case client.EntryResult:
			result := *e
			result.Arguments = "" // a stream has the result alone, too
			all = append(all, aguiMessage{ID: aguiLogID(e.Call), Role: "tool", ToolCallID: e.Call, Content: transcript.ResultText(&result), Metadata: &aguiMetadata{aguiDetails{Status: e.Status, Code: e.Code}}})
		}
	}
	return all, nil
}

// said returns the content of a user's message: its text, or its parts if it has files,
// which are handles.
func (h aguiHistory) said(e *refold.TranscriptEntry) (any, error) {
	if !strings.ContainsAny(e.Text, "[\n") { // the text of several parts has line breaks, that of a file brackets
		return e.Text, nil
	}
	content, err := h.c.client.Input(h.c.ctx(), e.Seq)
	if err != nil {
		return nil, err
	}
	var parts []aguiPart
	files := false
	for i := range content.Parts {
		of := &content.Parts[i]
		if of.Blob == nil {
			parts = append(parts, aguiPart{Type: "text", Text: of.Text})
			continue
		}
		blob, err := h.c.handle(*of)
		if err != nil {
			return nil, err
		}
		file := aguiPart{Type: "document", Source: &aguiSource{Type: "file", Provider: aguiProvider, Value: blob.Blob, MimeType: of.MediaType}}
		if strings.HasPrefix(of.MediaType, "image/") {
			file.Type = "image"
		}
		if of.Name != "" {
			file.Metadata = map[string]string{"name": of.Name}
		}
		parts, files = append(parts, file), true
	}
	if !files {
		return e.Text, nil
	}
	return parts, nil
}

// orObject returns the arguments of a call; without any they are {}.
func orObject(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	return arguments
}

// snapshotBytesMax is the size of the largest snapshot: HttpAgent reads events of at most
// 10 MiB.
const snapshotBytesMax = 8 << 20

// fitting returns the last messages that fit a snapshot, from one of a user on, and how
// many are left out.
func fitting(all []aguiMessage) (kept []aguiMessage, left int) {
	size, first := 0, len(all)
	for i := len(all) - 1; i >= 0; i-- {
		text, _ := json.Marshal(&all[i]) // it has texts, and JSON
		if size += len(text); size > snapshotBytesMax {
			return all[first:], first
		}
		if all[i].Role == "user" {
			first = i
		}
	}
	return all, 0
}

// runOfCall returns the run of a call, r1t2c0.
func runOfCall(call string) uint32 {
	run, _, _ := strings.Cut(strings.TrimPrefix(call, "r"), "t")
	n, _ := strconv.ParseUint(run, 10, 32) // 0: it is no call's name
	return uint32(n)
}
