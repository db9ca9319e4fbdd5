package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// reader fills in the text of a generation: an effect refers to the log by
// sequence, and to the descriptors of tools by hash.
type reader struct {
	wire        wire
	events      *transcripts
	tools       *cache[codec.Hash, executor.Tool]
	prompts     *cache[codec.Hash, []byte]
	rendered    *renderings
	works       atomic.Bool   // the latest request could be built
	incarnation atomic.Uint64 // of the connection over which events were read
}

func newReader(w wire) *reader {
	return &reader{
		wire:     w,
		events:   newTranscripts(eventsCacheBytes),
		tools:    newCache[codec.Hash, executor.Tool](toolsCacheBytes),
		prompts:  newCache[codec.Hash, []byte](promptsCacheBytes),
		rendered: newRenderings(renderCacheBytes),
	}
}

// said is what an event says, as far as a model is concerned. It is shared,
// and never changed.
type said struct {
	typ     string
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
func (s *said) result(call string) *result {
	for i := range s.results {
		if s.results[i].call == call || s.results[i].call == "" {
			return &s.results[i]
		}
	}
	return nil
}

// bytes is about what s takes in memory.
func (s *said) bytes() int {
	n := 256 + len(s.text) + len(s.edited) + len(s.opaque) + bytesOf(s.images)
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

// request builds what a model is asked. A fault says that this generation can
// never be asked; an error, that it can't be now.
func (r *reader) request(ctx context.Context, g *session.Generation) (*executor.Request, *executor.Error, error) {
	if incarnation := r.wire.Incarnation(); r.incarnation.Swap(incarnation) != incarnation {
		r.events.clear()
	}
	room := new(struct { // one allocation
		request executor.Request
		tools   requestTools
	})
	room.tools = requestTools{kept: r.rendered, of: g}
	request := &room.request
	*request = executor.Request{
		Session: g.Session, Effect: g.Effect, Model: g.Model, System: g.System, ToolChoice: g.ToolChoice,
		OutputTokensMax: g.OutputTokensMax, CacheTTL: g.CacheTTL, Toolset: g.Toolset.String(), Renderings: &room.tools,
	}
	params, err := jsonOf(g.Params)
	if err == nil {
		request.Format, err = formatOf(g.ResponseFormat)
	}
	if err == nil {
		request.Params = params
		request.Tools, err = r.descriptors(ctx, g.Tools)
	}
	if err == nil {
		request.Defined, err = r.descriptors(ctx, g.Defined)
	}
	if err == nil {
		request.Messages, err = r.messages(ctx, g)
	}
	if err == nil {
		err = r.prompt(ctx, g, request)
	}
	var fault *executor.Error
	switch {
	case err == nil:
		r.worked(true)
		return request, nil, nil
	case errors.As(err, &fault):
		return nil, fault, nil
	case errors.Is(err, natsio.ErrNotFound):
		return nil, &executor.Error{Code: codeTranscript, Detail: err.Error()}, nil
	}
	r.worked(false)
	return nil, nil, err
}

// worked notes whether a request could be built.
func (r *reader) worked(yes bool) {
	if r.works.Load() != yes {
		r.works.Store(yes)
	}
}

// formatOf returns the form that an answer must have, nil for words.
func formatOf(raw codec.Raw) (*executor.Format, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var f session.ResponseFormat
	if err := codec.Decode(raw, &f); err != nil {
		return nil, &executor.Error{Code: codeTranscript, Detail: "response_format: " + err.Error()}
	}
	if f.Type == session.FormatText {
		return nil, nil
	}
	schema, err := jsonOf(f.Schema)
	return &executor.Format{Name: f.Name, Schema: schema, Strict: f.Strict}, err
}

// unreadable is the fault of a transcript that nobody can read.
func unreadable(seq uint64, what string) error {
	return &executor.Error{Code: codeTranscript, Detail: "event " + strconv.FormatUint(seq, 10) + " " + what}
}

// jsonOf returns a canonical value as JSON, nil for none.
func jsonOf(raw codec.Raw) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	text, err := codec.ToJSON(raw)
	if err != nil {
		return nil, &executor.Error{Code: codeTranscript, Detail: err.Error()}
	}
	return text, nil
}

// descriptor is a tool's descriptor as its blob holds it.
type descriptor struct {
	ToolName    string          `json:"tool_name"`
	Description string          `json:"description"`
	ArgsSchema  json.RawMessage `json:"args_schema"`
}

// descriptors returns what a model is shown of tools, by the hashes of their
// descriptors.
func (r *reader) descriptors(ctx context.Context, hashes []codec.Hash) ([]executor.Tool, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	tools := make([]executor.Tool, 0, len(hashes))
	for _, hash := range hashes {
		tool, ok := r.tools.get(hash)
		if !ok {
			ref := codec.Ref{Hash: hash}
			content, err := r.wire.Blob(ctx, ref)
			if errors.Is(err, natsio.ErrNotFound) {
				return nil, &executor.Error{Code: codeToolNotRegistered, Detail: "no descriptor " + ref.String() + " is stored"}
			}
			if errors.Is(err, journal.ErrOtherBytes) {
				return nil, &executor.Error{Code: codeToolNotRegistered, Detail: "the store holds other bytes as descriptor " + ref.String() + ": restore it from a backup"}
			}
			if err != nil {
				return nil, fmt.Errorf("read descriptor %s: %w", ref, err)
			}
			var d descriptor
			if err := json.Unmarshal(content, &d); err != nil {
				return nil, &executor.Error{Code: codeToolNotRegistered, Detail: ref.String() + ": " + err.Error()}
			}
			tool = executor.Tool{Name: d.ToolName, Description: d.Description, Schema: d.ArgsSchema}
			r.tools.put(hash, tool, 128+len(content))
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// messages returns the conversation that a generation's items refer to.
func (r *reader) messages(ctx context.Context, g *session.Generation) ([]executor.Message, error) {
	words, err := r.read(ctx, g)
	if err != nil {
		return nil, err
	}
	messages := make([]executor.Message, 0, len(g.Items))
	var asked *said // the latest assistant item
	for _, it := range g.Items {
		s := words.of(it.Seq)
		var m executor.Message
		var err error
		switch it.Role {
		case session.RoleUser:
			m, err = userMessage(it, s)
		case session.RoleAssistant:
			asked = s
			m, err = assistantMessage(it, s)
		case session.RoleTool:
			m, err = editedMessage(it, s, asked, words.of(it.Edit))
		default:
			err = unreadable(it.Seq, "has the role "+strconv.Quote(string(it.Role))+": this bridge is too old")
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, &executor.Error{Code: codeTranscript, Detail: "the generation has no items"}
	}
	return messages, nil
}

// read returns what the events of a generation's items say. An item whose text
// the session gave needs no event. What the turn before has read or said is there;
// the rest is read from the log.
func (r *reader) read(ctx context.Context, g *session.Generation) (words, error) {
	all := make(words, 0, len(g.Items))
	for i := range g.Items {
		it := &g.Items[i]
		if it.Code == "" {
			all = append(all, saidAt{seq: it.Seq})
		}
		if it.Edit != 0 {
			all = append(all, saidAt{seq: it.Edit})
		}
	}
	slices.SortFunc(all, func(a, b saidAt) int { return cmp.Compare(a.seq, b.seq) }) // most are so
	all = slices.CompactFunc(all, func(a, b saidAt) bool { return a.seq == b.seq })
	missing := r.events.look(g.Session, all)
	total := 0
	for i := range all {
		if s := all[i].said; s != nil {
			total += s.bytes()
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), eventsAtOnce)
		events, err := r.wire.Events(ctx, g.Session, missing[:n])
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		missing = missing[n:]
		for _, e := range events {
			s, err := r.said(ctx, e)
			if err != nil {
				return nil, err
			}
			if total += s.bytes(); total > requestBytesMax {
				return nil, &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("the transcript has more than %d MiB: go on in a new session", requestBytesMax>>20)}
			}
			at, _ := all.find(e.Seq)
			all[at].said = s
			r.events.put(g.Session, e.Seq, s)
		}
	}
	return all, nil
}

func userMessage(it session.Item, s *said) (executor.Message, error) {
	if s == nil || !s.isInput() {
		return executor.Message{}, unreadable(it.Seq, "is no input")
	}
	return executor.Message{Role: string(session.RoleUser), Text: s.text, Parts: shown(s.text, s.images)}, nil
}

func assistantMessage(it session.Item, s *said) (executor.Message, error) {
	if s == nil || s.typ != session.TypeToolCallsObserved && s.typ != session.TypeGenerationSettled {
		return executor.Message{}, unreadable(it.Seq, "is no turn of a model")
	}
	m := executor.Message{Role: string(session.RoleAssistant), Text: s.text, Opaque: s.opaque}
	if len(s.calls) > 0 {
		m.Calls = make([]executor.MessageCall, 0, len(s.calls))
	}
	for i := range s.calls {
		c := &s.calls[i]
		call := executor.MessageCall{ID: callID(s.batch, i), Name: c.ToolName, Arguments: c.Arguments}
		if c.ArgumentsBlob != nil {
			call.Omitted = max(1, c.Size)
			call.Arguments = omittedArguments(call.Omitted)
		}
		m.Calls = append(m.Calls, call)
	}
	return m, nil
}

// omittedArguments stands for arguments that were too large for an event. They
// are an object, which some providers insist on, and say why they are not what
// the model wrote. What it wrote is not read back: it would be shown, and paid
// for, in every later turn, and the call was refused for its size.
func omittedArguments(bytes int64) string {
	return `{"omitted":"` + strconv.FormatInt(bytes, 10) + ` bytes of arguments"}`
}

// callID names a call as its effect is named.
func callID(batch string, call int) string { return batch + "c" + strconv.Itoa(call) }

// noOutput is what a model is shown of an empty output.
const noOutput = "(no output)"

// isInput reports whether the event is what a user said.
func (s *said) isInput() bool {
	switch s.typ {
	case session.TypeRunRequested, session.TypeSteerRequested, session.TypeRunEdited:
		return true
	}
	return false
}

// editedMessage is toolMessage for a call whose arguments a person may have
// changed: the model's own call stays as it made it, so the result begins by
// saying what was run instead.
func editedMessage(it session.Item, s, asked, edit *said) (executor.Message, error) {
	m, err := toolMessage(it, s, asked)
	if it.Edit == 0 || err != nil {
		return m, err
	}
	if edit == nil || edit.typ != session.TypeApprovalDecided {
		return executor.Message{}, unreadable(it.Edit, "is no approval that changed arguments")
	}
	m.Text = "A person changed the arguments of this call to " + edit.edited + "\n" + m.Text
	if m.Parts != nil {
		m.Parts[0].Text = m.Text
	}
	return m, nil
}

// toolMessage returns the result of the call at it.Call of the latest turn.
func toolMessage(it session.Item, s, asked *said) (executor.Message, error) {
	if asked == nil || it.Call < 0 || it.Call >= len(asked.calls) {
		return executor.Message{}, unreadable(it.Seq, "is the result of a call that no turn made")
	}
	m := executor.Message{Role: string(session.RoleTool), CallID: callID(asked.batch, it.Call)}
	if it.Code == session.CodeAlreadyLoaded { // nothing failed
		m.Text = it.Detail
		return m, nil
	}
	if it.Code != "" {
		m.Text, m.Error = faultText(it.Code, it.Detail), true
		return m, nil
	}
	if s == nil || len(s.results) == 0 {
		return executor.Message{}, unreadable(it.Seq, "is no result of a tool call")
	}
	r := s.result(m.CallID)
	if r == nil {
		return executor.Message{}, unreadable(it.Seq, "has no result of "+m.CallID)
	}
	m.Text, m.Error = shownResult(r)
	m.Parts = shown(m.Text, r.images)
	return m, nil
}

// faultText is how a failure is shown to a model.
func faultText(code, detail string) string {
	return strings.TrimSuffix("error: "+code+": "+detail, ": ")
}
