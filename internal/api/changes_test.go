package api

// What: a change of each kind is found, whether it breaks programs or adds something, and
// words for people may change.
//
// How: a small module, schema or document is compared with the one before the change.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alecthomas/kong"
)

// change is a text before and after a change, and what only one of them has.
type change struct {
	name, before, after string
	gone, added         []string
}

// check derives the lines of both texts of a change.
func (c change) check(t *testing.T, derive func(t *testing.T, text string) []string) {
	t.Helper()
	gone, added := compare(derive(t, c.before), derive(t, c.after))
	if !slices.Equal(gone, c.gone) || !slices.Equal(added, c.added) {
		t.Errorf("gone  %q\nwant  %q\nadded %q\nwant  %q", gone, c.gone, added, c.added)
	}
}

// module writes a package shop and a package store, which is experimental.
func module(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.26\n",
		"shop/shop.go":   "package shop\n\n" + text,
		"store/store.go": "package store\n\ntype Box struct{ Size int }\n\ntype Shelf struct{ Boxes []Box }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestChangesOfPackages(t *testing.T) {
	t.Parallel()
	for _, c := range []change{
		{"a function goes", "func Buy() {}\nfunc Sell() {}", "func Buy() {}", []string{"shop: func Sell()"}, nil},
		{"a function is added", "func Buy() {}", "func Buy() {}\nfunc Sell() {}", nil, []string{"shop: func Sell()"}},
		{"a parameter is added", "func Buy(n int) {}", "func Buy(n int, at string) {}", []string{"shop: func Buy(int)"}, []string{"shop: func Buy(int, string)"}},
		{"a parameter has another name", "func Buy(n int) {}", "func Buy(number int) {}", nil, nil},
		{"a type parameter is narrower", "func Buy[T any](T) {}", "func Buy[T comparable](T) {}", []string{"shop: func Buy[T any](T)"}, []string{"shop: func Buy[T comparable](T)"}},
		{"a field has another type", "type Item struct{ N int; secret int }", "type Item struct{ N int64 }", []string{"shop: field Item.N int"}, []string{"shop: field Item.N int64"}},
		{"a method goes to the pointer", "type Item struct{}\nfunc (Item) Buy() {}", "type Item struct{}\nfunc (*Item) Buy() {}", []string{"shop: method (Item) Buy()"}, []string{"shop: method (*Item) Buy()"}},
		{"a promoted method goes", "type item struct{}\nfunc (item) Buy() {}\ntype Item struct{ item }", "type item struct{}\ntype Item struct{ item }", []string{"shop: method (Item) Buy()"}, nil},
		{"a promoted field moves", "type item struct{ N int }\ntype Item struct{ item }", "type Item struct{ N int }", nil, nil},
		{"an interface grows", "type Buyer interface{ Buy() }", "type Buyer interface{ Buy(); Sell() }", []string{"shop: type Buyer interface{Buy}"}, []string{"shop: method Buyer.Sell()", "shop: type Buyer interface{Buy, Sell}"}},
		{"a sealed interface grows", "type Buyer interface{ Buy(); buys() }", "type Buyer interface{ Buy(); Sell(); buys() }", nil, []string{"shop: method Buyer.Sell()"}},
		{"a constant has another value", "const Max = 4", "const Max = 5", []string{"shop: const Max untyped int = 4"}, []string{"shop: const Max untyped int = 5"}},
		{"an option's inside changes", "type Option func(*options)\ntype options struct{}", "type Option func(*settings)\ntype settings struct{}", nil, nil},
		{"an alias points elsewhere", "type N = int", "type N = int64", []string{"shop: type N = int"}, []string{"shop: type N = int64"}},
		{
			"an experimental type is shown", "import _ \"example.com/m/store\"", "import \"example.com/m/store\"\n\nvar First store.Box", nil,
			[]string{"shop: var First store.Box", "store: field Box.Size int", "store: type Box struct"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, func(t *testing.T, text string) []string {
				t.Helper()
				lines, err := Go(module(t, text), []string{"shop", "store"}, []string{"store"})
				if err != nil {
					t.Fatal(err)
				}
				return lines
			})
		})
	}
}

