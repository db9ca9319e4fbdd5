package wire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const protocol = "docs/protocol.md"

// Files returns the generated files of a checkout of the module at root, by their path:
// the schemas, and docs/protocol.md with its present prose. The error names the type or
// field that has no schema.
func Files(root string) (map[string][]byte, error) {
	s := newSource(root)
	rows, err := s.rows()
	if err != nil {
		return nil, err
	}
	var bad []error
	schemas, files := map[string]node{}, map[string][]byte{}
	if schemas["parts/Names"], err = s.namesSchema(); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if schemas[row.Name], err = s.schema(row); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", row.Name, err))
		}
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	before, err := os.ReadFile(filepath.Join(root, protocol))
	if err != nil {
		return nil, err
	}
	tables, err := s.withTables(string(before), schemas)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", protocol, err)
	}
	files[protocol] = []byte(tables)
	if files[checksFile], err = s.checks(); err != nil {
		return nil, fmt.Errorf("%s: %w", checksFile, err)
	}
	for name, doc := range schemas {
		withoutLinks(doc)
		files["docs/schemas/"+name+".json"] = text(doc)
	}
	return files, nil
}

// withoutLinks removes the links of Markdown from descriptions.
func withoutLinks(value any) {
	switch v := value.(type) {
	case node:
		for key, inner := range v {
			if text, ok := inner.(string); ok && key == "description" {
				v[key] = link.ReplaceAllString(text, "$1")
			}
			withoutLinks(inner)
		}
	case []any:
		for _, inner := range v {
			withoutLinks(inner)
		}
	}
}
