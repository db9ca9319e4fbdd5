// The protocol's documents, as tests.
//
// What: messages and schemas agree, and the examples of docs/protocol.md are messages.
// That schemas and tables are those of the Go types is tested in internal/wire.
//
// How: protocol_fold_test.go, protocol_fields_test.go and protocol_malformed_test.go hold
// the schemas against the fold: what every scenario file says and asks for, messages with
// all their fields, and thousands of malformed ones, which both must refuse.
// protocol_wire_test.go runs a session-actor and a bridge and looks at every message that
// passes. protocol_text_test.go reads the text; protocol_runs_test.go,
// protocol_when_test.go and protocol_approval_test.go hold the tables and examples of
// docs/semantics.md against the fold.
package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

const (
	schemasDir = "docs/schemas"
	partsDir   = "parts" // of what several messages have
	filesDir   = "files" // of files of spaces, which are no messages: internal/spacefiles holds them
	schemaBase = "refold:///docs/schemas/"
	dialect    = "https://json-schema.org/draft/2020-12/schema"
)

// schemas is docs/schemas: documents by name, as in "RunRequested" or
// "parts/Content", and ready for use.
type schemas struct {
	docs     map[string]map[string]any
	compiled map[string]*jsonschema.Schema
	effects  map[session.Class]string // names of the schemas of effects
}

// readSchemas reads and compiles all of docs/schemas.
func readSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{docs: map[string]map[string]any{}, compiled: map[string]*jsonschema.Schema{}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closedLoader{})
	root := os.DirFS(schemasDir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if name == filesDir {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		object, ok := doc.(map[string]any)
		if !ok || path.Ext(name) != ".json" {
			return fmt.Errorf("%s: is no schema", name)
		}
		s.docs[strings.TrimSuffix(name, ".json")] = object
		return c.AddResource(schemaBase+name, doc)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range s.names() {
		if s.compiled[name], err = c.Compile(schemaBase + name + ".json"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	s.effects = effectsOf(s.docs)
	return s
}

// closedLoader opens nothing: schemas refer to one another only.
type closedLoader struct{}

func (closedLoader) Load(url string) (any, error) {
	return nil, errors.New(url + " is not in " + schemasDir)
}

func (s *schemas) names() []string { return slices.Sorted(maps.Keys(s.docs)) }

// check says what is wrong with a message, given as JSON; nil if nothing is.
func (s *schemas) check(name string, message []byte) error {
	schema := s.compiled[name]
	if schema == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(message))
	if err != nil {
		return err
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// packed is check for a message in msgpack.
func (s *schemas) packed(name string, message []byte) error {
	text, err := codec.ToJSON(message)
	if err != nil {
		return err
	}
	return s.check(name, text)
}

// noticeTypes returns the names of all notices.
func (s *schemas) noticeTypes() (all []string) {
	properties, _ := s.docs["Notice"]["properties"].(map[string]any)
	of, _ := properties["type"].(map[string]any)
	for _, name := range asList(of["enum"]) {
		all = append(all, name.(string))
	}
	return all
}

// effectsOf returns the names of the schemas of effects, by the one class that each allows.
func effectsOf(docs map[string]map[string]any) map[session.Class]string {
	all := map[session.Class]string{}
	for name, doc := range docs {
		properties, _ := doc["properties"].(map[string]any)
		class, _ := properties["class"].(map[string]any)
		if one, ok := class["const"].(string); ok {
			all[session.Class(one)] = name
		}
	}
	return all
}

// refersTo resolves a $ref that stands in the schema called from.
func (s *schemas) refersTo(from, ref string) (name string, node map[string]any) {
	file, pointer, _ := strings.Cut(ref, "#")
	name = from
	if file != "" {
		name = strings.TrimSuffix(path.Join(path.Dir(from), file), ".json")
	}
	var at any = s.docs[name]
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		object, _ := at.(map[string]any)
		at = object[token]
	}
	node, _ = at.(map[string]any)
	return name, node
}

// constants returns the texts of a file's constants that pick picks, sorted.
// Its types are those written in the declaration.
func constants(t *testing.T, file string, pick func(name, typ string) bool) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, decl := range parsed.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			typ, _ := value.Type.(*ast.Ident)
			typName := ""
			if typ != nil {
				typName = typ.Name
			}
			for i, name := range value.Names[:min(len(value.Names), len(value.Values))] { // iota has no value of its own
				lit, ok := value.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !pick(name.Name, typName) {
					continue
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s: no such constants", file)
	}
	slices.Sort(all)
	return all
}

// jsonOf encodes a value as JSON.
func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