func TestExperimentalFilesAndTypes(t *testing.T) {
	t.Parallel()
	dir := module(t, "import \"example.com/m/store\"\n\nfunc Shelf() *store.Shelf { return nil }\n\ntype Item struct{ N int }\n")
	got, err := Go(dir, []string{"shop", "store"}, []string{"shop/shop.go", "store", "store.Shelf"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"shop: func Shelf() *store.Shelf", "store: type Shelf, opaque"}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestChangesOfMessages(t *testing.T) {
	t.Parallel()
	const before = `{"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "maxLength": 8}, "mode": {"type": "string", "enum": ["a", "b"]}}}`
	for _, c := range []change{
		{"a field goes", before, `{"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "maxLength": 8}}}`, []string{"Order.mode may be \"a\"", "Order.mode may be \"b\"", "Order.mode string with enum"}, nil},
		{"a field is added", before, strings.Replace(before, `"mode"`, `"at": {"type": "integer"}, "mode"`, 1), nil, []string{"Order.at integer"}},
		{"a field is required now", before, strings.Replace(before, `["id"]`, `["id", "mode"]`, 1), []string{`Order requires ["id"]`}, []string{`Order requires ["id","mode"]`, "Order.mode is always there"}},
		{"a field may be absent now", before, strings.Replace(before, `["id"]`, `[]`, 1), []string{`Order requires ["id"]`, "Order.id is always there"}, []string{"Order requires []"}},
		{"a value goes", before, strings.Replace(before, `["a", "b"]`, `["a"]`, 1), []string{`Order.mode may be "b"`}, nil},
		{"a limit falls", before, strings.Replace(before, `8`, `4`, 1), []string{"Order.id string with maxLength 8"}, []string{"Order.id string with maxLength 4"}},
		{"a limit is new", strings.Replace(before, `, "maxLength": 8`, ``, 1), before, []string{"Order.id string"}, []string{"Order.id string with maxLength 8"}},
		{"a list of values is new", strings.Replace(before, `, "enum": ["a", "b"]`, ``, 1), before, []string{"Order.mode string"}, []string{`Order.mode may be "a"`, `Order.mode may be "b"`, "Order.mode string with enum"}},
		{"a type changes", before, strings.Replace(before, `{"type": "string", "maxLength": 8}`, `{"$ref": "parts/Names.json#/$defs/id"}`, 1), []string{"Order.id string with maxLength 8"}, []string{"Order.id Names#id"}},
		{"a door closes", strings.Replace(before, `{`, `{"x-doors": ["ctl", "in"], `, 1), strings.Replace(before, `{`, `{"x-doors": ["ctl"], `, 1), []string{"Order through the door in"}, nil},
		{"words for people change", strings.Replace(before, `{`, `{"description": "An order.", `, 1), before, nil, nil},
	} {
		c.check(t, func(t *testing.T, text string) []string {
			t.Helper()
			lines, err := Wire(fstest.MapFS{"Order.json": {Data: []byte(text)}, "Snapshot.json": {Data: []byte(before)}}, "Snapshot")
			if err != nil {
				t.Fatal(err)
			}
			return lines
		})
	}
}

// TestChangesOfHTTP: what clients send must not be narrower, and what they get must be
// there.
func TestChangesOfHTTP(t *testing.T) {
	t.Parallel()
	const before = `{
		"paths": {
			"/orders": {"post": {"operationId": "order",
				"parameters": [{"in": "query", "name": "dry", "schema": {"type": "boolean"}}],
				"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}},
				"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Done"}}}}}}},
			"/pages": {"get": {"operationId": "page", "tags": ["inspector"], "responses": {}}}},
		"components": {"schemas": {
			"Done": {"type": "object", "required": ["at"], "properties": {"at": {"type": "integer", "minimum": 1}, "by": {"type": "string"}}},
			"Order": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "maxLength": 8}, "mode": {"type": "string"}}}}}}`
	edit := func(old, now string) string {
		if !strings.Contains(before, old) {
			t.Fatalf("the document has no %s", old)
		}
		return strings.Replace(before, old, now, 1)
	}
	for _, c := range []change{
		{"a path goes", before, edit("/orders", "/order"), []string{
			"POST /orders answers 200 application/json Done", "POST /orders is order", "POST /orders query dry boolean", "POST /orders requires []", "POST /orders takes application/json Order",
		}, []string{
			"POST /order answers 200 application/json Done", "POST /order is order", "POST /order query dry boolean", "POST /order requires []", "POST /order takes application/json Order",
		}},
		{"a parameter is required now", before, edit(`"name": "dry"`, `"name": "dry", "required": true`), []string{"POST /orders requires []"}, []string{`POST /orders requires ["dry"]`}},
		{"a field is required of clients now", before, edit(`["id"]`, `["id", "mode"]`), []string{`Order requires ["id"]`}, []string{`Order requires ["id","mode"]`}},
		{"a limit for clients falls", before, edit(`"maxLength": 8`, `"maxLength": 4`), []string{"Order.id string with maxLength 8"}, []string{"Order.id string with maxLength 4"}},
		{"a body is required now", before, edit(`"requestBody": {`, `"requestBody": {"required": true, `), []string{"POST /orders requires []"}, []string{`POST /orders requires ["body"]`}},
		{"a token is needed now", edit(`"operationId": "order"`, `"operationId": "order", "security": []`), before, []string{"POST /orders needs no token"}, nil},
		{"an answer's limit changes", before, edit(`"minimum": 1`, `"minimum": 0`), nil, nil},
		{"an answer has one field more", before, edit(`["at"], "properties": {`, `["at", "in"], "properties": {"in": {"type": "string"}, `), nil, []string{"Done.in is always there", "Done.in string"}},
		{"an answer's field may be absent", before, edit(`"required": ["at"], `, ``), []string{"Done.at is always there"}, nil},
		{"an answer's field goes", before, edit(`, "by": {"type": "string"}`, ``), []string{"Done.by string"}, nil},
		{"a page of the inspector goes", before, edit("/pages", "/leaves"), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, func(t *testing.T, text string) []string {
				t.Helper()
				lines, err := HTTP([]byte(text), "inspector")
				if err != nil {
					t.Fatal(err)
				}
				return lines
			})
		})
	}
}

