package planner

import (
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strconv"
)

// pattern is a regular expression and the size of its program. The time of a
// match is proportional to that size.
type pattern struct {
	re     *regexp.Regexp
	states int
}

// compilePattern compiles a regular expression, or says what is wrong. It
// computes the size before it compiles: (a{1000}){1000} is ten bytes of text
// and a million states. The size is counted into room.
func compilePattern(text string, room *patternRoom) (p pattern, problem string) {
	if len(text) > PatternBytesMax {
		return pattern{}, "a pattern is at most " + strconv.Itoa(PatternBytesMax) + " bytes"
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, "pattern " + quoted(text) + " does not compile as RE2, which has no look-around and no back-references"
	}
	size := sizeOf(parsed)
	if size.states > PatternStatesMax {
		return pattern{}, "pattern " + quoted(text) + " is too large: " + strconv.Itoa(size.states) + " states, at most " + strconv.Itoa(PatternStatesMax)
	}
	if problem := room.take(size.bytes()); problem != "" {
		return pattern{}, "pattern " + quoted(text) + problem
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, "pattern " + quoted(text) + " does not compile as RE2"
	}
	return pattern{re: re, states: size.states}, ""
}

// patternRoom counts the bytes of the patterns of a schema, and of all schemas
// before it in its registry.
type patternRoom struct{ schema, registry int }

// take counts one more pattern, or says which limit it exceeds.
func (r *patternRoom) take(bytes int) (problem string) {
	r.schema += bytes
	switch {
	case r.schema > SchemaPatternsBytesMax:
		return ": with it the patterns of the schema take " + strconv.Itoa(r.schema) + " bytes compiled, at most " + strconv.Itoa(SchemaPatternsBytesMax) + ": repeat less, or name fewer characters"
	case r.registry+r.schema > RegistryPatternsBytesMax:
		return ": with it the patterns of the registry take " + strconv.Itoa(r.registry+r.schema) + " bytes compiled, at most " + strconv.Itoa(RegistryPatternsBytesMax) + ": repeat less, or name fewer characters"
	}
	return ""
}

// PatternStates returns about how many states the program of a regular
// expression (RE2 syntax) has, without compiling it. The compiler makes no
// more, except for a few that do not grow with the expression. The error is the
// parser's.
func PatternStates(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return sizeOf(parsed).states, nil
}

// patternSize is an upper bound of what a regular expression compiles to:
// states, and the bounds of their ranges of characters. \pL alone has 1,300,
// and a pattern that begins with ^ has a copy of them for each of its states.
type patternSize struct{ states, runes int }

// The memory that a compiled pattern takes, in bytes on a 64-bit machine.
const (
	patternWeight      = 1 << 10
	patternStateWeight = 128
	patternRuneWeight  = 7
)

func (s patternSize) bytes() int {
	return patternWeight + s.states*patternStateWeight + s.runes*patternRuneWeight
}

// sizeMost is where counting stops: the product of two such numbers does not
// overflow.
const sizeMost = 1 << 30

// plus returns s plus times other.
func (s patternSize) plus(other patternSize, times int) patternSize {
	return patternSize{min(sizeMost, s.states+other.states*times), min(sizeMost, s.runes+other.runes*times)}
}

// sizeOf adds up the size of a parsed expression and its subexpressions. The
// parser bounds the depth.
func sizeOf(re *syntax.Regexp) patternSize {
	n := patternSize{states: 1}
	switch re.Op {
	case syntax.OpLiteral:
		n = patternSize{states: len(re.Rune), runes: foldsMax * len(re.Rune)}
	case syntax.OpCharClass:
		// Rounded up, so that a later release of Go with more letters accepts the
		// same patterns.
		n.runes = 1 << bits.Len(uint(len(re.Rune)))
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n = patternSize{states: 2}.plus(sizeOf(re.Sub[0]), 1)
	case syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			n = n.plus(patternSize{states: 1}, 1).plus(sizeOf(sub), 1)
		}
	case syntax.OpRepeat:
		each, times := sizeOf(re.Sub[0]).plus(patternSize{states: 1}, 1), max(re.Min, re.Max, 1)
		n = patternSize{states: 2}.plus(each, times)
	}
	return n
}

// foldsMax is the maximal number of bounds of a literal character: k, K and the
// Kelvin sign.
const foldsMax = 8
