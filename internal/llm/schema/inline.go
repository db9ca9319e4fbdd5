package schema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// nodesMax is the most schemas of a tool, with references written out. Schemas
// beyond it allow everything.
const nodesMax = 2_048

// inline returns a schema whose references are written out: servers differ in
// which ones they follow. Where a schema refers to itself, only its type is kept.
// A schema without references is returned unchanged.
func inline(root object) any {
	if !refers(root) {
		root = maps.Clone(root)
		delete(root, "$defs")
		delete(root, "definitions")
		return root
	}
	i := &inliner{root: root, left: nodesMax}
	return i.schema(root, []string{"#"})
}

// refers reports whether a schema has a reference.
func refers(s object) bool {
	if reference(s) != "" {
		return true
	}
	found := false
	each(maps.Clone(s), func(_ string, sub any) any {
		if sub, ok := sub.(object); ok {
			found = found || refers(sub)
		}
		return sub
	})
	return found
}

// reference returns the reference of a schema, or "".
func reference(s object) string {
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok {
			return ref
		}
	}
	return ""
}

type inliner struct {
	root object
	left int // schemas
}

// schema returns a copy of a schema. open are the references that led to it.
func (i *inliner) schema(v any, open []string) any {
	s, ok := v.(object)
	if !ok {
		return v
	}
	if i.left--; i.left < 0 {
		return object{}
	}
	s = maps.Clone(s)
	ref := reference(s)
	for _, key := range []string{"$ref", "$dynamicRef", "$defs", "definitions", "$anchor", "$dynamicAnchor"} {
		delete(s, key)
	}
	for _, key := range exact {
		if sub, ok := s[key].(object); ok && refers(sub) {
			delete(s, key) // it may be cut
			delete(s, "unevaluatedItems")
			delete(s, "unevaluatedProperties")
		}
	}
	each(s, func(_ string, sub any) any { return i.schema(sub, open) })
	if ref == "" {
		return s
	}
	target := i.resolve(ref)
	if slices.Contains(open, ref) {
		if to, ok := target.(object); ok && to["type"] != nil {
			return merge(s, object{"type": to["type"]})
		}
		return s
	}
	switch to := i.schema(target, append(slices.Clip(open), ref)).(type) {
	case object:
		return merge(s, to)
	case bool:
		if !to {
			return false
		}
	}
	return s
}

// resolve returns what a reference within the schema refers to, or true. A
// registry has no other references.
func (i *inliner) resolve(ref string) any {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return true
	}
	if fragment != "" && fragment[0] != '/' {
		if found := anchored(i.root, fragment); found != nil {
			return found
		}
		return true
	}
	var at any = i.root
	for _, token := range strings.Split(fragment, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := at.(type) {
		case object:
			at = v[token]
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(v) {
				return true
			}
			at = v[n]
		}
	}
	if _, ok := at.(object); !ok && at != false {
		return true
	}
	return at
}

// anchored returns the schema of that anchor, or nil.
func anchored(v any, name string) any {
	switch v := v.(type) {
	case object:
		if v["$anchor"] == name || v["$dynamicAnchor"] == name {
			return v
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := anchored(v[key], name); found != nil {
				return found
			}
		}
	case []any:
		for _, item := range v {
			if found := anchored(item, name); found != nil {
				return found
			}
		}
	}
	return nil
}