// TestChangesOfOutput: also what a function prints that a command calls, and what the
// methods print of a value that a command makes.
func TestChangesOfOutput(t *testing.T) {
	t.Parallel()
	const before = `import ("encoding/json"; "os"; "time")
func print(v any) { json.NewEncoder(os.Stdout).Encode(v) }
type buyCommand struct{}
func (buyCommand) Run() { bought(1); print(map[string]any{"took": 1.5}) }
func bought(n int) { print(row{N: n}) }
type row struct {
	N    int ` + "`json:\"n\"`" + `
	At   *time.Time ` + "`json:\"at,omitempty\"`" + `
	Rows []row ` + "`json:\"rows,omitempty\"`" + `
	Raw  json.RawMessage ` + "`json:\"-\"`" + `
}
type sellCommand struct{}
func (*sellCommand) Run() { sale{}.each() }
type sale struct{ name string }
func (s sale) each() { print(struct{ sale; Name string }{s, s.name}) }
func unused() { print(1) }
`
	for _, c := range []change{
		{"nothing", "type none struct{}", before, nil, []string{
			"buyCommand .at time.Time", "buyCommand .n integer", "buyCommand .rows[] shop.row", "buyCommand .took number", "sellCommand .Name is always there", "sellCommand .Name string",
		}},
		{"a key goes", before, strings.Replace(before, `{"took": 1.5}`, `{}`, 1), []string{"buyCommand .took number"}, nil},
		{"a field may be absent", before, strings.Replace(before, "Name string }", "Name string `json:\",omitempty\"` }", 1), []string{"sellCommand .Name is always there"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, func(t *testing.T, text string) (lines []string) {
				t.Helper()
				printed, err := Printed(module(t, text), "shop", "print")
				if err != nil {
					t.Fatal(err)
				}
				for command, all := range printed {
					for _, line := range all {
						lines = append(lines, command+" "+line)
					}
				}
				return sorted(lines)
			})
		})
	}
}

func TestChangesOfCommands(t *testing.T) {
	t.Parallel()
	type before struct {
		Buy struct {
			Item string `arg:""`
			Mode string
			JSON bool `name:"json"`
		} `cmd:""`
		Secret struct{} `cmd:"" hidden:""`
	}
	type after struct {
		Buy struct {
			Item string `arg:""`
			Mode string `required:"" enum:"a,b"`
			Max  int    `default:"3"`
		} `cmd:""`
	}
	lines := func(grammar any) []string {
		parser, err := kong.New(grammar, kong.Name("shop"))
		if err != nil {
			t.Fatal(err)
		}
		return Commands(parser.Model, map[string][]string{"": {".id string"}})
	}
	gone, added := compare(lines(&before{}), lines(&after{}))
	if want := []string{"shop buy --json bool", "shop buy --json prints .id string", "shop buy --mode string", `shop buy requires ["item"]`}; !slices.Equal(gone, want) {
		t.Errorf("gone  %q\nwant  %q", gone, want)
	}
	if want := []string{
		"shop buy --max int", `shop buy --max is "3" if it is not given`, `shop buy --mode may be "a"`, `shop buy --mode may be "b"`, "shop buy --mode string with enum",
		`shop buy requires ["item","--mode"]`,
	}; !slices.Equal(added, want) {
		t.Errorf("added %q\nwant  %q", added, want)
	}
}

// TestComplaintsTellRemovalsFromAdditions, and say what each means.
func TestComplaintsTellRemovalsFromAdditions(t *testing.T) {
	t.Parallel()
	const version, file = "0.1", "api/0.1/go.txt"
	for _, c := range []struct {
		name        string
		gone, added []string
		want        []string // the beginnings of the complaints
	}{
		{"nothing", nil, nil, nil},
		{"gone", []string{"shop: func Buy()"}, nil, []string{"api/0.1/go.txt has lines that are not true any more:\n  shop: func Buy()\nVersion 0.1 promises them"}},
		{"added", nil, []string{"shop: func Sell()"}, []string{"api/0.1/go.txt lacks lines:\n  shop: func Sell()\n"}},
		{"changed", []string{"shop: const N = 1"}, []string{"shop: const N = 2"}, []string{"api/0.1/go.txt has lines that are not true", "api/0.1/go.txt lacks"}},
	} {
		got := complaints(version, file, c.gone, c.added)
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: got %q\nwant %q", c.name, got, c.want)
		}
	}
}
