package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// template is a text with placeholders.
type template struct {
	text  string
	quote func(string) string // of the values; nil: none
}

// placeholder matches a placeholder, or $${, which stands for ${.
var placeholder = regexp.MustCompile(`\$\$\{|\$\{([^}]*)(\}?)`)

// values replace the placeholders.
type values struct {
	text, user, result string
	groups             []string // of the match; [0] is the whole match
}

// parseTemplate parses a text; groups is how many groups it may use.
func parseTemplate(text string, groups int, quote func(string) string) (template, error) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if m[0] == "$${" {
			continue
		}
		if m[2] == "" {
			return template{}, errors.New("${ without its }: write $${ for the characters themselves")
		}
		if err := checkName(m[1], groups); err != nil {
			return template{}, err
		}
	}
	return template{text, quote}, nil
}

// checkName returns nil if name is known and its group exists.
func checkName(name string, groups int) error {
	switch name {
	case "text", "user", "result":
		return nil
	}
	n, err := strconv.Atoi(name)
	switch {
	case err != nil || n < 1 || n > 9:
		return fmt.Errorf("${%s} is none of ${text}, ${user}, ${result}, ${1} to ${9}; write $${ for the characters themselves", name)
	case n > groups:
		return fmt.Errorf("${%d}: the turn's matches, or asked, has %d groups", n, groups)
	}
	return nil
}

// render returns the text with its placeholders replaced.
func (t *template) render(f *values) string {
	return placeholder.ReplaceAllStringFunc(t.text, func(at string) string {
		if at == "$${" {
			return "${"
		}
		value := f.value(at[len("${") : len(at)-1])
		if t.quote != nil {
			value = t.quote(value)
		}
		return value
	})
}

func (f *values) value(name string) string {
	switch name {
	case "text":
		return f.text
	case "user":
		return f.user
	case "result":
		return f.result
	}
	n, err := strconv.Atoi(name)
	if err != nil || n >= len(f.groups) {
		return ""
	}
	return f.groups[n]
}

// parseArguments reads a call's arguments: a mapping becomes JSON, with its
// keys in the order of the file; a text is taken as it is.
func parseArguments(value any, groups int) (template, error) {
	switch v := value.(type) {
	case nil:
		return parseTemplate("{}", 0, nil)
	case string:
		return parseTemplate(v, groups, nil)
	case yaml.MapSlice:
		text, err := toJSON(v)
		if err != nil {
			return template{}, err
		}
		return parseTemplate(text, groups, insideString)
	}
	return template{}, errors.New("is a mapping, or a text that is taken as it is")
}

// toJSON encodes a value of a YAML file as JSON. Placeholders are unchanged:
// JSON escapes none of their characters, and they can only be in strings.
func toJSON(value any) (string, error) {
	switch v := value.(type) {
	case yaml.MapSlice:
		members := make([]string, len(v))
		for i, m := range v {
			text, err := toJSON(m.Value)
			if err != nil {
				return "", err
			}
			members[i] = quoted(fmt.Sprint(m.Key)) + ":" + text
		}
		return "{" + strings.Join(members, ",") + "}", nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			text, err := toJSON(item)
			if err != nil {
				return "", err
			}
			items[i] = text
		}
		return "[" + strings.Join(items, ",") + "]", nil
	case string:
		return quoted(v), nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("%v is nothing that JSON has", value)
	}
	return string(text), nil
}

// quoted returns text as a JSON string, without escaping <, > and &.
func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a text always has a JSON form
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// insideString returns text escaped for the inside of a JSON string.
func insideString(text string) string {
	q := quoted(text)
	return q[1 : len(q)-1]
}
