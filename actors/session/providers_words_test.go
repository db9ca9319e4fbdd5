package session_test

// The conversation that the items of a generation stand for, read from the log
// by sequence as a bridge reads it, and in no provider's form yet. Each
// provider's form is in the other files providers_*_test.go, and the rules that it
// must keep in package strict.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/proof/strict"
)

// message is one entry of a conversation.
type message struct {
	role   session.Role
	text   string
	calls  []modelCall // of an assistant
	call   string      // role tool: the id of the call that it answers
	name   string      // role tool: by which the call was made
	failed bool        // role tool
}

// modelCall is a call as a model made it: its name and arguments are whatever
// the model wrote. Its id is the effect's name, which is unique in a session;
// ids of providers are not.
type modelCall struct{ id, name, arguments string }

// logged is the events of a history, by sequence, and what was read of them.
type logged struct {
	events map[uint64]session.Event
	read   map[uint64]*words
}

func newLogged() logged {
	return logged{events: map[uint64]session.Event{}, read: map[uint64]*words{}}
}

// words is what an event says to a model.
type words struct {
	typ     string
	text    string
	batch   string // of a turn with calls: what they are numbered in
	calls   []session.ObservedCall
	results []session.ToolCallSettled
	decided session.ApprovalDecided
}

// at returns what the event of a sequence says.
func (l logged) at(seq uint64) (*words, error) {
	if w, ok := l.read[seq]; ok {
		return w, nil
	}
	e, ok := l.events[seq]
	if !ok {
		return nil, fmt.Errorf("event %d is not in the log", seq)
	}
	env := envelopeOf(e.Payload)
	w := &words{typ: env.Type}
	var err error
	switch env.Type {
	case session.TypeRunRequested:
		var b session.RunRequested
		err = codec.Decode(env.Data, &b)
		w.text = spelled(&b.Input)
	case session.TypeSteerRequested:
		var b session.SteerRequested
		err = codec.Decode(env.Data, &b)
		w.text = spelled(&b.Input)
	case session.TypeRunEdited:
		var b session.RunEdited
		err = codec.Decode(env.Data, &b)
		w.text = spelled(&b.Input)
	case session.TypeScheduleSet:
		var b session.ScheduleSet
		err = codec.Decode(env.Data, &b)
		w.text = spelled(&b.Input)
	case session.TypeToolCallsObserved:
		var b session.ToolCallsObserved
		err = codec.Decode(env.Data, &b)
		w.text, w.calls = spelled(b.Text), b.Calls
		w.batch, _, _ = strings.Cut(b.Effect, "a") // attempts of a turn share the names of its calls
	case session.TypeGenerationSettled:
		var b session.GenerationSettled
		err = codec.Decode(env.Data, &b)
		w.text = spelled(b.Text)
	case session.TypeToolCallSettled:
		w.results = make([]session.ToolCallSettled, 1)
		err = codec.Decode(env.Data, &w.results[0])
	case session.TypeToolBatchSettled:
		var b session.ToolBatchSettled
		err = codec.Decode(env.Data, &b)
		w.results = b.Results
	case session.TypeApprovalDecided:
		err = codec.Decode(env.Data, &w.decided)
	case session.TypeWorkspaceSnapshotReady: // of a call that waited for a sync
		var b session.WorkspaceSnapshotReady
		err = codec.Decode(env.Data, &b)
		w.results = []session.ToolCallSettled{{Status: string(session.CallSucceeded), Output: b.Output}}
	case session.TypeReplyGiven:
		var b session.ReplyGiven
		err = codec.Decode(env.Data, &b)
		w.results = []session.ToolCallSettled{b.Settled()}
	case session.TypeChildRequested:
		var b session.ChildRequested
		err = codec.Decode(env.Data, &b)
		w.text = spelled(&b.Input)
	case session.TypeChildSettled:
		var b session.ChildSettled
		err = codec.Decode(env.Data, &b)
		w.results = []session.ToolCallSettled{b.Settled()}
	case session.TypeWorkspaceSyncUnchanged:
		var b session.WorkspaceSyncUnchanged
		err = codec.Decode(env.Data, &b)
		w.results = []session.ToolCallSettled{{Status: string(session.CallSucceeded), Output: b.Output}}
	}
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", seq, err)
	}
	l.read[seq] = w
	return w, nil
}

