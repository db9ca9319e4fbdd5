package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// Codes of generations that no model can be asked.
const (
	codeTranscript        = "transcript_unreadable"
	codeRequestTooLarge   = "request_too_large"
	codeToolNotRegistered = "descriptor_missing"
)

// Store is what a Reader reads from. Errors are those of natsio and journal.
type Store interface {
	// Events returns the events of sid at these sequences, in this order.
	// natsio.ErrNotFound: the log lacks one of them for good.
	Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error)
	// Blob returns content, and natsio.ErrNotFound if nobody stored it.
	Blob(ctx context.Context, ref codec.Ref) ([]byte, error)
	// Incarnation counts the connections to the server. What the log held over an
	// earlier one it may have lost since, and then its sequences are used again.
	Incarnation() uint64
}

// Reader builds requests. It keeps what it has read for the next turns of the same
// sessions. Its methods may be called at the same time.
type Reader struct {
	store       Store
	events      *transcripts
	tools       *Cache[codec.Hash, executor.Tool]
	prompts     *Cache[codec.Hash, []byte]
	rendered    *renderings
	incarnation atomic.Uint64 // of the connection over which events were read
}

// New returns a Reader of a store.
func New(s Store) *Reader {
	return &Reader{
		store:    s,
		events:   newTranscripts(eventsCacheBytes),
		tools:    NewCache[codec.Hash, executor.Tool](toolsCacheBytes),
		prompts:  NewCache[codec.Hash, []byte](promptsCacheBytes),
		rendered: newRenderings(renderCacheBytes),
	}
}

// entry is what an event says, as far as a model is concerned. It is shared,
// and never changed.
type entry struct {
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
func (s *entry) result(call string) *result {
	for i := range s.results {
		if s.results[i].call == call || s.results[i].call == "" {
			return &s.results[i]
		}
	}
	return nil
}

// bytes is about what s takes in memory.
func (s *entry) bytes() int {
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

// Request builds what a model is asked. A fault says that this generation can
// never be asked; an error, that it can't be now.
func (r *Reader) Request(ctx context.Context, g *session.Generation) (*executor.Request, *executor.Error, error) {
	if incarnation := r.store.Incarnation(); r.incarnation.Swap(incarnation) != incarnation {
		r.events.clear()
	}
	room := &struct { // one allocation
		request executor.Request
		tools   requestTools
	}{
		request: executor.Request{
			Session: g.Session, Effect: g.Effect, Model: g.Model, System: g.System, ToolChoice: g.ToolChoice,
			OutputTokensMax: g.OutputTokensMax, CacheTTL: g.CacheTTL, Toolset: g.Toolset.String(),
		},
		tools: requestTools{kept: r.rendered, of: g},
	}
	request := &room.request
	request.Renderings = &room.tools
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
		return request, nil, nil
	case errors.As(err, &fault):
		return nil, fault, nil
	case errors.Is(err, natsio.ErrNotFound):
		return nil, &executor.Error{Code: codeTranscript, Detail: err.Error()}, nil
	}
	return nil, nil, err
}

// Forget forgets what was read of the log: the server may have lost it since.
func (r *Reader) Forget() { r.events.clear() }

// Counts tell of how much use the caches were.
type Counts struct{ Rendered, Descriptors, Prompts, Events CacheCounts }

// Counts returns the counts since the start.
func (r *Reader) Counts() Counts {
	return Counts{Rendered: r.rendered.counts(), Descriptors: r.tools.counts(), Prompts: r.prompts.counts(), Events: r.events.counts()}
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
func (r *Reader) descriptors(ctx context.Context, hashes []codec.Hash) ([]executor.Tool, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	tools := make([]executor.Tool, 0, len(hashes))
	for _, hash := range hashes {
		tool, ok := r.tools.Get(hash)
		if !ok {
			ref := codec.Ref{Hash: hash}
			content, err := r.store.Blob(ctx, ref)
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
			r.tools.Put(hash, tool, 128+len(content))
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// messages returns the conversation that a generation's items refer to.
func (r *Reader) messages(ctx context.Context, g *session.Generation) ([]executor.Message, error) {
	said, err := r.read(ctx, g)
	if err != nil {
		return nil, err
	}
	messages := make([]executor.Message, 0, len(g.Items))
	var asked *entry // the latest assistant item
	for _, it := range g.Items {
		s := said.of(it.Seq)
		var m executor.Message
		var err error
		switch it.Role {
		case session.RoleUser:
			m, err = userMessage(it, s)
		case session.RoleAssistant:
			asked = s
			m, err = assistantMessage(it, s)
		case session.RoleTool:
			m, err = editedMessage(it, s, asked, said.of(it.Edit))
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
func (r *Reader) read(ctx context.Context, g *session.Generation) (entries, error) {
	all := make(entries, 0, len(g.Items))
	for i := range g.Items {
		it := &g.Items[i]
		if it.Code == "" {
			all = append(all, entryAt{seq: it.Seq})
		}
		if it.Edit != 0 {
			all = append(all, entryAt{seq: it.Edit})
		}
	}
	slices.SortFunc(all, func(a, b entryAt) int { return cmp.Compare(a.seq, b.seq) }) // most are so
	all = slices.CompactFunc(all, func(a, b entryAt) bool { return a.seq == b.seq })
	missing := r.events.look(g.Session, all)
	total := 0
	for i := range all {
		if s := all[i].entry; s != nil {
			total += s.bytes()
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), eventsAtOnce)
		events, err := r.store.Events(ctx, g.Session, missing[:n])
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
			all[at].entry = s
			r.events.put(g.Session, e.Seq, s)
		}
	}
	return all, nil
}
