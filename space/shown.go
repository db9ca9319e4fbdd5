package space

import "strings"

// ShownDocument returns the text by which a model is shown a document: its
// content between two lines with tags.
func ShownDocument(path, text string) string {
	return "<document path=\"" + attribute.Replace(path) + "\">\n" + strings.TrimRight(text, "\n") + "\n</document>"
}

// attribute escapes a path or a name in a tag.
var attribute = strings.NewReplacer("&", "&amp;", "\"", "&quot;", "<", "&lt;", ">", "&gt;")

// ShownText returns the text by which a model is shown system text or a
// message: a template filled in with values, by name. Text that is not a valid
// template, as a prompt ref may be, and variables without a value stay as they
// are. ok is false if the result is longer than max bytes.
func ShownText(text string, values map[string]string, max int) (shown string, ok bool) {
	if _, problems := Vars(text); len(problems) > 0 {
		return text, true
	}
	return Expand(text, func(name string) string {
		if value, given := values[name]; given {
			return value
		}
		return opening + name + closing
	}, max)
}
