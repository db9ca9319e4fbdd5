package host

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// whole is an integer argument. JSON Schema counts 3.0 and 3e0 as integers, so
// a call with one passes its schema and must be accepted here.
type whole int64

// UnmarshalJSON reads a whole number in any spelling, up to 2^53.
func (w *whole) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return &json.UnmarshalTypeError{Value: "number", Type: reflect.TypeFor[whole]()}
	}
	*w = whole(f)
	return nil
}

// decode reads a call's arguments into the struct that into points to. Each
// field has a json tag; a field with omitempty may be absent or null. Names are
// compared exactly, and unknown ones refused: silently dropping a misspelt
// option would do something else than the model wanted.
func decode(raw json.RawMessage, into any) error {
	given := map[string]json.RawMessage{}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 {
		if err := json.Unmarshal(trimmed, &given); err != nil || given == nil {
			return refuse(CodeInvalidArguments, "the arguments must be one JSON object")
		}
	}
	v := reflect.ValueOf(into).Elem()
	var takes []string
	for i := range v.NumField() {
		name, optional := argument(v.Type().Field(i))
		takes = append(takes, name)
		value, ok := given[name]
		delete(given, name)
		if ok && bytes.Equal(value, []byte("null")) {
			ok = false
		}
		if !ok {
			if optional {
				continue
			}
			return refuse(CodeInvalidArguments, "%s is missing; it must be %s", name, article(v.Field(i).Type()))
		}
		if err := json.Unmarshal(value, v.Field(i).Addr().Interface()); err != nil {
			return refuse(CodeInvalidArguments, "%s must be %s", name, article(v.Field(i).Type()))
		}
	}
	if len(given) > 0 {
		unknown := slices.Sorted(maps.Keys(given))[0]
		list := "no arguments"
		if len(takes) > 0 {
			list = strings.Join(takes, ", ")
		}
		return refuse(CodeInvalidArguments, "unknown argument %.80q; the tool takes %s", unknown, list)
	}
	return nil
}

func argument(f reflect.StructField) (name string, optional bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, rest == "omitempty"
}

// article describes an argument's type with its article.
func article(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

func positive(name string, n *whole, byDefault int64) (int64, error) {
	if n == nil {
		return byDefault, nil
	}
	if *n < 1 {
		return 0, refuse(CodeInvalidArguments, "%s must be 1 or more", name)
	}
	return int64(*n), nil
}
