package wire

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// node is an object of a JSON Schema.
type node = map[string]any

// generator makes the schemas of one message or part.
type generator struct {
	*source
	name string         // of the schema: RunRequested, parts/Content
	uses map[string]int // how often a type that has no schema of its own occurred, in two passes
	defs node           // of the types that occur more than once
	work []string       // types that are being described, for errors
}

// schema returns the JSON Schema of a row of the table.
func (s *source) schema(row Row) (node, error) {
	d, err := s.declared(row.Type)
	if err != nil {
		return nil, err
	}
	if len(row.rules) > 0 {
		of := *d
		of.rules = slices.Concat(d.rules, row.rules)
		d = &of
	}
	g := &generator{source: s, name: row.Name, uses: map[string]int{}, defs: node{}}
	if _, err := g.object(d); err != nil { // the first pass counts uses
		return nil, err
	}
	doc, err := g.object(d)
	if err != nil {
		return nil, err
	}
	if len(g.defs) > 0 {
		merge(doc, node{"$defs": g.defs})
	}
	doc["$schema"], doc["$id"], doc["title"] = dialect, path.Base(row.Name)+".json", path.Base(row.Name)
	doc["description"] = row.About
	if row.About == "" {
		doc["description"] = about(d)
	}
	if len(row.Doors) > 0 {
		doc["x-doors"] = anys(row.Doors)
	}
	if len(row.Bodies) > 0 {
		err = s.union(doc, row)
	}
	return doc, err
}

// union makes doc the schema of an envelope: its data is described by its type.
func (s *source) union(doc node, row Row) error {
	var all []any
	for _, body := range row.Bodies {
		of, err := s.schema(s.bodyRow(body))
		if err != nil {
			return err
		}
		then := node{"properties": node{"data": node{"$ref": body + ".json"}}}
		if required, _ := of["required"].([]any); len(required) > 0 && !row.always {
			then["required"] = []any{"data"}
		}
		all = append(all, node{"if": node{"properties": node{"type": node{"const": body}}, "required": []any{"type"}}, "then": then})
	}
	others, _ := doc["allOf"].([]any)
	doc["allOf"] = append(all, others...)
	doc["properties"].(node)["type"].(node)["enum"] = anys(row.Bodies)
	return nil
}

// about returns the first paragraph of a type's comment, without its name.
func about(d *declaration) string {
	text, _, _ := strings.Cut(d.doc, "\n\n")
	text = strings.TrimPrefix(oneLine(text), d.name+" ")
	for _, verb := range []string{"is ", "are ", "says that "} {
		text = strings.TrimPrefix(text, verb)
	}
	return capital(text)
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	first := []rune(text)
	first[0] = unicode.ToUpper(first[0])
	return string(first)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// object returns the schema of a struct: what follows from its fields, and its rules.
func (g *generator) object(d *declaration) (node, error) {
	of, err := g.structOf(d)
	if err != nil {
		return nil, err
	}
	rules := d.rules
	if of != d {
		rules = slices.Concat(of.rules, d.rules)
	}
	doc := node{"type": "object", "properties": node{}, "additionalProperties": false}
	if err := g.addFields(doc, of); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	if required, _ := doc["required"].([]any); len(required) > 0 {
		slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	}
	for _, rule := range rules {
		var more node
		if err := json.Unmarshal([]byte(rule), &more); err != nil {
			return nil, fmt.Errorf("a rule of %s: %w", d.name, err)
		}
		replaceAll(more, doc["required"])
		merge(doc, more)
	}
	return doc, nil
}

// structOf follows a declaration to the struct that it stands for.
func (g *generator) structOf(d *declaration) (*declaration, error) {
	for {
		if _, ok := d.expr.(*ast.StructType); ok {
			return d, nil
		}
		next, err := g.find(d, d.expr)
		if err != nil || next == nil {
			return nil, fmt.Errorf("%s is no struct: %w", d.name, err)
		}
		d = next
	}
}

// addFields adds the fields of a struct to an object's schema.
func (g *generator) addFields(doc node, d *declaration) error {
	for _, field := range d.expr.(*ast.StructType).Fields.List {
		tag, name, options := tagsOf(field)
		switch {
		case name == "-", name == "" && len(field.Names) > 0:
			continue
		case len(field.Names) == 0 && (name == "" || strings.Contains(options, "inline")):
			if err := g.embed(doc, d, field.Type); err != nil {
				return err
			}
			continue
		}
		l, err := parseLimits(tag.Get("lim"), tag.Get("pattern"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		value, err := g.value(d, field.Type, l)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if text := oneLine(field.Doc.Text()); text != "" {
			value["description"] = text
		} else if value["$ref"] == nil {
			return fmt.Errorf("%s: the field has no comment", name)
		}
		doc["properties"].(node)[name] = value
		if !strings.Contains(options, "omit") {
			required, _ := doc["required"].([]any)
			doc["required"] = append(required, name)
		}
	}
	return nil
}

// embed adds the fields of an embedded struct.
func (g *generator) embed(doc node, d *declaration, expr ast.Expr) error {
	inner, err := g.find(d, expr)
	if err != nil || inner == nil {
		return fmt.Errorf("an embedded type is a struct of this module: %w", err)
	}
	of, err := g.structOf(inner)
	if err != nil {
		return err
	}
	if !g.isPart(inner) {
		return g.addFields(doc, of)
	}
	fields, err := g.object(inner)
	if err != nil {
		return err
	}
	for name := range fields["properties"].(node) {
		doc["properties"].(node)[name] = node{"$ref": g.ref(inner) + "#/properties/" + name}
	}
	delete(fields, "properties")
	merge(doc, fields)
	return nil
}

// ref returns the reference to the schema of a part.
func (g *generator) ref(d *declaration) string {
	return g.relative(g.parts[d.in.short()+"."+d.name])
}

// relative returns the reference to a schema from this one.
func (g *generator) relative(to string) string {
	switch from := path.Dir(g.name); {
	case to == g.name:
		return ""
	case path.Dir(to) == from:
		return path.Base(to) + ".json"
	case from == ".":
		return to + ".json"
	}
	return "../" + to + ".json"
}

// short returns the directory of a package in the module.
func (p *sourcePackage) short() string { return strings.TrimPrefix(p.path, module+"/") }

func (s *source) isPart(d *declaration) bool { return s.parts[d.in.short()+"."+d.name] != "" }

// merge adds what more says to doc: objects are merged, null removes, and all else is
// replaced.
func merge(doc, more node) {
	for key, value := range more {
		inner, ok := value.(node)
		before, is := doc[key].(node)
		switch {
		case value == nil:
			delete(doc, key)
		case ok && is:
			merge(before, inner)
		default:
			doc[key] = value
		}
	}
}

// replaceAll replaces "*" in lists of required fields by all fields that have no
// omitempty.
func replaceAll(value any, required any) {
	switch v := value.(type) {
	case node:
		for key, inner := range v {
			if list, ok := inner.([]any); ok && key == "required" && slices.Contains(list, any("*")) {
				all, _ := required.([]any)
				v[key] = slices.DeleteFunc(slices.Clone(all), func(name any) bool { return slices.Contains(list, name) })
			} else {
				replaceAll(inner, required)
			}
		}
	case []any:
		for _, inner := range v {
			replaceAll(inner, required)
		}
	}
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// snake returns a type's name as a definition is called: ViewRun is run.
func snake(name string) string {
	var b strings.Builder
	for i, r := range strings.TrimPrefix(name, "View") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func keys(n node) []string { return slices.Sorted(maps.Keys(n)) }
