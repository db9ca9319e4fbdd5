package schema

import (
	"slices"
	"strconv"
	"strings"
)

// Dialect is what the API of a provider accepts as tools.
type Dialect struct {
	Name string
	// plain: only the keywords of a table, and every value has one type.
	plain bool
	// anyOfAlone: next to anyOf, nothing else.
	anyOfAlone bool
	// textEnums: only texts have an enum, and none is empty.
	textEnums bool
	// members: objects have properties, arrays have items, required names
	// properties, and schemas are objects.
	members bool
	// closed: objects have just the properties that they name. An object of any
	// others can't be told.
	closed bool
	// optionalMax and unionsMax are the most properties that are not required, and
	// values with alternatives, of a closed schema; no unionsMax: no limit is known.
	optionalMax, unionsMax int
	// toolsMax is the most tools of a request; 0: no limit is known.
	toolsMax int
	// depthMax is the depth from which on only values without parts are described.
	depthMax int
	isKey    func(key string) bool
	isName   func(name string) bool
	folds    bool // names that differ by case or by - and _ count as the same
	keywords map[string][]string
	formats  []string
}

// The dialects.
var (
	Anthropic = &Dialect{Name: "anthropic", depthMax: 64, isKey: isKey, isName: anyText}
	OpenAI    = &Dialect{Name: "openai", members: true, toolsMax: 128, depthMax: 9, isKey: anyText, isName: anyText}
	Gemini    = &Dialect{
		Name: "gemini", plain: true, anyOfAlone: true, textEnums: true, members: true, toolsMax: 128, depthMax: 9,
		isKey: isIdentifier, isName: isIdentifierStart, folds: true,
		keywords: map[string][]string{
			"array": {"items", "maxItems", "minItems"}, "object": {"additionalProperties", "properties", "required"},
			"string": {"enum", "format"}, "number": {"maximum", "minimum"}, "integer": {"maximum", "minimum"},
		},
		formats: []string{"date-time"},
	}
	// Chat is for servers with chat completions, OpenAI's own excepted.
	Chat = &Dialect{
		Name: "openai-chat", plain: true, members: true, toolsMax: 128, depthMax: 9,
		isKey: isKey, isName: isLettered, folds: true,
		keywords: map[string][]string{
			"array": {"items", "maxItems", "minItems"}, "object": {"additionalProperties", "properties", "required"},
			"string": {"enum", "format", "maxLength", "minLength"}, "number": {"enum", "maximum", "minimum"}, "integer": {"enum", "maximum", "minimum"},
			"boolean": {"enum"},
		},
		formats: []string{"date", "date-time", "email", "ipv4", "ipv6", "time", "uuid"},
	}
)

// All returns the dialects.
func All() []*Dialect { return []*Dialect{Anthropic, Gemini, OpenAI, Chat} }

// nameBytesMax is the greatest length of a name or key that all APIs accept, in bytes.
const nameBytesMax = 64

func anyText(string) bool { return true }

// isKey reports whether a key is 1 to 64 of A-Za-z0-9_.-, as Anthropic requires.
func isKey(key string) bool {
	return key != "" && len(key) <= nameBytesMax && strings.IndexFunc(key, func(r rune) bool { return !isWord(r) && r != '.' && r != '-' }) < 0
}

// isIdentifier reports whether a key is 1 to 64 of A-Za-z0-9_ and does not begin
// with a digit, as Google's FunctionDeclaration says of parameters.
func isIdentifier(key string) bool {
	return isIdentifierStart(key) && len(key) <= nameBytesMax && strings.IndexFunc(key, func(r rune) bool { return !isWord(r) }) < 0
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

// isIdentifierStart reports whether a name begins with a letter or an underscore.
func isIdentifierStart(name string) bool {
	return name != "" && isWord(rune(name[0])) && (name[0] < '0' || name[0] > '9')
}

// isLettered reports whether a name begins with a letter, as Moonshot requires.
func isLettered(name string) bool { return isIdentifierStart(name) && name[0] != '_' }

// takes reports whether the API knows a keyword for a type.
func (d *Dialect) takes(kind, keyword string) bool { return slices.Contains(d.keywords[kind], keyword) }

// fold returns what names that count as the same have in common.
func (d *Dialect) fold(name string) string {
	if !d.folds {
		return name
	}
	return strings.ToLower(strings.ReplaceAll(name, "-", "_"))
}

// rename returns the names that the model is shown instead of those that are not
// legal, or are the same as an earlier one. Other names are kept.
func rename(names []string, legal func(string) bool, fold func(string) string) map[string]string {
	taken, shown := map[string]bool{}, map[string]string{}
	var others []string
	for _, name := range names {
		if same := fold(name); legal(name) && !taken[same] {
			taken[same] = true
		} else {
			others = append(others, name)
		}
	}
	for _, name := range others {
		base := strings.Map(func(r rune) rune {
			if isWord(r) {
				return r
			}
			return '_'
		}, name)
		if !legal(base[:min(len(base), 1)]) {
			base = "x_" + base
		}
		for n := 1; ; n++ {
			mark := ""
			if n > 1 {
				mark = "_" + strconv.Itoa(n)
			}
			to := base[:min(len(base), nameBytesMax-len(mark))] + mark
			if !taken[fold(to)] {
				taken[fold(to)], shown[name] = true, to
				break
			}
		}
	}
	return shown
}
