package session

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
)

// Original is what a fold needs of an event whose text was removed: hashes of what was
// published. With them the copy leaves the chain, and the state, that the event left.
type Original struct {
	Leaf    codec.Hash // LeafOf the event
	Content codec.Hash // of a RunRequested: what its submission must repeat; else zero
}

// Filler is a blob that stands for one of a redacted event: it has as many bytes and no
// text.
type Filler struct {
	Ref  codec.Ref
	Size int64
}

// Content returns the blob: blanks after a word that says what it is.
func (f Filler) Content() []byte { return []byte(filler(int(f.Size), 0)) }

// Errors of Redact. The event is unchanged.
var (
	ErrNoText        = errors.New("the event has no text")
	ErrRedacted      = errors.New("the text of the event is removed already")
	ErrImportedEvent = errors.New("an imported conversation is one event of many messages, and can't lose the text of one: delete the session")
)

// Redact returns a copy of an event without its text, and the blobs that the copy names in
// place of the event's. Every text of its data has another one of as many bytes, the same
// for the same text: also in the JSON of arguments, where digits become 1. What remains is
// what a session decides by: type, publisher, time, names of effects, tools, models and
// codes, keys of objects, sizes. What a provider wants back verbatim goes. Bytes that are no
// event become one without anything.
//
// The copy is folded in the event's place. Whether it leaves the same state is for the
// caller to try: a session may still use the text, or have decided by it.
func Redact(e Event) (Event, []Filler, error) {
	if e.Original != nil {
		return Event{}, nil, ErrRedacted
	}
	e.Original = &Original{Leaf: LeafOf(e)}
	env, err := ReadEnvelope(e.Payload)
	if len(env.Data) == 0 {
		env.Data = emptyObject()
	}
	body := EventBody(env.Type)
	switch {
	case err != nil || body == nil || codec.Decode(env.Data, body) != nil:
		if e.Payload, err = (Envelope{}).With(nil); err != nil {
			return Event{}, nil, err
		}
		return e, nil, nil
	case env.Type == TypeSessionTombstone:
		return Event{}, nil, ErrNoText
	case env.Type == TypeTranscriptImported:
		return Event{}, nil, ErrImportedEvent
	}
	if run, ok := body.(*RunRequested); ok {
		e.Original.Content = run.Content(env.Data, nil)
	}
	r := redaction{seen: map[string]int{}}
	data, _ := r.value(make([]byte, 0, len(env.Data)+hashRoom), r.withoutOpaque(env.Data), "")
	if !r.changed {
		return Event{}, nil, ErrNoText
	}
	e.Payload, err = env.With(codec.Raw(data))
	return e, r.fillers, err
}

// decisive are the keys of texts that stay, since a session decides by them. If one is
// missing here, the copy leaves another state, and the caller refuses the event.
var decisive = map[string]bool{
	"active_tools": true, "agent": true, "args_hash": true, "batch": true, "call": true, "code": true, "decision": true, "disable": true,
	"effect": true, "enable": true, "finish_reason": true, "force": true, "how": true, "manifest": true, "media_type": true, "model": true,
	"parent": true, "plan_hash": true, "profile": true, "provider": true, "provider_call_id": true, "roles": true, "root": true, "scope": true,
	"session": true, "status": true, "submission": true, "tool_choice": true, "tool_name": true, "when_busy": true,
}

// blobs are the keys of references to blobs, beside which size stands.
var blobs = map[string]bool{"blob": true, "arguments_blob": true}

// opaqueTo are the keys of values of others, in which no key is decisive.
var opaqueTo = map[string]bool{"context": true, "facts": true, "params": true}

// redaction is the removal of one event's text.
type redaction struct {
	seen    map[string]int // number of each text
	changed bool           // the copy differs
	fillers []Filler
	free    int // containers of opaqueTo that the value is in
}

// withoutOpaque returns the data of a settlement without the items of its provider, which
// may have the text in any form: the provider accepts no others in their place.
func (r *redaction) withoutOpaque(data codec.Raw) codec.Raw {
	entries, err := codec.Entries(nil, data)
	opaque := slices.IndexFunc(entries, func(e codec.Entry) bool { return string(e.Key) == "opaque" })
	if err != nil || opaque < 0 {
		return data
	}
	r.changed = true
	entries = slices.Delete(entries, opaque, opaque+1)
	out := codec.AppendMap(make([]byte, 0, len(data)), len(entries))
	for _, e := range entries {
		out = append(codec.AppendString(out, string(e.Key)), e.Value...)
	}
	return out
}

