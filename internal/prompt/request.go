package prompt

import (
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
	// Blob returns content of at most ContentBytesMax bytes, and natsio.ErrNotFound
	// if nobody stored it.
	Blob(ctx context.Context, ref codec.Ref) ([]byte, error)
	// Incarnation counts the connections to the server. What the log held over an
	// earlier one it may have lost since, and then its sequences are used again.
	Incarnation() uint64
}

// Reader builds requests. It keeps what it has read for the next turns of the same
// sessions. Its methods may be called at the same time.
type Reader struct {
	store       Store
	events      *Cache[eventKey, *entry]
	tools       *Cache[codec.Hash, executor.Tool]
	prompts     *Cache[codec.Hash, []byte]
	rendered    renderings
	incarnation atomic.Uint64 // of the connection over which events were read
}

// eventKey names an event of the log. The session is part of it, so that an effect
// never shows another session's event.
type eventKey struct {
	sid string
	seq uint64
}

// New returns a Reader of a store.
func New(s Store) *Reader {
	return &Reader{
		store:    s,
		events:   NewCache[eventKey, *entry](eventsCacheBytes),
		tools:    NewCache[codec.Hash, executor.Tool](toolsCacheBytes),
		prompts:  NewCache[codec.Hash, []byte](promptsCacheBytes),
		rendered: renderings{cache: NewCache[renderKey, []byte](renderCacheBytes)},
	}
}

// Request builds what a model is asked. A fault says that this generation can
// never be asked; an error, that it can't be now.
func (r *Reader) Request(ctx context.Context, g *session.Generation) (*executor.Request, *executor.Error, error) {
	if incarnation := r.store.Incarnation(); r.incarnation.Swap(incarnation) != incarnation {
		r.Forget()
	}
	request := &executor.Request{
		Session: g.Session, Effect: g.Effect, Model: g.Model, System: g.System, ToolChoice: g.ToolChoice,
		OutputTokensMax: g.OutputTokensMax, CacheTTL: g.CacheTTL, Toolset: g.Toolset.String(),
		Renderings: &requestTools{kept: &r.rendered, of: g},
	}
	err := r.fill(ctx, g, request)
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

// fill fills in what a request has of the log and of blobs.
func (r *Reader) fill(ctx context.Context, g *session.Generation, request *executor.Request) (err error) {
	if request.Params, err = jsonOf(g.Params); err != nil {
		return err
	}
	if request.Format, err = formatOf(g.ResponseFormat); err != nil {
		return err
	}
	if request.Tools, err = r.descriptors(ctx, g.Tools); err != nil {
		return err
	}
	if request.Defined, err = r.descriptors(ctx, g.Defined); err != nil {
		return err
	}
	if request.Messages, err = r.messages(ctx, g); err != nil {
		return err
	}
	return r.prompt(ctx, g, request)
}

// Forget forgets what was read of the log: the server may have lost it since.
func (r *Reader) Forget() { r.events.clear() }

// Counts tell of how much use the caches were.
type Counts struct{ Rendered, Descriptors, Prompts, Events CacheCounts }

// Counts returns the counts since the start.
func (r *Reader) Counts() Counts {
	return Counts{Rendered: r.rendered.cache.counts(), Descriptors: r.tools.counts(), Prompts: r.prompts.counts(), Events: r.events.counts()}
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
			content, err := r.stored(ctx, ref, codeToolNotRegistered, "descriptor "+ref.String())
			if err != nil {
				return nil, err
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
	entries, err := r.read(ctx, g)
	if err != nil {
		return nil, err
	}
	messages := make([]executor.Message, 0, len(g.Items))
	var asked *entry // the latest assistant item
	for _, it := range g.Items {
		s := entries[it.Seq]
		var m executor.Message
		var err error
		switch it.Role {
		case session.RoleUser:
			m, err = userMessage(it, s)
		case session.RoleAssistant:
			asked = s
			m, err = assistantMessage(it, s)
		case session.RoleTool:
			m, err = editedMessage(it, s, asked, entries[it.Edit])
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

// read returns what the events of a generation's items say, by sequence. An item
// whose text the session gave needs no event. What is not kept is read from the log.
func (r *Reader) read(ctx context.Context, g *session.Generation) (map[uint64]*entry, error) {
	all := make(map[uint64]*entry, len(g.Items))
	var missing []uint64
	total := 0
	want := func(seq uint64) {
		if _, known := all[seq]; known {
			return
		}
		s, ok := r.events.Get(eventKey{g.Session, seq})
		if all[seq] = s; ok {
			total += s.bytes()
		} else {
			missing = append(missing, seq)
		}
	}
	for i := range g.Items {
		it := &g.Items[i]
		if it.Code == "" {
			want(it.Seq)
		}
		if it.Edit != 0 {
			want(it.Edit)
		}
	}
	slices.Sort(missing)
	for seqs := range slices.Chunk(missing, eventsAtOnce) {
		events, err := r.store.Events(ctx, g.Session, seqs)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		for _, e := range events {
			body, err := decode(e)
			if err != nil {
				return nil, err
			}
			s, err := r.entry(ctx, e.Seq, body)
			if err != nil {
				return nil, err
			}
			if total += s.bytes(); total > requestBytesMax {
				return nil, &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("the transcript has more than %d MiB: go on in a new session", requestBytesMax>>20)}
			}
			all[e.Seq] = s
			r.events.Put(eventKey{g.Session, e.Seq}, s, s.bytes())
		}
	}
	return all, nil
}
