package planner

import (
	"slices"
	"strconv"
	"strings"
)

// contents evaluates the keywords for the contents of an array or an object.
func (e *evaluation) contents(n *node, v *value, at *location, own []bool) bool {
	switch v.kind {
	case kindArray:
		return e.array(n, v, at, own)
	case kindObject:
		return e.object(n, v, at, own)
	}
	return true
}

// array evaluates the keywords for arrays.
func (e *evaluation) array(n *node, v *value, at *location, own []bool) bool {
	ok := e.counts(len(v.items), n.maxItems, n.minItems, n, at, "maxItems", "minItems")
	ok = e.holds(!n.uniqueItems || e.unique(v.items), n, at, "uniqueItems") && ok
	for i := range v.items {
		sub := n.items
		if i < len(n.prefixItems) {
			sub = n.prefixItems[i]
		}
		if sub == nil {
			break
		}
		ok = e.node(sub, &v.items[i], &location{parent: at, token: strconv.Itoa(i)}, nil) && ok
		if e.stop(ok) {
			return false
		}
		mark(own, i)
	}
	if n.contains == nil {
		return ok
	}
	return e.contains(n, v, at, own) && ok
}

// mark records that a member or item was evaluated.
func mark(own []bool, i int) {
	if own != nil {
		own[i] = true
	}
}

func (e *evaluation) unique(items []value) bool {
	seen := make(map[string]struct{}, len(items))
	for i := range items {
		key := items[i].key()
		if e.spend(1 + len(key)/16); e.steps <= 0 {
			return false
		}
		if _, ok := seen[key]; ok {
			return false
		}
		seen[key] = struct{}{}
	}
	return true
}

// contains evaluates contains, minContains and maxContains.
func (e *evaluation) contains(n *node, v *value, at *location, own []bool) bool {
	matches := 0
	for i := range v.items {
		if e.try(n.contains, &v.items[i], at, nil) {
			matches++
			mark(own, i)
		}
	}
	ok := e.holds(n.minContains != nil || matches > 0, n, at, "contains")
	return e.counts(matches, n.maxContains, n.minContains, n, at, "maxContains", "minContains") && ok
}

// object evaluates the keywords for objects.
func (e *evaluation) object(n *node, v *value, at *location, own []bool) bool {
	ok := e.counts(len(v.items), n.maxProperties, n.minProperties, n, at, "maxProperties", "minProperties")
	ok = e.required(n, n.required, v, at, "required") && ok
	e.spend((len(v.items) + len(n.dependentRequired) + len(n.dependentSchemas)) / 4)
	for _, d := range n.dependentRequired {
		if _, present := v.member(d.name); present {
			ok = e.required(n, d.required, v, at, "dependentRequired") && ok
		}
	}
	for i := range v.items {
		if e.stop(ok) {
			return false
		}
		ok = e.member(n, v, i, at, own) && ok
	}
	for _, p := range n.dependentSchemas {
		if e.stop(ok) {
			return false
		}
		if _, present := v.member(p.name); present {
			ok = e.node(p.node, v, at, own) && ok
		}
	}
	return ok
}

// required evaluates that members are present, and names the least missing one.
func (e *evaluation) required(n *node, names []string, v *value, at *location, keyword string) bool {
	e.spend(len(names) / 4)
	for _, name := range names {
		if _, ok := v.member(name); !ok {
			return e.fail(n, at, keyword, name)
		}
	}
	return true
}

// member evaluates one member of an object.
func (e *evaluation) member(n *node, v *value, i int, at *location, own []bool) bool {
	name, item := v.names[i], &v.items[i]
	var inside *location
	if e.quiet == 0 {
		inside = &location{parent: at, token: name}
	}
	ok, evaluated := true, false
	if at, found := slices.BinarySearchFunc(n.properties, name, compareProperty); found {
		evaluated = true
		ok = e.node(n.properties[at].node, item, inside, nil)
	}
	for p := range n.patternProperties {
		if e.match(&n.patternProperties[p].pattern, name) {
			evaluated = true
			ok = e.node(n.patternProperties[p].node, item, inside, nil) && ok
		}
	}
	if !evaluated && n.additionalProperties != nil {
		evaluated = true
		if n.additionalProperties.never {
			ok = e.fail(n, at, "additionalProperties", name)
		} else {
			ok = e.node(n.additionalProperties, item, inside, nil)
		}
	}
	if evaluated {
		mark(own, i)
	}
	if n.propertyNames != nil && !e.try(n.propertyNames, &value{kind: kindString, text: name}, at, nil) {
		ok = e.fail(n, at, "propertyNames", name)
	}
	return ok
}

func compareProperty(p property, name string) int { return strings.Compare(p.name, name) }

// unevaluated evaluates the members or items that no other keyword has evaluated.
func (e *evaluation) unevaluated(n *node, v *value, at *location, own []bool) bool {
	sub, keyword := n.unevaluatedItems, "unevaluatedItems"
	if v.kind == kindObject {
		sub, keyword = n.unevaluatedProperties, "unevaluatedProperties"
	}
	ok := true
	if sub == nil || v.kind != kindArray && v.kind != kindObject {
		return true
	}
	for i := range v.items {
		if own[i] {
			continue
		}
		token := strconv.Itoa(i)
		if v.kind == kindObject {
			token = v.names[i]
		}
		if sub.never {
			ok = e.fail(n, at, keyword, token)
		} else {
			ok = e.node(sub, &v.items[i], &location{parent: at, token: token}, nil) && ok
		}
		if e.stop(ok) {
			return false
		}
		own[i] = true
	}
	return ok
}
