package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Limits of what is shown of a difference.
const (
	changesMax    = 500
	valueBytesMax = 4 << 10
)

// differing collects the paths at which two values differ.
type differing struct {
	changes []Change
	more    bool
}

// changesOf returns how two records differ, and whether there is more.
func changesOf(before, after any) (changes []Change, more bool) {
	d := &differing{}
	d.compare("", before, after)
	return d.changes, d.more
}

// recordOf returns a state as it is stored, as values of JSON. A nil one has nothing.
func recordOf(s *session.State) (v any, err error) {
	if s == nil {
		return map[string]any{}, nil
	}
	text, err := codec.ToJSON(s.Bytes())
	if err != nil {
		return nil, err
	}
	return jsonValue(text)
}

// jsonValue returns JSON as values, with numbers as they are spelled.
func jsonValue(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// compare adds what differs at a path.
func (d *differing) compare(path string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range max(len(a), len(b)) {
				at := path + "[" + strconv.Itoa(i) + "]"
				switch {
				case i >= len(b):
					d.add(at, a[i], nil)
				case i >= len(a):
					d.add(at, nil, b[i])
				default:
					d.compare(at, a[i], b[i])
				}
			}
			return
		}
	default:
		if a == b {
			return
		}
	}
	d.add(path, a, b)
}

func (d *differing) objects(path string, a, b map[string]any) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := strings.TrimPrefix(path+"."+name, ".")
		was, had := a[name]
		is, has := b[name]
		switch {
		case had && has:
			d.compare(at, was, is)
		case had:
			d.add(at, was, nil)
		default:
			d.add(at, nil, is)
		}
	}
}

// add adds a path: nil is a value that is not there.
func (d *differing) add(path string, was, is any) {
	if len(d.changes) == changesMax {
		d.more = true
		return
	}
	d.changes = append(d.changes, Change{Path: path, Old: shortJSON(was), New: shortJSON(is)})
}

// shortJSON returns a value as JSON of a bounded length; empty for nil.
func shortJSON(v any) string {
	if v == nil {
		return ""
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it is shown as text
	if err := e.Encode(v); err != nil {
		return ""
	}
	return cutText(strings.TrimSuffix(text.String(), "\n"), valueBytesMax)
}

// cutText returns the beginning of a text.
func cutText(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
