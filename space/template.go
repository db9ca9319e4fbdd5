package space

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/codec"
)

// The variables of templates. A fact's variable is VarFact and its name.
const (
	VarSession = "session"
	VarRun     = "run"
	VarVersion = "space.version"
	VarFact    = "fact."
)

// runBytesMax is the maximal length of {{run}}: r and a number.
const runBytesMax = 1 + 10

const (
	opening = "{{"
	closing = "}}"
)

// Use says how often a template uses a variable.
type Use struct {
	Name  string
	Times int
}

// Vars returns the variables of a template, by name, with how often each is
// used. Problems have a line and the code unknown_variable: an unknown name, or
// braces that are not closed. All of them are returned.
func Vars(text string) (uses []Use, problems []Problem) {
	line, counted := 1, 0
	walk(text, func(string) {}, func(name string) {
		i, found := slices.BinarySearchFunc(uses, name, func(u Use, name string) int { return cmp.Compare(u.Name, name) })
		if !found {
			uses = slices.Insert(uses, i, Use{Name: name})
		}
		uses[i].Times++
	}, func(offset int, detail string) {
		line += strings.Count(text[counted:offset], "\n")
		counted = offset
		problems = append(problems, Problem{Code: UnknownVariable, Line: line, Detail: detail})
	})
	return uses, SortProblems(problems)
}

// Expand returns the text with each variable replaced by its value, and {{{{ by
// two braces. Values are not expanded again. ok is false if the result is
// longer than max bytes, or the text is not a valid template.
func Expand(text string, value func(name string) string, max int) (expanded string, ok bool) {
	var b strings.Builder
	ok = true
	add := func(s string) {
		if b.Len()+len(s) > max {
			ok = false
			return
		}
		b.WriteString(s)
	}
	walk(text, add, func(name string) { add(value(name)) }, func(int, string) { ok = false })
	if !ok {
		return "", false
	}
	return b.String(), true
}

// walk reports the parts of a template in order: text, variables and faults.
func walk(text string, plain, variable func(string), fault func(offset int, detail string)) {
	at := 0
	for {
		i := strings.Index(text[at:], opening)
		if i < 0 {
			plain(text[at:])
			return
		}
		plain(text[at : at+i])
		at += i
		if strings.HasPrefix(text[at+len(opening):], opening) {
			plain(opening)
			at += 2 * len(opening)
			continue
		}
		name, rest, closed := strings.Cut(text[at+len(opening):], closing)
		switch {
		case !closed:
			fault(at, "{{ without }}: write {{{{ for two braces")
			return
		case !isVariable(name):
			fault(at, "there is no variable "+quoted(name)+": use session, run, fact.NAME or space.version, and {{{{ for two braces")
		default:
			variable(name)
		}
		at = len(text) - len(rest)
	}
}

func isVariable(name string) bool {
	if fact, ok := strings.CutPrefix(name, VarFact); ok {
		return fact != "" && len(fact) <= FactNameBytesMax && utf8.ValidString(fact) && !strings.ContainsAny(fact, "{}\n\r")
	}
	return name == VarSession || name == VarRun || name == VarVersion
}

// longest is the maximal length of a variable's value in bytes.
func longest(name string) int {
	switch name {
	case VarSession:
		return TokenBytesMax
	case VarRun:
		return runBytesMax
	case VarVersion:
		return VersionBytesMax
	}
	return FactValueBytesMax
}

// VarsOf returns uses as a part encodes them.
func VarsOf(uses []Use) codec.Pairs {
	if len(uses) == 0 {
		return nil
	}
	pairs := make(codec.Pairs, len(uses))
	for i, u := range uses {
		pairs[i] = codec.Pair{Key: u.Name, Value: codec.AppendInt(nil, int64(u.Times))}
	}
	return pairs
}

// Uses returns the variables of a part, by name. ok is false if one of them is
// unknown or its count is not a positive number, which Parse does not accept.
func (p *Part) Uses() (uses []Use, ok bool) {
	for _, pair := range p.Vars {
		u := Use{Name: pair.Key}
		if err := codec.Unmarshal(pair.Value, &u.Times); err != nil || u.Times < 1 || u.Times > TemplateBytesMax || !isVariable(u.Name) {
			return nil, false
		}
		uses = append(uses, u)
	}
	return uses, true
}
