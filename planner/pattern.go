package planner

import (
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strconv"
)

// pattern is a regular expression and the size of its program, to which the
// time of a match is proportional.
type pattern struct {
	re     *regexp.Regexp
	states int
}

// compilePattern compiles a regular expression, or says what is wrong. Its
// size is known before anything is compiled: (a{1000}){1000} is ten bytes of
// text and a million states. room is how many bytes its patterns may still
// take, and becomes less.
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

// patternRoom is how many bytes the patterns of a schema take, and of all
// schemas of its registry before it.
type patternRoom struct{ schema, registry int }

// take counts one pattern more, or says what it goes beyond.
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
// expression (RE2 syntax) has, without compiling it: never fewer than the
// compiler makes, but for a few that do not grow with the expression. The error
// is the parser's.
func PatternStates(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return sizeOf(parsed).states, nil
}

// patternSize is what a regular expression compiles to, at most: states, and
// the bounds of the ranges of characters that they are for. \pL alone has 1,300,
// and a pattern that begins with ^ has a copy of them for each of its states.
type patternSize struct{ states, runes int }

// What a compiled pattern takes of memory, in bytes on a 64-bit machine.
const (
	patternWeight      = 1 << 10
	patternStateWeight = 128
	patternRuneWeight  = 7
)

func (s patternSize) bytes() int {
	return patternWeight + s.states*patternStateWeight + s.runes*patternRuneWeight
}

// sizeMost is where counting stops: no product of two such numbers overflows.
const sizeMost = 1 << 30

// plus returns the sum of a size and times another one.
func (s patternSize) plus(other patternSize, times int) patternSize {
	return patternSize{min(sizeMost, s.states+other.states*times), min(sizeMost, s.runes+other.runes*times)}
}

// sizeOf adds up the size of a parsed expression and of all below it. The
// parser bounds how deep that is.
func sizeOf(re *syntax.Regexp) patternSize {
	n := patternSize{states: 1}
	switch re.Op {
	case syntax.OpLiteral:
		n = patternSize{states: len(re.Rune), runes: foldsMax * len(re.Rune)}
	case syntax.OpCharClass:
		// Rounded up, so that the same patterns are taken when a later release
		// of Go has more letters.
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

// foldsMax is how many bounds a literal character has at most: k, K and the
// Kelvin sign.
const foldsMax = 8
