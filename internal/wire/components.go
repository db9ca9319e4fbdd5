package wire

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Components returns the schemas of types, and of all types that they name, as the
// components of an OpenAPI document. Names are those of types of the directory, or else
// of docs/schemas. A schema of docs/schemas whose name a type of the directory has is
// called Session and that name.
func Components(root, dir string, names []string) (map[string]any, error) {
	s := newSource(root)
	rows, err := s.rows()
	if err != nil {
		return nil, err
	}
	known := map[string]Row{"parts/Names": {}}
	for _, row := range rows {
		known[row.Name] = row
	}
	own, err := s.load(module + "/" + dir)
	if err != nil {
		return nil, err
	}
	s.parts = maps.Clone(s.parts)
	for name := range own.types {
		known[dir+"/"+name] = Row{Name: dir + "/" + name, Type: dir + "." + name}
		s.parts[dir+"."+name] = dir + "/" + name
	}
	c := &components{source: s, known: known, dir: dir, all: map[string]any{}}
	for _, name := range names {
		if own.types[name] != nil {
			name = dir + "/" + name
		}
		if err := c.add(name); err != nil {
			return nil, err
		}
	}
	return c.all, nil
}

// Codes returns the constants of a type, such as actors/session.Rejection, in order, with
// their comments.
func Codes(root, typ string) (values, abouts []string, err error) {
	s := newSource(root)
	d, err := s.declared(typ)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range d.in.codes(d.name) {
		values, abouts = append(values, c.value), append(abouts, c.about)
	}
	return values, abouts, nil
}

// components are the schemas of an OpenAPI document.
type components struct {
	*source
	known map[string]Row // by the schema's name
	dir   string         // of the types that are not in docs/schemas
	all   map[string]any
}

// called returns the component's name of a schema.
func (c *components) called(name string) string {
	base := path.Base(name)
	if _, taken := c.known[c.dir+"/"+base]; taken && path.Dir(name) != c.dir {
		return "Session" + base
	}
	return base
}

// add adds a schema, and those that it names.
func (c *components) add(name string) error {
	row, ok := c.known[name]
	if !ok {
		return fmt.Errorf("there is no schema %s", name)
	}
	if c.all[c.called(name)] != nil {
		return nil
	}
	schema := func() (node, error) { return c.schema(row) }
	if name == "parts/Names" {
		schema = c.namesSchema
	}
	doc, err := schema()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.all[c.called(name)] = doc
	withoutLinks(doc)
	for _, key := range []string{"$schema", "$id", "title"} {
		delete(doc, key)
	}
	return c.relink(name, doc)
}

// relink turns references between files into those between components.
func (c *components) relink(from string, value any) error {
	switch v := value.(type) {
	case node:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			ref, isText := v[key].(string)
			if key != "$ref" || !isText {
				if err := c.relink(from, v[key]); err != nil {
					return err
				}
				continue
			}
			file, place, _ := strings.Cut(ref, "#")
			to := from
			if file != "" {
				to = path.Join(path.Dir(from), strings.TrimSuffix(file, ".json"))
			}
			if err := c.add(to); err != nil {
				return err
			}
			v[key] = "#/components/schemas/" + c.called(to) + place
		}
	case []any:
		for _, inner := range v {
			if err := c.relink(from, inner); err != nil {
				return err
			}
		}
	}
	return nil
}
