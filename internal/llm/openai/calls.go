package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
)

// partialCall is a call of which some parts have arrived.
type partialCall struct {
	index     int64
	id, name  string
	arguments strings.Builder
	extra     string
	named     int // the chunk that named it last
}

// complete reports whether the arguments are a whole object.
func (c *partialCall) complete() bool {
	text := strings.TrimSpace(c.arguments.String())
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

// callPart is a part of a call.
type callPart struct {
	index                      int64
	indexed                    bool
	id, name, arguments, extra string
}

func newCallPart(d *openai.ChatCompletionChunkChoiceDeltaToolCall) *callPart {
	p := &callPart{index: d.Index, indexed: d.JSON.Index.Valid(), id: d.ID, name: d.Function.Name, arguments: d.Function.Arguments}
	if raw := d.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") || strings.HasPrefix(raw, "[") { // not a text
		p.arguments = raw
	}
	if _, ok := d.JSON.ExtraFields[memberExtra]; ok {
		p.extra = extraOf(d.RawJSON())
	}
	return p
}

// addCall adds a part of a call to the call that it continues, or begins one.
func (b *builder) addCall(p *callPart) {
	call := b.callOf(p)
	switch {
	case call == nil:
		call = &partialCall{index: p.index, id: p.id, name: p.name}
		b.calls = append(b.calls, call)
	case b.repeats(call, p):
		return
	case strings.TrimSpace(call.arguments.String()) == "" && p.name != call.name:
		if strings.HasPrefix(p.name, call.name) { // the name so far
			call.name = ""
		}
		call.name += p.name
	}
	if call.id == "" {
		call.id = p.id
	}
	if p.name != "" {
		call.named = b.chunks
	}
	call.arguments.WriteString(p.arguments)
	if p.extra != "" {
		call.extra = p.extra
	}
	b.bytes += len(p.name) + len(p.arguments) + len(p.extra)
}

// repeats reports whether a part repeats a whole call of an earlier chunk, or its
// name.
func (b *builder) repeats(c *partialCall, p *callPart) bool {
	return c.named < b.chunks && p.name == c.name && p.id != "" && p.id == c.id && c.complete() && (p.arguments == "" || p.arguments == c.arguments.String())
}

// callOf returns the call that a part continues, nil if it begins one. Parts of
// one call share its index, if the server sends one. But some servers send
// several calls with one index, with ids or without, and some a new id or the
// name again with each part. So a part with a name begins a call after a
// complete one, and continues an incomplete one of its name.
func (b *builder) callOf(p *callPart) *partialCall {
	var call *partialCall
	for i := len(b.calls) - 1; i >= 0 && call == nil; i-- {
		if c := b.calls[i]; p.indexed && c.index == p.index || !p.indexed && p.id != "" && p.id == c.id {
			call = c
		}
	}
	if n := len(b.calls); call == nil && n > 0 && (!p.indexed || p.id == "" && p.name == "") {
		call = b.calls[n-1]
	}
	switch {
	case call == nil, p.name == "", b.repeats(call, p):
		return call
	case call.complete():
		return nil
	case strings.TrimSpace(call.arguments.String()) == "":
		same := p.id != "" && p.id == call.id
		if !same && (p.id != "" && call.id != "" || call.named == b.chunks) {
			return nil
		}
	case p.name != call.name:
		return nil
	}
	return call
}
