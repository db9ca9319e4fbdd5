package planner

import (
	"math"
	"strings"
)

// schema is a compiled args_schema. It is immutable.
type schema struct {
	root *node
	// marks: some keyword depends on which members and items others have evaluated.
	marks  bool
	weight int // approximate memory in bytes
}

// node is one schema of the document. A nil or empty field is a keyword that
// the schema lacks.
type node struct {
	never bool // the schema false
	typed bool
	types typeSet
	enum  *enumeration // of const, or of enum
	konst *enumeration

	multipleOf       *decimal
	maximum          *decimal
	minimum          *decimal
	exclusiveMaximum *decimal
	exclusiveMinimum *decimal

	maxLength *int
	minLength *int
	pattern   *pattern

	maxItems         *int
	minItems         *int
	uniqueItems      bool
	prefixItems      []*node
	items            *node
	contains         *node
	maxContains      *int
	minContains      *int
	unevaluatedItems *node

	maxProperties         *int
	minProperties         *int
	required              []string
	dependentRequired     []dependency
	dependentSchemas      []property
	properties            []property // by name
	patternProperties     []patternProperty
	additionalProperties  *node
	propertyNames         *node
	unevaluatedProperties *node

	refs  []*reference // $ref, $dynamicRef
	allOf []*node
	anyOf []*node
	oneOf []*node
	not   *node
	cond  *node // if
	then  *node
	els   *node
}

// reference is a $ref or $dynamicRef. Without embedded resources, which our
// documents do not have, the two mean the same.
type reference struct {
	target string // JSON pointer
	node   *node
}

type property struct {
	name string
	node *node
}

type patternProperty struct {
	pattern pattern
	node    *node
}

type dependency struct {
	name     string
	required []string
}

// enumeration is a set of JSON values, by key, and the text of the first ones:
// as many as fit a detail.
type enumeration struct {
	keys    map[string]struct{}
	written []string
	all     int // number of values, duplicates included
}

func newEnumeration(values []value) *enumeration {
	e := &enumeration{keys: make(map[string]struct{}, len(values)), all: len(values)}
	room := DetailBytesMax
	for i := range values {
		e.keys[values[i].key()] = struct{}{}
		if room > 0 {
			e.written = append(e.written, string(values[i].appendText(nil, room)))
			room -= len(e.written[i])
		}
	}
	return e
}

// typeSet is a set of the names that `type` knows, in their byte order.
type typeSet uint8

const (
	typeArray typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNull
	typeNumber
	typeObject
	typeString
)

func typeNames() [7]string {
	return [...]string{"array", "boolean", "integer", "null", "number", "object", "string"}
}

func typesOf(v *value) typeSet {
	switch v.kind {
	case kindNull:
		return typeNull
	case kindBool:
		return typeBoolean
	case kindNumber:
		if v.number.whole() {
			return typeInteger | typeNumber
		}
		return typeNumber
	case kindString:
		return typeString
	case kindArray:
		return typeArray
	}
	return typeObject
}

// String lists the names, joined by "or".
func (t typeSet) String() string {
	var names []string
	for i, name := range typeNames() {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// count returns a keyword's number as a count. A number too large for an int
// becomes the largest int.
func count(d decimal) int {
	if !d.whole() || d.negative {
		return 0
	}
	if len(d.digits)+d.exponent > 18 {
		return math.MaxInt
	}
	n := 0
	for _, c := range []byte(d.digits) {
		n = 10*n + int(c-'0')
	}
	for range d.exponent {
		n *= 10
	}
	return n
}
