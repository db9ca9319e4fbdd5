package wire

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
)

// The lines of a document between which the table of a message's fields stands.
const (
	tableBegins = "<!-- fields: %s -->"
	tableEnds   = "<!-- end of fields -->"
)

var (
	codePlace  = regexp.MustCompile(`(?s)<!-- codes: ([^>]+) -->\n.*?<!-- end of codes -->`)
	tablePlace = regexp.MustCompile(`(?s)<!-- fields: (\w+) -->\n.*?<!-- end of fields -->`)
	sentences  = regexp.MustCompile(`(?s)<!-- sentences -->\n.*?<!-- end of sentences -->`)
	link       = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
)

// withTables returns a document with the tables of today in their places. schemas are
// the schemas of messages and parts, by name.
func (s *source) withTables(text string, schemas map[string]node) (string, error) {
	var failed error
	for _, of := range []struct {
		name string
		rows func() ([]Row, error)
	}{{"events", s.events}, {"effects", s.effects}} {
		rows, err := of.rows()
		if err == nil {
			text, err = s.withOthers(text, of.name, rows, schemas)
		}
		if err != nil {
			return "", err
		}
	}
	text, err := s.withDoors(text)
	if err != nil {
		return "", err
	}
	text = codePlace.ReplaceAllStringFunc(text, func(place string) string {
		of := codePlace.FindStringSubmatch(place)[1]
		table, err := s.codeTable(of)
		if err != nil {
			failed = err
		}
		return "<!-- codes: " + of + " -->\n" + table + "<!-- end of codes -->"
	})
	text = tablePlace.ReplaceAllStringFunc(text, func(place string) string {
		name := tablePlace.FindStringSubmatch(place)[1]
		doc := schemas[name]
		if doc == nil {
			doc = schemas["parts/"+name]
		}
		if doc == nil {
			failed = fmt.Errorf("no message is called %s", name)
			return place
		}
		return fmt.Sprintf(tableBegins, name) + "\n" + fieldTable(doc) + tableEnds
	})
	text = sentences.ReplaceAllLiteralString(text, "<!-- sentences -->\n"+sentenceTable()+"<!-- end of sentences -->")
	return text, failed
}

// withOthers returns a document with a section for each event or effect that it has no
// section for yet: the comment of its type, a place for its fields, and its example. They
// stand between <!-- other events --> and <!-- end of other events -->.
func (s *source) withOthers(text, name string, rows []Row, schemas map[string]node) (string, error) {
	begins, ends := "<!-- other "+name+" -->\n", "<!-- end of other "+name+" -->"
	before, rest, found := strings.Cut(text, begins)
	_, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		return "", fmt.Errorf("there is no place for sections of other %s", name)
	}
	sections := ""
	for _, row := range rows {
		if heading := fmt.Sprintf(tableBegins, row.Name); strings.Contains(before, heading) || strings.Contains(after, heading) {
			continue
		}
		d, err := s.declared(row.Type)
		if err != nil {
			return "", err
		}
		if d.example == "" {
			return "", fmt.Errorf("%s has no example: give its type a line //wire:example with its data as JSON, all fields set", row.Name)
		}
		sections += fmt.Sprintf("### %s\n\n%s\n\n"+tableBegins+"\n"+tableEnds+"\n\n```json %[1]s\n%[4]s\n```\n\n", row.Name, schemas[row.Name]["description"], row.Name, d.example)
	}
	return before + begins + sections + ends + after, nil
}

// withDoors returns a document whose table of subjects has a row for the door of each class:
// a row that is missing is added above that of the install record.
func (s *source) withDoors(text string) (string, error) {
	p, err := s.load(module + "/" + sessionDir)
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(text, "| `refold.install` |")
	if !found {
		return "", errors.New("there is no row of refold.install, above which rows of doors stand")
	}
	for _, door := range p.values("Class") {
		if !strings.Contains(before, "| `refold."+door+".<session>` |") {
			before += fmt.Sprintf("| `refold.%[1]s.<session>` | bridges that serve the class `%[1]s` | REFOLD_LOG | events: settlements of effects of this class |\n", door)
		}
	}
	return before + "| `refold.install` |" + after, nil
}

