package planner

import (
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
// text and a million states.
func compilePattern(text string) (p pattern, problem string) {
	if len(text) > PatternBytesMax {
		return pattern{}, "a pattern is at most " + strconv.Itoa(PatternBytesMax) + " bytes"
	}
	states, err := PatternStates(text)
	switch {
	case err != nil:
		return pattern{}, "pattern " + quoted(text) + " does not compile as RE2, which has no look-around and no back-references"
	case states > PatternStatesMax:
		return pattern{}, "pattern " + quoted(text) + " is too large: " + strconv.Itoa(states) + " states, at most " + strconv.Itoa(PatternStatesMax)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, "pattern " + quoted(text) + " does not compile as RE2"
	}
	return pattern{re: re, states: states}, ""
}

// PatternStates returns about how many states the program of a regular
// expression (RE2 syntax) has, without compiling it: never fewer than the
// compiler makes, but for a few that do not grow with the expression. The
// error is that of the parser.
func PatternStates(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return statesOf(parsed), nil
}

// statesMost is where counting stops: no product of two such numbers overflows.
const statesMost = 1 << 30

// statesOf adds up the states of a parsed expression and all below it. The
// parser bounds how deep that is.
func statesOf(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n = 2 + statesOf(re.Sub[0])
	case syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			n = min(statesMost, n+1+statesOf(sub))
		}
	case syntax.OpRepeat:
		each, times := statesOf(re.Sub[0])+1, max(re.Min, re.Max, 1)
		n = 2 + each*times
	}
	return min(statesMost, n)
}
