package web

// What: openapi.json says what the table of routes and the types of bodies say.
//
// How: the document is made in memory and compared; with -rewrite it is written.

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.json")

type object = map[string]any

// TestDocumentIsCurrent: openapi.json is what the table and the types say.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	doc, err := makeDocument()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	switch {
	case bytes.Equal(b.Bytes(), document):
	case *rewrite:
		if err := os.WriteFile("openapi.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("openapi.json is not what the table and the types say: run go generate ./web")
	}
}

// makeDocument returns the OpenAPI document of the table of routes.
func makeDocument() (object, error) {
	names := []string{"Problem"}
	for i := range routes {
		for _, name := range []string{routes[i].in, routes[i].out, routes[i].created} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	schemas, err := wire.Components("..", "web", names)
	if err != nil {
		return nil, err
	}
	var codes []string
	about := "For programs. A code of HTTP or of this server:"
	for _, typ := range []string{"web.Code", "actors/session.Rejection"} {
		values, abouts, err := wire.Codes("..", typ)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			about += fmt.Sprintf(" %s, %s;", v, abouts[i])
		}
		codes = append(codes, values...)
		if typ == "web.Code" {
			about = strings.TrimSuffix(about, ";") + ". Or why the session refused it:"
		}
	}
	slices.Sort(codes)
	schemas["Problem"].(object)["properties"].(object)["code"] = object{"type": "string", "enum": slices.Compact(codes), "description": strings.TrimSuffix(about, ";") + "."}
	paths := object{}
	for i := range routes {
		rt := &routes[i]
		if paths[rt.path] == nil {
			paths[rt.path] = object{}
		}
		paths[rt.path].(object)[strings.ToLower(rt.method)] = operation(rt)
	}
	return object{
		"openapi":  "3.1.0",
		"info":     object{"title": "Refold", "version": "1", "description": "Durable sessions of agents: request runs, follow them, decide over calls. docs/http.md explains it."},
		"servers":  []object{{"url": "./"}},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}},
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
			"responses":       object{"Problem": object{"description": "Why it was refused, and what to do.", "content": object{"application/problem+json": object{"schema": ref("Problem")}}}},
		},
	}, nil
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// pathParameters are the schemas of the names in paths.
var pathParameters = map[string]parameter{
	"sid":   {"sid", "The session's id, as the client has it: without its token's scope.", object{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}},
	"run":   {"run", "The run's number in the session.", count},
	"seq":   {"seq", "The event's sequence in the log.", sequence},
	"agent": {"agent", "An agent of the server.", text},
	"token": {"token", "The token of the reply link.", text},
	"call":  {"call", "The call's name, such as r1t2c0.", text},
}

// operation returns a route as the document has it.
func operation(rt *route) object {
	summary, _, _ := strings.Cut(rt.doc, ". ")
	op := object{"operationId": rt.name, "summary": strings.TrimSuffix(summary, "."), "description": rt.doc}
	if rt.right != "" {
		op["description"] = rt.doc + " Needs the right `" + string(rt.right) + "`."
	}
	if rt.inspect {
		op["tags"] = []string{"inspector"}
	}
	if rt.open != never {
		op["security"] = []object{}
	}
	var parameters []object
	for _, found := range inPath.FindAllStringSubmatch(rt.path, -1) {
		p := pathParameters[found[1]]
		parameters = append(parameters, object{"name": p.name, "in": "path", "required": true, "description": p.doc, "schema": p.schema})
	}
	for _, p := range rt.query {
		parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.doc, "schema": p.schema})
	}
	header := func(name, doc string, schema object) {
		parameters = append(parameters, object{"name": name, "in": "header", "description": doc, "schema": schema})
	}
	if rt.keyed {
		header("Idempotency-Key", "The same key with the same body takes effect once, at any server.", object{"type": "string", "minLength": 1, "maxLength": keyBytesMax})
	}
	if rt.created != "" {
		header("Prefer", "`wait=60`: wait so many seconds for the run's end.", object{"type": "string"})
	}
	if rt.stream && rt.out != "" {
		header("Last-Event-ID", "The position of the last update that the client has.", object{"type": "string"})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	content := object{}
	for _, kind := range rt.takes {
		content[kind] = object{"schema": object{"type": "string", "format": "binary"}}
		if kind == "application/json" { // of a protocol that others describe
			content[kind] = object{"schema": object{"type": "object"}}
		}
	}
	if rt.in != "" {
		content["application/json"] = object{"schema": ref(rt.in)}
	}
	if len(content) > 0 {
		op["requestBody"] = object{"required": !slices.Contains([]string{"Reason", "ResumeRequest", "FailRequest"}, rt.in), "content": content}
	}
	op["responses"] = responses(rt)
	return op
}

func responses(rt *route) object {
	success := object{"description": "It is done."}
	content := object{}
	for _, kind := range rt.gives {
		content[kind] = object{"schema": object{"type": "string"}}
	}
	switch {
	case rt.stream && rt.out == "":
		success["description"] = "Server-sent events of a protocol that others describe."
		content["text/event-stream"] = object{"schema": text}
	case rt.stream:
		success["description"] = "Server-sent events. The data of each is JSON of this schema."
		content["text/event-stream"] = object{"schema": ref(rt.out)}
	case rt.out != "":
		content["application/json"] = object{"schema": ref(rt.out)}
	}
	if len(content) > 0 {
		success["content"] = content
	}
	all := object{strconv.Itoa(max(rt.status, 200)): success, "default": object{"$ref": "#/components/responses/Problem"}}
	if rt.created != "" {
		all["202"] = object{"description": "The session has taken it; it goes on.", "content": object{"application/json": object{"schema": ref(rt.created)}}}
	}
	switch {
	case rt.stream && rt.out != "":
		all["204"] = object{"description": "The run ended before this position: there is nothing more."}
	case rt.stream && rt.method == http.MethodGet:
		all["204"] = object{"description": "No run is open: there is nothing to stream."}
	}
	return all
}

// TestEveryUpdateHasJSON: each type of update of package refold, which are the structs
// with an about, has a case.
func TestEveryUpdateHasJSON(t *testing.T) {
	t.Parallel()
	cases, err := os.ReadFile("updates.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range []string{"update.go", "waiting.go", "partial.go"} {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:type )?([A-Z]\w*) +struct ?\{\s*about\b`).FindAllSubmatch(text, -1) {
			found++
			if !bytes.Contains(cases, append([]byte("refold."), m[1]...)) {
				t.Errorf("updateOf has no case for refold.%s of %s", m[1], file)
			}
		}
	}
	if found != 14 {
		t.Errorf("found %d updates, want 14", found)
	}
}
