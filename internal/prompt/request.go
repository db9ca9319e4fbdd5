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

// Codes of generations whose request can't be built.
const (
	codeTranscript        = "transcript_unreadable"
	codeRequestTooLarge   = "request_too_large"
	codeToolNotRegistered = "descriptor_missing"
)

// Store is what a Reader reads from. Errors are those of natsio and journal.
type Store interface {
	// Events returns the events of sid at these sequences, in this order, and
	// natsio.ErrNotFound if the log has lost one of them.
	Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error)
	// Blob returns content of at most ContentBytesMax bytes, and natsio.ErrNotFound
	// if it is not stored.
	Blob(ctx context.Context, ref codec.Ref) ([]byte, error)
	// Remade makes the content of a lost blob again from what the log has of a
	// session, and stores it: a descriptor, or a manifest of a space. It returns
	// natsio.ErrNotFound for any other content.
	Remade(ctx context.Context, sid string, ref codec.Ref) ([]byte, error)
	// Incarnation counts the connections to the server. The log may have lost
	// events of an earlier connection, and then it uses their sequences again.
	Incarnation() uint64
}

// Reader builds requests. It caches events, tools and prompts for the next turns of
// the same sessions. It is safe for concurrent use.
type Reader struct {
	store       Store
	events      *Cache[eventKey, *entry]
	tools       *Cache[codec.Hash, executor.Tool]
	prompts     *Cache[codec.Hash, []byte]
	rendered    renderings
	incarnation atomic.Uint64 // of the connection from which events were read
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

// Request builds the request of a generation. A fault is permanent; an error is
// temporary.
func (r *Reader) Request(ctx context.Context, g *session.Generation) (*executor.Request, *executor.Error, error) {
	if incarnation := r.store.Incarnation(); r.incarnation.Swap(incarnation) != incarnation {
		r.Forget()
	}
	request := &executor.Request{
		Session: g.Session, Effect: g.Effect, Model: g.Model, System: g.System, ToolChoice: g.ToolChoice,
		OutputTokensMax: g.OutputTokensMax, CacheTTL: g.CacheTTL, Toolset: g.Toolset.String(),
		Renderings: &requestTools{cache: &r.rendered, of: g},
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

// fill adds the content from the log and from blobs to a request.
func (r *Reader) fill(ctx context.Context, g *session.Generation, request *executor.Request) (err error) {
	if request.Params, err = jsonOf(g.Params); err != nil {
		return err
	}
	if request.Format, err = formatOf(g.ResponseFormat); err != nil {
		return err
	}
	if request.Tools, err = r.descriptors(ctx, g.Session, g.Tools); err != nil {
		return err
	}
	if request.Defined, err = r.descriptors(ctx, g.Session, g.Defined); err != nil {
		return err
	}
	items, err := itemsOf(g.Items)
	if err != nil {
		return err
	}
	ref := session.ReadResultRef()
	again := slices.Contains(g.Tools, ref) || slices.Contains(g.Defined, ref)
	if request.Messages, err = r.messages(ctx, g.Session, items, int(g.Cut), again); err != nil {
		return err
	}
	if err := r.prompt(ctx, g, items, request); err != nil {
		return err
	}
	return r.window(ctx, g, len(request.Messages)-len(items), request)
}

// Forget empties the cache of events: the server may have lost them.
func (r *Reader) Forget() { r.events.clear() }

// Counts are the counts of the caches.
type Counts struct{ Rendered, Descriptors, Prompts, Events CacheCounts }

// Counts returns the counts since the start.
func (r *Reader) Counts() Counts {
	return Counts{Rendered: r.rendered.cache.counts(), Descriptors: r.tools.counts(), Prompts: r.prompts.counts(), Events: r.events.counts()}
}

// formatOf returns the format that an answer must have, nil for text.
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

// unreadable is the fault of a transcript with an unreadable event. problem follows
// "event 7" in its text.
func unreadable(seq uint64, problem string) error {
	return &executor.Error{Code: codeTranscript, Detail: "event " + strconv.FormatUint(seq, 10) + " " + problem}
}

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

type descriptor struct {
	ToolName    string          `json:"tool_name"`
	Description string          `json:"description"`
	ArgsSchema  json.RawMessage `json:"args_schema"`
}

func (r *Reader) descriptors(ctx context.Context, sid string, hashes []codec.Hash) ([]executor.Tool, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	tools := make([]executor.Tool, 0, len(hashes))
	for _, hash := range hashes {
		tool, ok := r.tools.Get(hash)
		if !ok {
			ref := codec.Ref{Hash: hash}
			content, err := r.stored(ctx, sid, ref, codeToolNotRegistered, "descriptor "+ref.String())
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

// itemsOf returns the items that an effect lists, of which there are some.
func itemsOf(list session.ItemList) ([]session.Item, error) {
	items, err := list.Items()
	switch {
	case err != nil:
		return nil, &executor.Error{Code: codeTranscript, Detail: err.Error()}
	case len(items) == 0:
		return nil, &executor.Error{Code: codeTranscript, Detail: "the generation has no items"}
	}
	return items, nil
}

// window adds the message in the place of those that left the window, at an index of the
// request's messages, and the one that asks for a summary.
func (r *Reader) window(ctx context.Context, g *session.Generation, at int, request *executor.Request) error {
	if g.Compact != "" {
		request.Compact = true
		request.Messages = append(request.Messages, executor.Message{Role: string(session.RoleUser), Text: g.Compact})
	}
	if g.Cut == 0 && g.Summary == 0 {
		return nil
	}
	first := cutMessage(g.Cut)
	if g.Summary > 0 {
		entries, err := r.read(ctx, g.Session, []session.Item{{Role: session.RoleAssistant, Seq: g.Summary}})
		if err != nil {
			return err
		}
		s := entries[g.Summary]
		if s.kind != kindTurn {
			return unreadable(g.Summary, "is no summary")
		}
		first.Text += "\n\nA summary of them:\n\n" + s.text
	}
	request.Messages = slices.Insert(request.Messages, at, first)
	return nil
}

// messages returns the conversation that items refer to, of which cut earlier items left
// the window. again reports whether the model has the tool that reads results: then it is
// told of what it can read again.
func (r *Reader) messages(ctx context.Context, sid string, items []session.Item, cut int, again bool) ([]executor.Message, error) {
	entries, err := r.read(ctx, sid, items)
	if err != nil {
		return nil, err
	}
	messages := make([]executor.Message, 0, len(items))
	imported, err := importedAmong(items, entries, cut)
	if err != nil {
		return nil, err
	}
	for i := range imported {
		m, err := importedMessage(items[i], imported, i)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	var asked *entry // the latest assistant item
	for _, it := range items[len(imported):] {
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
			m, err = editedMessage(it, s, asked, entries[it.Edit], again)
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// read returns the events of a session's items, by sequence, from the cache or
// the log. An item whose text the session gave needs no event. Images and documents
// are those of the latest events, up to mediaBytesMax: which these are follows from
// the log alone.
func (r *Reader) read(ctx context.Context, sid string, items []session.Item) (map[uint64]*entry, error) {
	seqs := eventsOf(items)
	all := make(map[uint64]*entry, len(seqs))
	total, left := 0, int64(mediaBytesMax)
	for chunk := range slices.Chunk(seqs, eventsAtOnce) {
		events, err := r.fetch(ctx, sid, chunk, all)
		if err != nil {
			return nil, err
		}
		for _, seq := range chunk {
			s := all[seq]
			if s == nil {
				if s, err = r.decoded(ctx, sid, events[seq], left); err != nil {
					return nil, err
				}
			}
			if total+s.textBytes() > requestBytesMax {
				s = s.shortened()
			}
			if total += s.textBytes(); total > requestBytesMax+shortBytesMax {
				return nil, &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("the transcript has more than %d MiB, though its earlier texts are cut: go on in a new session", (requestBytesMax+shortBytesMax)>>20)}
			}
			switch {
			case s.bare:
			case s.media > left:
				s = s.withoutMedia()
			default:
				left -= s.media
			}
			all[seq] = s
		}
	}
	return all, nil
}

// eventsOf returns the sequences of the events that items need, the latest first.
func eventsOf(items []session.Item) []uint64 {
	var seqs []uint64
	for i := range items {
		if items[i].Code == "" {
			seqs = append(seqs, items[i].Seq)
		}
		if items[i].Edit != 0 {
			seqs = append(seqs, items[i].Edit)
		}
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	slices.Reverse(seqs)
	return seqs
}

// fetch adds the entries that are cached to all, and returns the other events.
func (r *Reader) fetch(ctx context.Context, sid string, seqs []uint64, all map[uint64]*entry) (map[uint64]session.Event, error) {
	var missing []uint64
	for _, seq := range slices.Backward(seqs) {
		if s, ok := r.events.Get(eventKey{sid, seq}); ok {
			all[seq] = s
		} else {
			missing = append(missing, seq)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	events, err := r.store.Events(ctx, sid, missing)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	found := make(map[uint64]session.Event, len(events))
	for _, e := range events {
		found[e.Seq] = e
	}
	return found, nil
}

// decoded returns the entry of an event, and caches it if it is whole.
func (r *Reader) decoded(ctx context.Context, sid string, e session.Event, left int64) (*entry, error) {
	body, err := Body(e)
	if err != nil {
		return nil, err
	}
	s, err := r.entry(ctx, e.Seq, body, left)
	if err == nil && !s.bare {
		r.events.Put(eventKey{sid, e.Seq}, s, s.bytes())
	}
	return s, err
}