// value appends the copy of the value at the beginning of b, which stands under key, and
// returns the rest of b. b is canonical.
func (r *redaction) value(out, b []byte, key string) (copied, rest []byte) {
	t, rest, err := codec.Next(b)
	if err != nil {
		panic("session: canonical bytes are not canonical: " + err.Error())
	}
	whole := b[:len(b)-len(rest)]
	switch t.Kind {
	case codec.Text:
		if r.free == 0 && decisive[key] {
			return append(out, whole...), rest
		}
		return codec.AppendString(out, r.text(string(t.Bytes), key)), rest
	case codec.Array:
		out = append(out, whole...)
		for range t.Len {
			out, rest = r.value(out, rest, key)
		}
		return out, rest
	case codec.Map:
		return r.object(append(out, whole...), b, rest, key)
	default:
		return append(out, whole...), rest
	}
}

// object is value for a map of which the head is copied. whole begins with the map, rest
// after its head.
func (r *redaction) object(out, whole, rest []byte, key string) ([]byte, []byte) {
	if opaqueTo[key] {
		r.free++
		defer func() { r.free-- }()
	}
	size := sizeOf(whole)
	t, _, _ := codec.Next(whole)
	for range t.Len {
		name, value, _ := codec.Next(rest)
		out = append(out, rest[:len(rest)-len(value)]...)
		field := string(name.Bytes)
		if v, after, _ := codec.Next(value); r.free == 0 && blobs[field] && v.Kind == codec.Text {
			f := Filler{Size: size}
			f.Ref = codec.RefOf(f.Content())
			r.fillers, r.changed = append(r.fillers, f), true
			out, rest = codec.AppendString(out, f.Ref.String()), after
			continue
		}
		out, rest = r.value(out, value, field)
	}
	return out, rest
}

// sizeOf returns the field size of the map at the beginning of b: 0 without one.
func sizeOf(b []byte) (size int64) {
	t := token{rest: b}
	t.next()
	for range t.Len {
		t.next()
		isSize := string(t.Bytes) == "size"
		t.next()
		if isSize && t.Kind == codec.Number {
			size, _ = t.Int64()
		}
		skip(&t)
	}
	return min(max(size, 0), ImportedBytesMax)
}

// text returns what stands for a text.
func (r *redaction) text(text, key string) string {
	if text == "" {
		return ""
	}
	if key == "arguments" && json.Valid([]byte(text)) {
		return r.json(text)
	}
	return r.number(text)
}

// number returns the filler of a text, which is another one for another text where it has
// the room.
func (r *redaction) number(text string) string {
	r.changed = true
	n, ok := r.seen[text]
	if !ok {
		n = len(r.seen) + 1
		r.seen[text] = n
	}
	return filler(len(text), n)
}

// json returns a JSON text of as many bytes, in which keys and the form of numbers stay.
func (r *redaction) json(text string) string {
	out := []byte(text)
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c >= '0' && c <= '9':
			out[i], r.changed = '1', true
		case c == '"':
			end := i + 1
			for out[end] != '"' {
				if out[end] == '\\' {
					end++
				}
				end++
			}
			if !strings.HasPrefix(strings.TrimLeft(text[end+1:], " \t\r\n"), ":") && end > i+1 {
				copy(out[i+1:end], r.number(text[i+1:end]))
			}
			i = end
		}
	}
	return string(out)
}

// filler returns a text of that many bytes for the text with a number; 0: none.
func filler(bytes, number int) string {
	word := "[redacted]"
	if number > 1 {
		word = "[redacted " + strconv.Itoa(number) + "]"
	}
	switch {
	case len(word) <= bytes:
		return word + strings.Repeat(" ", bytes-len(word))
	case number > 0:
		if digits := strconv.Itoa(number); len(digits) < bytes {
			return strings.Repeat("x", bytes-len(digits)) + digits
		}
	}
	return strings.Repeat("x", bytes)
}
