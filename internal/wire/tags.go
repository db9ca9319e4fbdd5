package wire

import (
	"cmp"
	"fmt"
	"go/ast"
	"reflect"
	"strings"
)

// limits is what the tag lim says of a field. It is a list of words, separated by
// commas:
//
//	1..64        range of a number, of a text's length in bytes, or of a list's length; an end may be missing
//	=1           the only value
//	@token       a name of parts/Names.json
//	as=Type      the JSON object is of another type of the package, or of another one: as=actors/session.RunConfig
//	enum=Prefix  the values of the package's constants with this prefix
//	enum=a|b     these values
//	fields=Type  the names of the fields of a config, roles and compact
//	any          any text, although nothing bounds it, or although its type has constants
//	object       an object with any fields
//	int          of the values of codec.Pairs: whole numbers
//	filled       a Content that is not empty; of a list, its items
//	unique       no two items of a list are the same
//	null         of the values of an object: also null
//	item=…       any of these words for the items of a list
//	key=…        for the keys of an object
//	value=…      for the values of an object
//
// The ends of a range are literals or constants. The tag hint says what to do with a text
// that is too long.
type limits struct {
	low, high string
	only      string
	name      string
	as        string
	enum      string
	fields    string
	object    bool
	number    bool
	filled    bool
	any       bool
	unique    bool
	null      bool
	pattern   string
	item, key *limits
	value     *limits
}

// parseLimits parses the tags lim and pattern.
func parseLimits(tag, pattern string) (*limits, error) {
	l := &limits{pattern: pattern}
	if tag == "" {
		return l, nil
	}
	for word := range strings.SplitSeq(tag, ",") {
		if err := l.add(word); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// tagsOf returns the tags of a field, and its name and options on the wire: those of the
// tag json, or else of msgpack.
func tagsOf(field *ast.Field) (tag reflect.StructTag, name, options string) {
	if field.Tag != nil {
		tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
	}
	name, options, _ = strings.Cut(cmp.Or(tag.Get("json"), tag.Get("msgpack")), ",")
	return tag, name, options
}

// values returns the values that a text of the type d may have: those of the tag, or
// else, if d is a declared type, its constants. None: any.
func (l *limits) values(d *declaration) ([]string, error) {
	switch all := strings.Split(l.enum, "|"); {
	case len(all) > 1:
		return all, nil
	case l.enum != "":
		if all = d.in.values(l.enum); len(all) == 0 {
			return nil, fmt.Errorf("no constant of %s begins with %s", d.in.path, l.enum)
		}
		return all, nil
	case l.any, l.only != "":
		return nil, nil
	}
	if id, ok := d.expr.(*ast.Ident); ok && id.Name == "string" {
		if all := d.in.values(d.name); len(all) > 1 {
			return all, nil
		}
	}
	return nil, nil
}

func (l *limits) add(word string) (err error) {
	key, rest, has := strings.Cut(word, "=")
	part := func(of **limits) error {
		if *of == nil {
			*of = &limits{}
		}
		return (*of).add(rest)
	}
	low, high, isRange := strings.Cut(word, "..")
	switch {
	case has && key == "item":
		return part(&l.item)
	case has && key == "key":
		return part(&l.key)
	case has && key == "value":
		return part(&l.value)
	case has && key == "pattern":
		l.pattern = rest
	case has && key == "enum":
		l.enum = rest
	case has && key == "fields":
		l.fields = rest
	case has && key == "as":
		l.as = rest
	case has && key == "":
		l.only = rest
	case isRange:
		l.low, l.high = low, high
	case strings.HasPrefix(word, "@"):
		l.name = word[1:]
	case word == "int":
		l.number = true
	case word == "object":
		l.object = true
	case word == "any":
		l.any = true
	case word == "filled":
		l.filled = true
	case word == "unique":
		l.unique = true
	case word == "null":
		l.null = true
	default:
		return fmt.Errorf("the tag lim has no word %q", word)
	}
	return nil
}
