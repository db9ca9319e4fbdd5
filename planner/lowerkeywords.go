package planner

import (
	"slices"
	"strconv"
)

// assertions reads the keywords that look at a value itself.
func (l *lowering) assertions(n *node, v *value, pointer string) {
	if types, ok := v.member("type"); ok {
		n.typed = true
		names := []value{*types}
		if types.kind == kindArray {
			names = types.items
		}
		for _, name := range names {
			for i, known := range typeNames() {
				if name.text == known {
					n.types |= 1 << i
				}
			}
		}
	}
	if constant, ok := v.member("const"); ok {
		n.konst = newEnumeration([]value{*constant})
	}
	if list, ok := v.member("enum"); ok && list.kind == kindArray {
		n.enum = newEnumeration(list.items)
	}
	n.multipleOf = numberOf(v, "multipleOf")
	if n.multipleOf != nil && n.multipleOf.sign() == 0 {
		l.fail(pointer, "multipleOf is more than 0")
	}
	n.maximum, n.minimum = numberOf(v, "maximum"), numberOf(v, "minimum")
	n.exclusiveMaximum, n.exclusiveMinimum = numberOf(v, "exclusiveMaximum"), numberOf(v, "exclusiveMinimum")
	n.maxLength, n.minLength = countOf(v, "maxLength"), countOf(v, "minLength")
	n.maxItems, n.minItems = countOf(v, "maxItems"), countOf(v, "minItems")
	n.maxContains, n.minContains = countOf(v, "maxContains"), countOf(v, "minContains")
	n.maxProperties, n.minProperties = countOf(v, "maxProperties"), countOf(v, "minProperties")
	if unique, ok := v.member("uniqueItems"); ok {
		n.uniqueItems = unique.truth
	}
	if text, ok := v.member("pattern"); ok && text.kind == kindString {
		p := l.pattern(text.text, pointer)
		n.pattern = &p
	}
}

// applicators reads the keywords that apply schemas to the same value, and to
// the items of an array.
func (l *lowering) applicators(n *node, v *value, pointer string) {
	n.allOf = l.list(v, "allOf", pointer)
	n.anyOf = l.list(v, "anyOf", pointer)
	n.oneOf = l.list(v, "oneOf", pointer)
	n.not = l.single(v, "not", pointer)
	if n.cond = l.single(v, "if", pointer); n.cond != nil {
		n.then = l.single(v, "then", pointer)
		n.els = l.single(v, "else", pointer)
	}
	n.prefixItems = l.list(v, "prefixItems", pointer)
	n.items = l.single(v, "items", pointer)
	n.contains = l.single(v, "contains", pointer)
	n.unevaluatedItems = l.single(v, "unevaluatedItems", pointer)
	n.unevaluatedProperties = l.single(v, "unevaluatedProperties", pointer)
	if n.unevaluatedItems != nil || n.unevaluatedProperties != nil {
		l.marks = true
	}
	// Only references apply these.
	l.named(v, "$defs", pointer)
	l.named(v, "definitions", pointer)
}

// objects reads the keywords that look at an object's members.
func (l *lowering) objects(n *node, v *value, pointer string) {
	n.properties = l.named(v, "properties", pointer)
	for _, p := range l.named(v, "patternProperties", pointer) {
		n.patternProperties = append(n.patternProperties, patternProperty{pattern: l.pattern(p.name, pointer), node: p.node})
	}
	n.additionalProperties = l.single(v, "additionalProperties", pointer)
	n.propertyNames = l.single(v, "propertyNames", pointer)
	n.dependentSchemas = l.named(v, "dependentSchemas", pointer)
	if list, ok := v.member("required"); ok {
		n.required = texts(list)
	}
	if needs, ok := v.member("dependentRequired"); ok && needs.kind == kindObject {
		for i := range needs.items {
			n.dependentRequired = append(n.dependentRequired, dependency{name: needs.names[i], required: texts(&needs.items[i])})
		}
	}
}

func (l *lowering) pattern(text, pointer string) pattern {
	if l.problem != "" {
		return pattern{}
	}
	p, problem := compilePattern(text, &l.patterns)
	if problem != "" {
		l.fail(pointer, problem)
	}
	return p
}

// single makes the node of a keyword that holds a schema, or nil.
func (l *lowering) single(v *value, keyword, pointer string) *node {
	sub, ok := v.member(keyword)
	if !ok {
		return nil
	}
	return l.node(sub, pointer+"/"+keyword)
}

// list makes the nodes of a keyword that holds a list of schemas.
func (l *lowering) list(v *value, keyword, pointer string) []*node {
	subs, ok := v.member(keyword)
	if !ok || subs.kind != kindArray {
		return nil
	}
	out := make([]*node, len(subs.items))
	for i := range subs.items {
		if l.problem != "" {
			return nil
		}
		out[i] = l.node(&subs.items[i], pointer+"/"+keyword+"/"+strconv.Itoa(i))
	}
	return out
}

// named makes the nodes of a keyword that holds schemas by name.
func (l *lowering) named(v *value, keyword, pointer string) []property {
	subs, ok := v.member(keyword)
	if !ok || subs.kind != kindObject {
		return nil
	}
	out := make([]property, len(subs.items))
	for i, name := range subs.names {
		if l.problem != "" {
			return nil
		}
		out[i] = property{name: name, node: l.node(&subs.items[i], pointer+"/"+keyword+"/"+escapeToken(name))}
	}
	return out
}

// numberOf returns a keyword's number, or nil.
func numberOf(v *value, keyword string) *decimal {
	n, ok := v.member(keyword)
	if !ok || n.kind != kindNumber {
		return nil
	}
	return &n.number
}

// countOf returns a keyword's count, or nil.
func countOf(v *value, keyword string) *int {
	n := numberOf(v, keyword)
	if n == nil {
		return nil
	}
	c := count(*n)
	return &c
}

// texts returns the texts of a list in byte order, so that the first missing
// one is the least.
func texts(list *value) []string {
	var out []string
	for i := range list.items {
		if list.items[i].kind == kindString {
			out = append(out, list.items[i].text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
