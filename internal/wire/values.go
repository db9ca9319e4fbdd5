package wire

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// value returns the schema of a field's value.
func (g *generator) value(d *declaration, expr ast.Expr, l *limits) (node, error) {
	if l.name != "" && names[l.name] == nil {
		return nil, fmt.Errorf("parts/Names has no name %s", l.name)
	}
	if l.name != "" {
		return node{"$ref": g.relative("parts/Names") + "#/$defs/" + l.name}, nil
	}
	if l.fields != "" {
		of, err := g.declared(d.in.short() + "." + l.fields)
		if err != nil {
			return nil, err
		}
		doc, err := g.object(of)
		if err != nil {
			return nil, err
		}
		all := append(keys(doc["properties"].(node)), "roles", "compact")
		slices.Sort(all)
		return node{"type": "string", "enum": anys(all)}, nil
	}
	if l.as != "" {
		name := l.as
		if !strings.Contains(name, ".") {
			name = strings.TrimPrefix(d.in.path, module+"/") + "." + name
		}
		as, err := g.declared(name)
		if err != nil {
			return nil, err
		}
		return g.structure(as, l)
	}
	switch e := expr.(type) {
	case *ast.StarExpr:
		return g.value(d, e.X, l)
	case *ast.ArrayType:
		if isByte(e.Elt) {
			return g.text(d, l)
		}
		return g.list(d, e.Elt, l)
	case *ast.MapType:
		return g.dictionary(d, e.Value, l)
	case *ast.InterfaceType:
		return anything(l), nil
	case *ast.SelectorExpr:
		switch e.X.(*ast.Ident).Name + "." + e.Sel.Name {
		case "codec.Hash":
			return node{"$ref": g.relative("parts/Names") + "#/$defs/hash"}, nil
		case "codec.Ref":
			return node{"$ref": g.relative("parts/Names") + "#/$defs/blob"}, nil
		case "codec.Raw", "json.RawMessage":
			return anything(l), nil
		case "codec.Pairs":
			return g.dictionary(d, &ast.Ident{Name: "any"}, l)
		}
	case *ast.Ident:
		if d.in.types[e.Name] == nil {
			return g.basic(d, e.Name, l)
		}
	}
	inner, err := g.find(d, expr)
	if err != nil {
		return nil, err
	}
	if inner == nil {
		return nil, fmt.Errorf("a type of another module has no schema: %T", expr)
	}
	return g.named(inner, l)
}

// anything returns the schema of a value that is passed on as it is.
func anything(l *limits) node {
	if l.object {
		return node{"type": "object"}
	}
	return node{}
}

// named returns the schema of a value of a declared type. A text has the constants of
// its type, if there are any and the tag names no others.
func (g *generator) named(d *declaration, l *limits) (node, error) {
	switch e := d.expr.(type) {
	case *ast.StructType:
		return g.structure(d, l)
	case *ast.Ident:
		if d.in.types[e.Name] == nil {
			return g.basic(d, e.Name, l)
		}
	}
	return g.value(d, d.expr, l)
}

// structure returns the schema of a struct: a reference to its own schema, to a
// definition of this one if it occurs in several places, or the object itself.
func (g *generator) structure(d *declaration, l *limits) (node, error) {
	if g.isPart(d) {
		ref := g.ref(d)
		if l.filled {
			ref += "#/$defs/filled"
		}
		return node{"$ref": ref}, nil
	}
	key := d.in.path + "." + d.name
	if slices.Contains(g.work, key) {
		return nil, fmt.Errorf("%s contains itself: make it a part", d.name)
	}
	g.work = append(g.work, key)
	defer func() { g.work = g.work[:len(g.work)-1] }()
	g.uses[key]++
	doc, err := g.object(d)
	if err != nil || g.uses[key] < 3 { // twice in one place: see schema
		return doc, err
	}
	name := snake(d.name)
	g.defs[name] = doc
	return node{"$ref": "#/$defs/" + name}, nil
}

func (g *generator) list(d *declaration, elem ast.Expr, l *limits) (node, error) {
	inner := l.item
	if inner == nil {
		inner = &limits{filled: l.filled}
	}
	items, err := g.value(d, elem, inner)
	if err != nil {
		return nil, err
	}
	value := node{"type": "array", "items": items}
	if l.unique {
		value["uniqueItems"] = true
	}
	return value, g.bound(value, d.in, l, "minItems", "maxItems")
}

// dictionary returns the schema of an object whose keys are data.
func (g *generator) dictionary(d *declaration, elem ast.Expr, l *limits) (node, error) {
	value := node{"type": "object"}
	if l.key != nil {
		key, err := g.form(l.key.name)
		if err == nil && key == nil {
			key, err = g.text(d, l.key)
		}
		if err != nil {
			return nil, err
		}
		delete(key, "type") // a name in JSON is a text
		delete(key, "description")
		value["propertyNames"] = key
	}
	if l.value == nil {
		return value, g.bound(value, d.in, l, "minProperties", "maxProperties")
	}
	if id, ok := elem.(*ast.Ident); ok && id.Name == "any" {
		elem = &ast.Ident{Name: l.value.kind()}
	}
	values, err := g.value(d, elem, l.value)
	if err != nil {
		return nil, err
	}
	if l.value.null {
		values["type"] = []any{values["type"], "null"}
	}
	value["additionalProperties"] = values
	return value, g.bound(value, d.in, l, "minProperties", "maxProperties")
}

// kind returns the Go type of a value of codec.Pairs.
func (l *limits) kind() string {
	if l.number {
		return "int"
	}
	return "string"
}

// basic returns the schema of a value of one of Go's own types.
func (g *generator) basic(d *declaration, kind string, l *limits) (node, error) {
	switch {
	case kind == "any":
		return anything(l), nil
	case kind == "string":
		return g.text(d, l)
	case kind == "bool" && l.only != "":
		return node{"const": l.only == "true"}, nil
	case kind == "bool":
		return node{"type": "boolean"}, nil
	case kind == "float64":
		return node{"type": "number"}, nil
	case !strings.HasPrefix(kind, "int") && !strings.HasPrefix(kind, "uint"):
		return nil, fmt.Errorf("the Go type %s has no schema", kind)
	}
	if l.only != "" {
		n, err := g.number(d.in, l.only)
		return node{"const": n}, err
	}
	value := node{"type": "integer"}
	if strings.HasPrefix(kind, "uint") {
		value["minimum"] = int64(0)
	}
	return value, g.bound(value, d.in, l, "minimum", "maximum")
}

func (g *generator) text(d *declaration, l *limits) (node, error) {
	if l.only != "" {
		return node{"const": l.only}, nil
	}
	value := node{"type": "string"}
	values, err := l.values(d)
	if err != nil {
		return nil, err
	}
	if l.high == "" && len(values) == 0 && l.pattern == "" && !l.any {
		return nil, errors.New("the text has no limit: give it a tag lim, lim:\"any\" if it may be of any length")
	}
	if l.pattern != "" {
		value["pattern"] = l.pattern
	}
	if len(values) > 0 {
		value["enum"] = anys(values)
	}
	return value, g.bound(value, d.in, l, "minLength", "maxLength")
}

// bound adds a range.
func (g *generator) bound(value node, in *sourcePackage, l *limits, low, high string) error {
	for _, end := range []struct{ text, keyword string }{{l.low, low}, {l.high, high}} {
		if end.text == "" {
			continue
		}
		n, err := g.number(in, end.text)
		if err != nil {
			return err
		}
		value[end.keyword] = n
	}
	return nil
}