// codeTable returns the table of the codes of several packages, "dir Name, dir Name": the
// constants of the type Name, or those whose names begin with it. Their comments are the
// meanings.
func (s *source) codeTable(of string) (string, error) {
	text, seen := "| code | meaning |\n|---|---|\n", map[string]bool{}
	for one := range strings.SplitSeq(of, ", ") {
		dir, name, _ := strings.Cut(one, " ")
		p, err := s.load(module + "/" + dir)
		if err != nil {
			return "", err
		}
		codes := p.codes(name)
		if len(codes) == 0 {
			return "", fmt.Errorf("%s has no constants of %s", dir, name)
		}
		for _, c := range codes {
			if c.about == "" {
				return "", fmt.Errorf("%s: the code %s has no comment", dir, c.value)
			}
			if !seen[c.value] {
				text += fmt.Sprintf("| `%s` | %s |\n", c.value, c.about)
			}
			seen[c.value] = true
		}
	}
	return text, nil
}

// sentenceTable returns the table of the sentences that states store.
func sentenceTable() string {
	text := "| number | sentence |\n|---|---|\n"
	for n, words := range sentence.All() {
		text += fmt.Sprintf("| %d | `%s` |\n", n, words)
	}
	return text
}

// fieldTable returns the table of the fields of an object, and of the objects in it; of
// an event it begins with the doors.
func fieldTable(doc node) string {
	rows, doors := fieldRows(doc, doc, ""), ""
	if all, ok := doc["x-doors"].([]any); ok {
		var names []string
		for _, door := range all {
			names = append(names, fmt.Sprintf("`%s`", door))
		}
		doors = "Published through the door " + strings.Join(names, " or ") + ".\n\n"
	}
	if len(rows) == 0 {
		return doors + "It has no fields.\n"
	}
	return doors + "| field | type | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
}

func fieldRows(doc, object node, prefix string) (rows []string) {
	properties, _ := object["properties"].(node)
	required, _ := object["required"].([]any)
	for _, name := range keys(properties) {
		of, ok := properties[name].(node)
		if !ok {
			continue // a rule: the field is of another type alone
		}
		kind := typeText(doc, of)
		if slices.Contains(required, any(name)) {
			kind += ", required"
		}
		meaning, _ := of["description"].(string)
		if ref, _ := of["$ref"].(string); meaning == "" && strings.Contains(ref, "Names.json#/$defs/") {
			meaning, _ = names[path.Base(ref)]["description"].(string)
		}
		rows = append(rows, fmt.Sprintf("| `%s%s` | %s | %s |\n", prefix, name, kind, strings.ReplaceAll(meaning, "|", "\\|")))
		inner, list := of, ""
		if items, ok := of["items"].(node); ok {
			inner, list = items, "[]"
		}
		if ref, _ := inner["$ref"].(string); strings.HasPrefix(ref, "#/$defs/") {
			inner, _ = doc["$defs"].(node)[path.Base(ref)].(node)
		}
		for _, form := range append(forms(inner), inner) {
			rows = append(rows, fieldRows(doc, form, prefix+name+list+".")...)
		}
	}
	return rows
}

// forms returns the alternatives of a value.
func forms(of node) (all []node) {
	list, _ := of["anyOf"].([]any)
	for _, form := range list {
		all = append(all, form.(node))
	}
	return all
}