// spelled is a content's text, with blobs by name.
func spelled(c *session.Content) string {
	switch {
	case c == nil:
		return ""
	case c.Blob != nil:
		return "[" + c.Blob.String() + "]"
	case len(c.Parts) > 0:
		parts := make([]string, len(c.Parts))
		for i := range c.Parts {
			parts[i] = spelled(&c.Parts[i])
		}
		return strings.Join(parts, "\n")
	}
	return c.Text
}

// conversation is what items stand for, as far as they were read.
type conversation struct {
	messages []message
	asked    *words // the latest assistant item's, if results may follow it
}

// read adds what further items stand for. It says which of them stands for
// nothing that can be said.
func (c *conversation) read(l logged, items []session.Item) error {
	for _, it := range items {
		w := &words{}
		var err error
		if it.Code == "" {
			w, err = l.at(it.Seq)
		}
		var m message
		if err == nil {
			m, err = c.message(l, it, w)
		}
		if err != nil {
			return fmt.Errorf("item %d, %s of event %d: %w", len(c.messages), it.Role, it.Seq, err)
		}
		c.messages = append(c.messages, m)
	}
	return nil
}

// answerable says that there is nothing to answer in the end.
func (c *conversation) answerable() error {
	if n := len(c.messages); n == 0 || c.messages[n-1].role == session.RoleAssistant {
		return fmt.Errorf("%d items, and nothing to answer", n)
	}
	return nil
}

func (c *conversation) message(l logged, it session.Item, w *words) (message, error) {
	switch it.Role {
	case session.RoleUser:
		c.asked = &words{}
		if it.Code != "" { // what the session tells the model of its answer
			return message{role: session.RoleUser, text: it.Code + ": " + it.Detail.String()}, nil
		}
		return userMessage(w)
	case session.RoleAssistant:
		c.asked = w
		return assistantMessage(w)
	case session.RoleTool:
		return l.toolMessage(it, w, c.asked)
	}
	return message{}, fmt.Errorf("its role is %q", it.Role)
}

func userMessage(w *words) (message, error) {
	switch w.typ {
	case session.TypeRunRequested, session.TypeSteerRequested, session.TypeRunEdited, session.TypeScheduleSet:
		return message{role: session.RoleUser, text: w.text}, nil
	}
	return message{}, fmt.Errorf("%s is no input", w.typ)
}

func assistantMessage(w *words) (message, error) {
	if w.typ != session.TypeToolCallsObserved && w.typ != session.TypeGenerationSettled {
		return message{}, fmt.Errorf("%s is no turn of a model", w.typ)
	}
	m := message{role: session.RoleAssistant, text: w.text}
	for i, c := range w.calls {
		call := modelCall{id: w.batch + "c" + strconv.Itoa(i), name: c.ToolName, arguments: c.Arguments}
		if c.ArgumentsBlob != nil { // too large to be shown again
			call.arguments = `{"omitted":"` + strconv.FormatInt(c.Size, 10) + ` bytes"}`
		}
		m.calls = append(m.calls, call)
	}
	return m, nil
}

// toolMessage answers a call of the latest turn: with the session's words, or
// with those of the event that settled just this call.
func (l logged) toolMessage(it session.Item, w, asked *words) (message, error) {
	if asked == nil || it.Call < 0 || int(it.Call) >= len(asked.calls) {
		return message{}, fmt.Errorf("the latest turn made no call %d", it.Call)
	}
	m := message{role: session.RoleTool, call: asked.batch + "c" + strconv.Itoa(int(it.Call)), name: asked.calls[it.Call].ToolName}
	if it.Code != "" {
		m.text, m.failed = "error: "+it.Code+": "+it.Detail.String(), true
	} else {
		found := false
		for i := range w.results {
			if r := &w.results[i]; r.Effect == m.call || r.Effect == "" {
				found, m.text, m.failed = true, spelled(r.Output), r.Status != string(session.CallSucceeded)
			}
		}
		if !found {
			return m, fmt.Errorf("%s says nothing of %s", w.typ, m.call)
		}
	}
	if it.Edit != 0 {
		edit, err := l.at(it.Edit)
		if err != nil {
			return m, err
		}
		if edit.decided.Call != m.call || edit.decided.Arguments == "" {
			return m, fmt.Errorf("event %d, %s, did not change the arguments of %s", it.Edit, edit.typ, m.call)
		}
		m.text = "a person changed the arguments to " + edit.decided.Arguments + "\n" + m.text
	}
	if strict.IsBlank(m.text) {
		m.text = "(no output)"
	}
	return m, nil
}
