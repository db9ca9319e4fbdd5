package planner

import (
	"slices"
	"strconv"
	"strings"
)

// The names in a when. Those with @ can't be typed.
const (
	varCalls   = "calls" // only in steps, like last
	varContext = "context"
	varLast    = "last"
	varStep    = "step"
	varArgs    = "args"   // only in approvals: the call's arguments
	varTool    = "tool"   // only in approvals: the call's tool_id
	varScope   = "@scope" // the *scope, argument of the functions of the run
	callUsed   = "@used"  // used, as it stands in the tree
	callSkill  = "@skill" // likewise
	callSpace  = "@space"
)

// usage are the counters, by their names in a when.
var usage = [...]struct {
	name  string
	count func(u *StepUsage) int64
}{
	{"usage.input_tokens", func(u *StepUsage) int64 { return u.InputTokens }},
	{"usage.output_tokens", func(u *StepUsage) int64 { return u.OutputTokens }},
	{"usage.cached_tokens", func(u *StepUsage) int64 { return u.CachedTokens }},
	{"usage.reasoning_tokens", func(u *StepUsage) int64 { return u.ReasoningTokens }},
}

// overloads are the functions of the standard library that a when may call. A
// function without overloads here has one for every type. Excluded are times
// and durations, time zones, maps, bytes, unsigned integers, regular
// expressions, types as values, and functions that make lists longer.
var overloads = [...]struct {
	function string
	ids      []string
}{
	{"_?_:_", nil}, {"_&&_", nil}, {"_||_", nil}, {"!_", nil}, {"@not_strictly_false", nil},
	{"_==_", nil}, {"_!=_", nil},
	{"_<_", ordered("less")}, {"_<=_", ordered("less_equals")},
	{"_>_", ordered("greater")}, {"_>=_", ordered("greater_equals")},
	{"_+_", []string{"add_int64", "add_double", "add_string"}},
	{"_-_", []string{"subtract_int64", "subtract_double"}},
	{"_*_", []string{"multiply_int64", "multiply_double"}},
	{"_/_", []string{"divide_int64", "divide_double"}},
	{"_%_", []string{"modulo_int64"}},
	{"-_", []string{"negate_int64", "negate_double"}},
	{"_[_]", []string{"index_list", "index_map"}}, // index_map is for context: there are no maps
	{"@in", []string{"in_list"}},
	{"size", []string{"size_list", "list_size", "size_string", "string_size"}},
	{"int", []string{"int64_to_int64", "double_to_int64", "string_to_int64"}},
	{"double", []string{"double_to_double", "int64_to_double"}},
	{"contains", nil}, {"startsWith", nil}, {"endsWith", nil},
}

// ordered returns the overloads of a comparison.
func ordered(name string) []string {
	return []string{name + "_int64", name + "_double", name + "_int64_double", name + "_double_int64", name + "_string"}
}

// used reports whether a tool ran in an earlier step.
func (f *StepFacts) used(id string) bool {
	_, ok := slices.BinarySearch(f.Used, id)
	return ok
}

// fact returns a fact's value, "" if there is none.
func (f *StepFacts) fact(name string) string {
	i, ok := slices.BinarySearchFunc(f.Facts, name, func(fact Fact, name string) int { return strings.Compare(fact.Name, name) })
	if !ok {
		return ""
	}
	return f.Facts[i].Value
}

func (f *StepFacts) role(name string) bool { return slices.Contains(f.Roles, name) }

// at formats a position; columns are counted from 1.
func at(line, column int) string {
	return " at " + strconv.Itoa(line) + ":" + strconv.Itoa(column+1)
}
