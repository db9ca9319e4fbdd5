package planner

import (
	"strconv"
	"strings"

	"github.com/refold/refold/codec/nearest"
)

// String returns the failure for the model that made the call: the path, and
// what the schema requires there, as in /unit: is one of "c", "f". Arguments as
// a whole have no path.
func (f *failure) String() string {
	const pathBytesMax = 120 // leaves room for the rest of a detail
	text := strconv.QuoteToASCII(f.pointer)
	if text = text[1 : len(text)-1]; text != "" {
		text = clip(text, pathBytesMax) + ": "
	}
	return text + f.node.says(f.keyword, f.name, DetailBytesMax-len(text))
}

// says returns in words what a keyword of the schema requires. name is the member
// or item in question, if any. The text has at most room bytes where it can be cut.
func (n *node) says(keyword, name string, room int) string {
	switch keyword {
	case "false":
		return "nothing may stand here"
	case "type":
		return "is of type " + n.types.String()
	case "const":
		return n.konst.says(room)
	case "enum":
		return n.enum.says(room)
	case "pattern":
		const words = "matches the pattern "
		pattern := strconv.QuoteToASCII(n.pattern.re.String())
		return words + clip(pattern, max(room-len(words), len(clipMark)))
	case "required":
		return "needs the member " + quoted(name)
	case "dependentRequired":
		return "needs the member " + quoted(name) + " beside others that are there"
	case "additionalProperties", "unevaluatedProperties":
		return n.unknown(name)
	case "unevaluatedItems":
		return "takes no item " + name
	case "propertyNames":
		return "takes no member of the name " + quoted(name)
	case "uniqueItems":
		return "has no item twice"
	case "anyOf":
		return "fits one of the " + strconv.Itoa(len(n.anyOf)) + " schemas of anyOf"
	case "oneOf":
		return "fits one of the " + strconv.Itoa(len(n.oneOf)) + " schemas of oneOf, and no more than one"
	case "not":
		return "does not fit the schema of not"
	case "contains":
		return "has an item that fits the schema of contains"
	}
	return n.bound(keyword)
}

// unknown says that an object has no member of that name, and suggests the nearest.
func (n *node) unknown(name string) string {
	known := make([]string, 0, min(len(n.properties), nearest.KnownMax))
	for i := range n.properties[:cap(known)] {
		known = append(known, n.properties[i].name)
	}
	text := "there is no " + quoted(name) + " here"
	if meant := nearest.Name(name, known); meant != "" {
		text += "; did you mean " + quoted(meant) + "?"
	}
	return text
}

// bound returns in words what a keyword that bounds a number or a count requires.
func (n *node) bound(keyword string) string {
	for _, of := range [...]struct {
		keyword, words string
		number         *decimal
	}{
		{"maximum", "is at most ", n.maximum}, {"minimum", "is at least ", n.minimum}, {"exclusiveMaximum", "is less than ", n.exclusiveMaximum},
		{"exclusiveMinimum", "is more than ", n.exclusiveMinimum}, {"multipleOf", "is a multiple of ", n.multipleOf},
	} {
		if of.keyword == keyword {
			return string(of.number.appendText([]byte(of.words)))
		}
	}
	const fit = " that fit the schema of contains"
	for _, of := range [...]struct {
		keyword, thing, more string
		count                *int
	}{
		{"maxLength", "character", "", n.maxLength}, {"minLength", "character", "", n.minLength}, {"maxItems", "item", "", n.maxItems},
		{"minItems", "item", "", n.minItems}, {"maxProperties", "member", "", n.maxProperties}, {"minProperties", "member", "", n.minProperties},
		{"maxContains", "item", fit, n.maxContains}, {"minContains", "item", fit, n.minContains},
	} {
		if of.keyword != keyword {
			continue
		}
		words := "has at least "
		if strings.HasPrefix(keyword, "max") {
			words = "has at most "
		}
		if *of.count != 1 {
			of.thing += "s"
		}
		return words + strconv.Itoa(*of.count) + " " + of.thing + of.more
	}
	return keyword
}

// says lists the values that fit into room.
func (e *enumeration) says(room int) string {
	text := "is one of "
	if e.all == 1 {
		text = "is "
	}
	for i, written := range e.written {
		if i > 0 {
			written = ", " + written
		}
		switch more := e.more(i + 1); {
		case len(text)+len(written)+len(more) <= room:
			text += written
		case i == 0:
			return clip(text+written, room-len(more)) + more
		default:
			return text + e.more(i)
		}
	}
	return text + e.more(len(e.written))
}

// more returns how many values there are after the first n.
func (e *enumeration) more(n int) string {
	if n == e.all {
		return ""
	}
	return ", …and " + strconv.Itoa(e.all-n) + " more"
}
