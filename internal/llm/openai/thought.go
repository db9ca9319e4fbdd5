package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/refold/refold/internal/llm"
)

// The members in which servers of chat completions send a model's thoughts.
// Some refuse the next turn without them.
const (
	memberThought = "reasoning_content" // text
	memberDetails = "reasoning_details" // objects, which may be signed or encrypted
	memberExtra   = "extra_content"     // of a call: Google's signature
)

// thought is a model's thought, as far as it has arrived.
type thought struct {
	words   strings.Builder
	details []*detail
	some    bool // the model thought
}

// memberThoughts are all members in which servers send thoughts. Those that no
// server wants back are not kept.
var memberThoughts = []string{memberThought, memberDetails, "reasoning", "reasoning_text", "thinking"}

// detail is one object of reasoning_details.
type detail struct {
	members map[string]json.RawMessage
	grown   map[string]*strings.Builder // texts of members that arrive in pieces
}

// add adds the members that the library doesn't know, of a message or, if part
// is set, of a chunk. It returns their size in bytes.
func (t *thought) add(extra map[string]respjson.Field, part bool) int {
	size := 0
	for _, name := range memberThoughts {
		f, ok := extra[name]
		t.some = t.some || ok && !empty(json.RawMessage(f.Raw())) && f.Raw() != "[]"
	}
	if f, ok := extra[memberThought]; ok {
		var words string
		if json.Unmarshal([]byte(f.Raw()), &words) == nil {
			t.words.WriteString(words)
			size += len(words)
		}
	}
	if f, ok := extra[memberDetails]; ok {
		var details []map[string]json.RawMessage
		if json.Unmarshal([]byte(f.Raw()), &details) == nil {
			size += len(f.Raw())
			for _, d := range details {
				t.detail(d, part)
			}
		}
	}
	return size
}

// detail adds a detail, or continues the last one: a piece has the same type
// and index, and no data, which is never split.
func (t *thought) detail(members map[string]json.RawMessage, part bool) {
	n := len(t.details) - 1
	if !part || n < 0 || !t.details[n].goesOn(members) {
		t.details = append(t.details, &detail{members: members, grown: map[string]*strings.Builder{}})
		return
	}
	d := t.details[n]
	for name, value := range members {
		switch {
		case name == "text" || name == "summary":
			d.grow(name, value)
		case len(d.members[name]) == 0 || empty(d.members[name]) || !empty(value):
			d.members[name] = value
		}
	}
}

// goesOn reports whether members continue the same detail. A signature ends it.
func (d *detail) goesOn(members map[string]json.RawMessage) bool {
	if !empty(d.members["signature"]) && !empty(members["text"]) {
		return false
	}
	for _, name := range []string{"type", "index"} {
		if string(d.members[name]) != string(members[name]) {
			return false
		}
	}
	return empty(d.members["data"]) && empty(members["data"])
}

// empty reports whether a member is absent, null or an empty text.
func empty(value json.RawMessage) bool {
	return len(value) == 0 || string(value) == `""` || string(value) == "null"
}

// grow appends to a text. Values that are not text are skipped.
func (d *detail) grow(name string, value json.RawMessage) {
	var more string
	if json.Unmarshal(value, &more) != nil {
		return
	}
	b, ok := d.grown[name]
	if !ok {
		var before string
		_ = json.Unmarshal(d.members[name], &before)
		b = &strings.Builder{}
		b.WriteString(before)
		d.grown[name] = b
	}
	b.WriteString(more)
}

// item returns the object to send back: the members as the server named them.
// It is empty if there are none.
func (t *thought) item() string {
	item := map[string]any{}
	if t.words.Len() > 0 {
		item[memberThought] = t.words.String()
	}
	if len(t.details) > 0 {
		all := make([]map[string]json.RawMessage, len(t.details))
		for i, d := range t.details {
			for name, b := range d.grown {
				d.members[name] = llm.JSON(b.String())
			}
			all[i] = d.members
		}
		item[memberDetails] = all
	}
	if len(item) == 0 {
		return ""
	}
	return string(llm.JSON(item))
}

// extraOf returns a call's extra_content, to be sent back with it, or "".
func extraOf(call string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &members) != nil || empty(members[memberExtra]) {
		return ""
	}
	return string(members[memberExtra])
}

// thoughtOf returns the members of an item that are sent back.
func thoughtOf(p llm.Piece) map[string]any {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Item), &members) != nil {
		return nil
	}
	back := map[string]any{}
	for _, name := range []string{memberThought, memberDetails} {
		if value, ok := members[name]; ok {
			back[name] = value
		}
	}
	return back
}
