package spacefiles_test

// docs/schemas/files agrees with this package: a file that a schema refuses has
// a problem, and one that it accepts has none, except for problems that no
// schema can express, such as a name that another file must have. The schemas'
// interpreter is the oracle.

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

const schemasDir = "../../docs/schemas/files"

// closed loads nothing that was not added.
type closed struct{}

func (closed) Load(url string) (any, error) { return nil, errors.New(url + " is not in " + schemasDir) }

// fileSchemas compiles all schemas of files.
func fileSchemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closed{})
	entries, err := os.ReadDir(schemasDir)
	must(t, err)
	compiled := map[string]*jsonschema.Schema{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(schemasDir, e.Name()))
		must(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		if err := c.AddResource("refold:///"+e.Name(), doc); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		compiled[e.Name()] = nil
	}
	for name := range compiled {
		if compiled[name], err = c.Compile("refold:///" + name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return compiled
}

// fileCase is a file, and whether it is valid. beyond says why no schema can tell
// that it is not.
type fileCase struct {
	content string
	valid   bool
	beyond  string
}

func ok(content string) fileCase          { return fileCase{content: content, valid: true} }
func bad(content string) fileCase         { return fileCase{content: content} }
func beyond(why, content string) fileCase { return fileCase{content: content, beyond: why} }

// fileCases are cases by schema.
var fileCases = map[string][]fileCase{
	"agent.workspace.json": {
		ok(`{"v": 1}`),
		ok(support()["agent.workspace.json"]),
		ok(`{"v": 1, "kind": "workspace", "tools": {"a": ["tools/catalogs/one.json", "tools/shell.json"]}, "skills": [], "defaults": {}}`),
		ok(`{"v": 1, "version": "1.2.3-rc.1", "category": "x", "display_name": "X"}`),
		ok(`{"v": 1, "context": {"none-of-it": []}}`),
		bad(`{}`), bad(`[]`), bad(`{"v": 2}`), bad(`{"v": "1"}`),
		bad(`{"v": 1, "colour": 1}`),
		bad(`{"v": 1, "kind": "plugin"}`),
		bad(`{"v": 1, "name": "sup port"}`),
		bad(`{"v": 1, "name": 7}`),
		bad(`{"v": 1, "version": "1.2"}`),
		bad(`{"v": 1, "prompts": ["a"]}`),
		bad(`{"v": 1, "prompts": {"none": "prompts/base.md"}}`),
		bad(`{"v": 1, "prompts": {"a": "/etc/passwd"}}`),
		bad(`{"v": 1, "prompts": {"a": 1}}`),
		bad(`{"v": 1, "tools": {"a": {"x": 1}}}`),
		bad(`{"v": 1, "context": {"docs": "docs/a.md"}}`),
		bad(`{"v": 1, "context": {"a b": []}}`),
		bad(`{"v": 1, "skills": {"a": 1}}`),
		bad(`{"v": 1, "defaults": {"prompt": "a"}}`),
		bad(`{"v": 1, "bindings": "tools/shell.json"}`),
		bad(`{"v": 1, "description": "` + strings.Repeat("x", 1025) + `"}`),
		beyond("defaults name what the index has", `{"v": 1, "defaults": {"prompt_pack": "a"}}`),
		beyond("files must be there", `{"v": 1, "prompts": {"a": "none.md"}}`),
		beyond("a path goes down", `{"v": 1, "prompts": {"a": "prompts/../../x"}}`),
		beyond("the space is called as it was asked for", `{"v": 1, "name": "other"}`),
	},
	"prompt.json": {
		ok(`{"parts": []}`), ok(`[]`),
		ok(support()["prompts/packs/default.json"]), ok(support()["prompts/packs/chat.json"]),
		ok(`{"role": "system", "content": "x"}`), ok(`{"text": "x"}`),
		ok(`["prompts/base.md", {"file": "prompts/base.md"}, {"context": "docs"}, {"skills": true}]`),
		ok(`{"parts": ["prompts/base.md"], "params": {}, "response_format": {"kind": "text"}}`),
		bad(`"x"`), bad(`7`), bad(`{"parts": {}}`),
		bad(`{"parts": [], "colour": 1}`),
		bad(`{"parts": [], "params": 1}`),
		bad(`[7]`), bad(`[{}]`), bad(`[{"skills": false}]`),
		bad(`[{"skills": true, "text": "x"}]`),
		bad(`[{"context": 7}]`), bad(`[{"context": "docs", "role": "user"}]`),
		bad(`[{"text": "x", "file": "prompts/base.md"}]`),
		bad(`[{"role": "tool", "text": "x"}]`),
		bad(`[{"role": "user", "content": [{"type": "image_url", "text": "x"}]}]`),
		bad(`[{"text": 7}]`), bad(`[""]`),
		beyond("groups are the index's", `[{"context": "nothing"}]`),
		beyond("messages alternate", `[{"role": "user", "text": "x"}]`),
		beyond("variables are few", `[{"text": "{{who}}"}]`),
	},
	"catalog.json": {
		ok(`[]`), ok(`{"tools": []}`), ok(`["crm.lookup", "shell"]`),
		ok(support()["tools/catalogs/default.json"]), ok(support()["tools/catalogs/one.json"]),
		ok(`{"tools": [{"tool": "shell", "description": "x", "args_schema": {"type": "object"}}], "tool_choice": "shell"}`),
		ok(`{"tool": "shell"}`), ok(`[{"name": "shell", "tool_name": "shell", "strict": true}]`),
		bad(`7`), bad(`{}`), bad(`{"tools": {}}`), bad(`{"tools": [], "colour": 1}`), bad(`{"tools": [], "tool_choice": 1}`),
		bad(`["sh ell"]`), bad(`[7]`), bad(`[{"description": "x"}]`),
		bad(`[{"tool": "shell", "args_schema": []}]`),
		bad(`[{"tool": "shell", "args_schema": {}, "parameters": {}}]`),
		bad(`[{"descriptor": 7}]`), bad(`[{"descriptor": "tools/shell.json", "tool": "shell"}]`),
		bad(`[{"function": {"description": "x"}}]`), bad(`[{"function": 7}]`),
		bad(`[{"tool": "shell", "description": 7}]`), bad(`[{"tool": "shell", "executor": {}}]`),
		bad(`[{"tool": "shell", "description": "` + strings.Repeat("x", 16<<10+1) + `"}]`),
		beyond("a tool stands once", `["shell", "shell"]`),
		beyond("names are the same", `[{"tool": "shell", "name": "bash"}]`),
		beyond("files must be there", `[{"descriptor": "none.json"}]`),
	},
	"skill.json": {
		ok("name: refunds\ndescription: x"), ok("description: x"),
		ok("name: refunds\ndescription: x\nallowed-tools: Read, Bash(git:*)\nlicense: MIT\nmetadata: {author: me, version: 1.0, refold: {os: [linux], requires: {bins: [gh]}}}"),
		ok("description: x\nallowed-tools: [Read]\ndisable-model-invocation: true\ncolour: blue"),
		bad("name: Refunds\ndescription: x"), bad("name: re--funds\ndescription: x"),
		bad("description: [x]"), bad("description: ''"), ok("description: " + strings.Repeat("x", 1025)),
		ok("description: x\nallowed-tools: {a: 1}"), ok("description: x\nallowed-tools: [[a]]"),
		ok("description: x\nlicense: [MIT]"), ok("description: x\ndisable-model-invocation: 'yes'"),
		ok("description: x\nmetadata: [a]"), ok("description: x\nmetadata: {openclaw: x, tags: {a: [b]}}"), bad("description: x\nmetadata: {refold: x}"),
		bad("description: x\nmetadata: {refold: {os: linux}}"), bad("description: x\nmetadata: {refold: {requires: {bins: [7]}}}"),
		beyond("a skill is called as its folder is", "name: other\ndescription: x"),
	},
	"spaces.json": {
		ok("targets: {files: {spaces: {support: {dir: a}, shared: {bucket: B, prefix: a/b/, scan: false}}}}"),
		ok("targets: {files: {spaces: {crm: {dir: a, secrets: {CRM_KEY: {file: k}, OTHER: {env: X}}}, pay: {packs: true}, '*': {packs: true}}}}"),
		bad("targets: {files: {spaces: {'*': {dir: a}}}}"), bad("targets: {files: {spaces: {crm: {packs: true, dir: a}}}}"),
		bad("targets: {files: {spaces: {crm: {packs: false}}}}"), bad("targets: {files: {spaces: {crm: {packs: true, scan: false}}}}"),
		bad("targets: {files: {spaces: {crm: {dir: a, secrets: {K: {}}}}}}"), bad("targets: {files: {spaces: {crm: {dir: a, secrets: {K: {file: a, env: B}}}}}}"),
		bad("targets: {files: {spaces: {crm: {dir: a, secrets: {1K: {env: B}}}}}}"), bad("targets: {files: {spaces: {crm: {dir: a, secrets: {K: {env: a.b}}}}}}"),
		bad("targets: {}"), bad("{}"), bad("targets: {files: {}}"), bad("targets: {files: {spaces: {}}}"),
		bad("targets: {files: {spaces: {support: {}}}}"), bad("targets: {files: {spaces: {support: {dir: a, bucket: B}}}}"),
		bad("targets: {files: {spaces: {support: {dir: a, prefix: a/}}}}"), bad("targets: {files: {spaces: {support: {bucket: B, prefix: a}}}}"),
		bad("targets: {files: {spaces: {refold: {dir: a}}}}"), bad("targets: {a.b: {spaces: {support: {dir: a}}}}"),
		bad("targets: {files: {spaces: {support: {dir: a, colour: 1}}}}"), bad("targets: {files: {spaces: {support: {dir: a, scan: x}}}}"),
		bad("colour: 1\ntargets: {files: {spaces: {support: {dir: a}}}}"),
	},
}

func TestSchemasOfFilesAgree(t *testing.T) {
	t.Parallel()
	all := fileSchemas(t)
	for name, schema := range all {
		if len(fileCases[name]) == 0 {
			t.Errorf("%s has no cases", name)
		}
		for _, c := range fileCases[name] {
			told := problemsOf(t, name, c.content)
			if (told == "") != c.valid {
				t.Errorf("%s: %s: the package says %q", name, c.content, told)
			}
			err := schema.Validate(decoded(t, name, c.content))
			if want := c.valid || c.beyond != ""; (err == nil) != want {
				t.Errorf("%s: %s: the schema says %v, want valid %t", name, c.content, err, want)
			}
		}
	}
}

// decoded returns a file as the schemas' interpreter takes it.
func decoded(t *testing.T, name, content string) any {
	t.Helper()
	text := []byte(content)
	if name == "skill.json" || name == "spaces.json" {
		var v any
		err := yaml.Unmarshal(text, &v)
		if err == nil {
			text, err = json.Marshal(v)
		}
		must(t, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	return v
}

// problemsOf puts a file into a folder that is fine, and returns what this package
// says of it.
func problemsOf(t *testing.T, name, content string) string {
	t.Helper()
	if name == "spaces.json" {
		file := filepath.Join(t.TempDir(), "spaces.yaml")
		must(t, os.WriteFile(file, []byte(content), 0o600))
		if _, err := spacefiles.LoadConfig(file); err != nil {
			return err.Error()
		}
		return ""
	}
	files := support()
	switch name {
	case "agent.workspace.json":
		files[name] = content
	case "prompt.json":
		files["prompts/packs/default.json"] = content
	case "catalog.json":
		files["tools/catalogs/default.json"] = content
	case "skill.json":
		files["agent.workspace.json"] = `{"v": 1, "skills": ["skills/refunds/SKILL.md"]}`
		files["skills/refunds/SKILL.md"] = "---\n" + content + "\n---\n"
	}
	built := build(t, folder(files), spacefiles.Options{Kind: space.Workspace})
	problems := make([]string, len(built.Problems))
	for i, p := range built.Problems {
		problems[i] = p.String()
	}
	return strings.Join(problems, "; ")
}

// TestSchemasOfFilesDescribe: every member has a description, and objects
// accept no others, except for a skill's, where unknown ones are a warning.
func TestSchemasOfFilesDescribe(t *testing.T) {
	t.Parallel()
	for name := range fileCases {
		text, err := os.ReadFile(filepath.Join(schemasDir, name))
		must(t, err)
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if doc["$id"] != name || doc["title"] != strings.TrimSuffix(name, ".json") || doc["description"] == nil {
			t.Errorf("%s: $id, title and description: got %v, %v and %v", name, doc["$id"], doc["title"], doc["description"])
		}
		eachObject(doc, func(node map[string]any) {
			members, isObject := node["properties"].(map[string]any)
			if !isObject || node["type"] != "object" {
				return
			}
			if _, says := node["additionalProperties"]; !says && name != "skill.json" {
				t.Errorf("%s: an object with %v takes other members", name, keys(members))
			}
			for member, value := range members {
				of, _ := value.(map[string]any)
				if of["description"] == nil && of["$ref"] == nil {
					t.Errorf("%s: %s has no description", name, member)
				}
			}
		})
	}
}

func keys(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// eachObject visits every object of a document.
func eachObject(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			eachObject(inner, visit)
		}
	case []any:
		for _, inner := range v {
			eachObject(inner, visit)
		}
	}
}
