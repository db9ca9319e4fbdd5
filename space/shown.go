package space

import "strings"

// ShownDocument returns what a model is shown of a document: its text between two
// lines that mark it as one.
func ShownDocument(path, text string) string {
	return "<document path=\"" + attribute.Replace(path) + "\">\n" + strings.TrimRight(text, "\n") + "\n</document>"
}

// attribute escapes a path in the mark of a document.
var attribute = strings.NewReplacer("&", "&amp;", "\"", "&quot;", "<", "&lt;", ">", "&gt;")

// ShownText returns what a model is shown of system text or a message: a template
// filled in with values, by name. Text that is no template, which only a prompt ref
// can be, is shown as it is, and so is a variable without a value. ok is false if it
// is longer than max bytes.
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
