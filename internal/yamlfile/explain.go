package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/codec/nearest"
)

// Explain formats an error of the YAML library for people: with line, column
// and the lines around it. For an unknown key it suggests the nearest key of v,
// into which the file was decoded.
func Explain(err error, v any) error {
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var misplaced *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unknown):
		if meant := nearest.Name(unknown.Token.Value, keys(reflect.TypeOf(v), map[reflect.Type]bool{})); meant != "" {
			unknown.Message += fmt.Sprintf("; did you mean %q?", meant)
		}
	case errors.As(err, &mistyped):
		err = &yaml.SyntaxError{Token: mistyped.Token, Message: fmt.Sprintf("a %s should stand here", mistyped.DstType.Kind())}
	case errors.As(err, &misplaced):
		err = &yaml.SyntaxError{Token: misplaced.Token, Message: fmt.Sprintf("a %s stands where a %s should", misplaced.Actual, misplaced.Expected)}
	}
	return errors.New(yaml.FormatError(err, false, true))
}

// keys returns the keys of a type and of all types within it.
func keys(t reflect.Type, seen map[reflect.Type]bool) (all []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return keys(t.Elem(), seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	var inner []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case name == "-":
			continue
		case name != "":
			all = append(all, name)
		case f.IsExported() && !strings.Contains(options, "inline"):
			all = append(all, strings.ToLower(f.Name))
		}
		inner = append(inner, keys(f.Type, seen)...)
	}
	return append(all, inner...)
}
