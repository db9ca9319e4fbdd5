package streams

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// entry is one key of the file, with its value and position.
type entry struct {
	path  string // streams.REFOLD_LOG.storage
	key   string
	value any
	line  int
}

// confToken is a value from a parser that records lines.
type confToken interface {
	Value() any
	Line() int
}

func (e entry) errorf(format string, args ...any) error {
	return fmt.Errorf("streams.conf:%d: %s: %w", e.line, e.path, fmt.Errorf(format, args...))
}

// entriesOf returns the entries of a map in the order of the file, so that errors
// come in that order.
func entriesOf(m map[string]any) []entry {
	all := make([]entry, 0, len(m))
	for key, value := range m {
		e := entry{path: key, key: key, value: value}
		if t, ok := value.(confToken); ok {
			e.value, e.line = t.Value(), t.Line()
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.key, b.key))
	})
	return all
}

// each calls f for each entry of a block until f returns an error.
func (e entry) each(f func(entry) error) error {
	m, ok := e.value.(map[string]any)
	if !ok {
		return e.errorf("want a block { … }, got %v", e.value)
	}
	for _, one := range entriesOf(m) {
		one.path = e.path + "." + one.key
		if err := f(one); err != nil {
			return err
		}
	}
	return nil
}

// decode fills the struct that out points to from a block. Each key is the JSON name
// of a field. It returns the keys of the block, sorted.
func (e entry) decode(out any) (keys []string, err error) {
	target := reflect.ValueOf(out).Elem()
	err = e.each(func(f entry) error {
		field, ok := fieldOf(target, f.key)
		if !ok {
			return f.errorf("unknown key: use a name of the JetStream API")
		}
		keys = append(keys, f.key)
		return f.decodeInto(field)
	})
	slices.Sort(keys)
	return keys, err
}

// fieldOf finds the field of a struct that has this JSON name.
func fieldOf(target reflect.Value, key string) (reflect.Value, bool) {
	for i := range target.NumField() {
		name, _, _ := strings.Cut(target.Type().Field(i).Tag.Get("json"), ",")
		if name == key {
			return target.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func (e entry) decodeInto(field reflect.Value) error {
	value := plain(e.value)
	if field.Type() == reflect.TypeFor[time.Duration]() {
		text, ok := value.(string)
		if !ok {
			return e.errorf("want a duration as text, such as \"2s\" or \"1h\", got %v", value)
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return e.errorf("want a duration such as \"2s\" or \"1h\", got %q", text)
		}
		field.SetInt(int64(d))
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return e.errorf("%w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(field.Addr().Interface()); err != nil {
		return e.errorf("bad value %s: %w", data, err)
	}
	return nil
}

// plain returns a value without its tokens.
func plain(v any) any {
	if t, ok := v.(confToken); ok {
		v = t.Value()
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = plain(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = plain(value)
		}
		return out
	default:
		return v
	}
}