// typeText says in words what a value in the schema doc may be.
func typeText(doc, of node) string {
	ref, _ := of["$ref"].(string)
	file, pointer, _ := strings.Cut(ref, "#")
	name := strings.TrimSuffix(path.Base(file), ".json")
	if file == "" {
		name, _ = doc["title"].(string)
	}
	link := "[" + name + "](#" + strings.ToLower(name) + ")"
	switch {
	case name == "Names":
		return nameText(path.Base(pointer), false)
	case pointer == "/$defs/filled":
		return link + ", not empty"
	case strings.HasPrefix(pointer, "/properties/"):
		return "as in " + link
	case strings.HasPrefix(pointer, "/$defs/"):
		return "object"
	case ref != "":
		return link
	}
	if only, ok := of["const"]; ok {
		return "`" + fmt.Sprint(only) + "`"
	}
	if values, ok := of["enum"].([]any); ok {
		var all []string
		for _, value := range values {
			all = append(all, "`"+fmt.Sprint(value)+"`")
		}
		return strings.ReplaceAll(strings.Join(all, ", "), "``", "empty")
	}
	switch kind, _ := of["type"].(string); kind {
	case "":
		var all []string
		for _, form := range forms(of) {
			all = append(all, typeText(doc, form))
		}
		return cmp.Or(strings.Join(all, " or "), "any JSON value")
	case "string":
		return "text" + rangeText(of, "minLength", "maxLength", " bytes")
	case "integer", "number":
		if text := rangeText(of, "minimum", "maximum", ""); text != "" {
			return strings.TrimPrefix(text, ", ")
		}
		return kind
	case "array":
		text := "list of " + several(doc, of["items"].(node)) + rangeText(of, "minItems", "maxItems", "")
		if of["uniqueItems"] == true {
			text += ", each once"
		}
		return text
	case "object":
		return objectText(doc, of)
	default:
		return kind
	}
}

// objectText is typeText for an object.
func objectText(doc, of node) string {
	values, ok := of["additionalProperties"].(node)
	if !ok {
		return "object"
	}
	null := ""
	if list, ok := values["type"].([]any); ok {
		values, null = maps.Clone(values), " or null"
		values["type"] = list[0]
	}
	return "object of " + several(doc, values) + null + rangeText(of, "minProperties", "maxProperties", "")
}

// several is typeText for the items of a list.
func several(doc, of node) string {
	if ref, _ := of["$ref"].(string); strings.Contains(ref, "Names.json#") {
		return nameText(path.Base(ref), true)
	}
	text := typeText(doc, of)
	for _, kind := range []string{"text", "object", "integer"} {
		if rest, ok := strings.CutPrefix(text, kind); ok {
			return kind + "s" + strings.Replace(rest, ", ", " of ", 1)
		}
	}
	return text
}

// nameText is what tables call a name, or several.
func nameText(name string, several bool) string {
	noun, rest := name, ""
	switch name {
	case "hash", "token", "tool", "tool_id", "tool_name":
	case "blob":
		noun = "blob name"
	case "run":
		noun, rest = "number", " of a run"
	default:
		noun, rest = "name", " of a "+name
	}
	switch {
	case !several:
		return noun + rest
	case noun == "hash":
		return "hashes"
	case rest != "":
		return noun + "s of " + strings.TrimPrefix(rest, " of a ") + "s"
	}
	return noun + "s"
}

func rangeText(of node, low, high, unit string) string {
	least, hasLeast := of[low].(int64)
	most, hasMost := of[high].(int64)
	switch {
	case hasLeast && hasMost && unit == "":
		return ", " + numberText(least) + " to " + numberText(most)
	case hasMost && hasLeast:
		return ", " + numberText(least) + " to " + sizeText(most, unit)
	case hasMost && unit != "":
		return ", at most " + sizeText(most, unit)
	case hasMost:
		return ", at most " + numberText(most)
	case hasLeast && least > 0:
		return ", at least " + numberText(least)
	}
	return ""
}

func sizeText(n int64, unit string) string {
	if n >= 1<<10 && n%(1<<10) == 0 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return numberText(n) + unit
}

func numberText(n int64) string {
	if n >= 1<<20 && n&(n-1) == 0 {
		return "2^" + strconv.Itoa(bits.TrailingZeros64(uint64(n)))
	}
	return strconv.FormatInt(n, 10)
}
