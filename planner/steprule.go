package planner

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/refold/refold/codec"
)

// StepRule says what a step offers, and how. The first rule of a list whose when holds
// applies, to that step only. A field that it leaves out stays as without rules.
//
// Struct fields are in the byte order of their wire names.
//
//wire:rule {"not": {"required": ["active_tools", "tool_refs"]}}
type StepRule struct {
	// The tools of the step in display order. An empty list is no tools.
	ActiveTools *[]string `msgpack:"active_tools,omitempty" lim:"..StepToolsMax,item=@tool"`
	// The run's context from this step on, as a whole: later rules, hooks and tool calls
	// receive it.
	Context codec.Raw `msgpack:"context,omitempty" lim:"object"`
	// The provider's name of the model.
	Model string `msgpack:"model,omitempty" lim:"..StepModelBytesMax"`
	// Replaces the config's as a whole; at most 32 KiB, encoded.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// Replaces the config's.
	System string `msgpack:"system,omitempty" lim:"..StepSystemBytesMax"`
	// auto, none, required, or a tool of the registry, for this step.
	ToolChoice string `msgpack:"tool_choice,omitempty" lim:"@tool"`
	// In place of active_tools: descriptors that the registry binds.
	ToolRefs *[]codec.Ref `msgpack:"tool_refs,omitempty" lim:"..StepToolsMax"`
	// A condition in CEL, described in docs/semantics.md; always holds if absent.
	When string `msgpack:"when,omitempty" lim:"..WhenBytesMax"`
}

// The values of StepRule.ToolChoice that name no tool. A tool with one of these
// names is chosen by its tool_id.
const (
	ChoiceAuto     = "auto"
	ChoiceNone     = "none"
	ChoiceRequired = "required"
)

// IsChoiceMode reports whether a tool_choice names no tool.
func IsChoiceMode(choice string) bool {
	return choice == "" || choice == ChoiceAuto || choice == ChoiceNone || choice == ChoiceRequired
}

// RuleError says which part of a list of step rules is wrong. Path refers to
// the input as it was given, [2].when; it is empty if the whole is too large.
// At most one of Unknown and TooLarge is set.
type RuleError struct {
	Path     string
	Unknown  bool // it names a tool or a descriptor that the registry lacks
	TooLarge bool // it exceeds a limit
	Detail   string
}

// Error returns the path and what is wrong there.
func (e *RuleError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// Steps is a compiled, immutable list of step rules. It may be shared between
// sessions and is safe for concurrent use. A nil *Steps has no rules.
type Steps struct {
	given []StepRule
	whens []*when // nil where When is empty
}

// CompileSteps checks step rules against a registry and compiles them, or
// returns the first fault: rules in their order, a rule's fields in the order
// of the encoding. Nil rules give nil Steps; an empty list gives Steps without
// rules. The result keeps copies of its input.
func CompileSteps(reg *Registry, rules []StepRule) (*Steps, *RuleError) {
	if rules == nil {
		return nil, nil
	}
	if len(rules) > StepRulesMax {
		return nil, &RuleError{TooLarge: true, Detail: fmt.Sprintf("%d step rules, at most %d", len(rules), StepRulesMax)}
	}
	if size := whensBytes(rules); size > StepWhensBytesMax {
		return nil, &RuleError{TooLarge: true, Detail: fmt.Sprintf("the conditions of the step rules take %d bytes, at most %d", size, StepWhensBytesMax)}
	}
	s := &Steps{given: cloneRules(rules), whens: make([]*when, len(rules))}
	for i := range s.given {
		path := "[" + strconv.Itoa(i) + "]"
		if bad := CheckStep(reg, path, &s.given[i]); bad != nil {
			return nil, bad
		}
		c := ruleCheck{path: path}
		if !c.text("when", s.given[i].When, WhenBytesMax) {
			return nil, c.bad
		}
		compiled, bad := compileWhen(reg, s.given[i].When)
		if bad != nil {
			bad.Path = path + ".when"
			return nil, bad
		}
		s.whens[i] = compiled
	}
	packed, err := codec.Marshal(s.given)
	if err != nil {
		return nil, &RuleError{Detail: "has no canonical encoding"}
	}
	if len(packed) > StepsBytesMax {
		return nil, &RuleError{TooLarge: true, Detail: fmt.Sprintf("the step rules take %d bytes, at most %d", len(packed), StepsBytesMax)}
	}
	return s, nil
}

// CheckStep checks a rule except for its When, and returns the first fault,
// fields in the order of the encoding. path is the rule's; the fault's path
// begins with it.
func CheckStep(reg *Registry, path string, rule *StepRule) *RuleError {
	c := ruleCheck{reg: reg, path: path}
	switch {
	case rule.ActiveTools != nil && !c.names("active_tools", *rule.ActiveTools),
		!c.object("context", rule.Context, StepContextBytesMax),
		!c.text("model", rule.Model, StepModelBytesMax),
		!c.object("params", rule.Params, StepParamsBytesMax),
		!c.text("system", rule.System, StepSystemBytesMax),
		!c.choice(rule.ToolChoice),
		rule.ToolRefs != nil && !c.refs(rule):
		return c.bad
	}
	return nil
}

// ruleCheck checks one rule. Its methods return false after they have set bad.
type ruleCheck struct {
	reg  *Registry
	path string
	bad  *RuleError
}

// fault records what is wrong with a field. It returns false.
func (c *ruleCheck) fault(bad RuleError, field, format string, args ...any) bool {
	bad.Path = c.path + "." + field
	if c.path == "" {
		bad.Path = field
	}
	bad.Detail = fmt.Sprintf(format, args...)
	c.bad = &bad
	return false
}

func (c *ruleCheck) names(field string, names []string) bool {
	if len(names) > StepToolsMax {
		return c.fault(RuleError{TooLarge: true}, field, "%d tools, at most %d", len(names), StepToolsMax)
	}
	for i, name := range names {
		if _, ok := c.reg.Lookup(name); !ok {
			return c.fault(RuleError{Unknown: true}, field+"["+strconv.Itoa(i)+"]", "there is no tool %+q", clip(name, ToolIDBytesMax))
		}
	}
	return true
}

func (c *ruleCheck) refs(rule *StepRule) bool {
	if rule.ActiveTools != nil {
		return c.fault(RuleError{}, "tool_refs", "stands beside active_tools: give one of the two")
	}
	refs := *rule.ToolRefs
	if len(refs) > StepToolsMax {
		return c.fault(RuleError{TooLarge: true}, "tool_refs", "%d descriptors, at most %d", len(refs), StepToolsMax)
	}
	for i, ref := range refs {
		if _, ok := c.reg.LookupRef(ref); !ok {
			return c.fault(RuleError{Unknown: true}, "tool_refs["+strconv.Itoa(i)+"]", "no tool has the descriptor %s", ref)
		}
	}
	return true
}

func (c *ruleCheck) choice(name string) bool {
	if IsChoiceMode(name) { // a bridge checks rules without a registry
		return true
	}
	if _, ok := c.reg.Lookup(name); !ok {
		return c.fault(RuleError{Unknown: true}, "tool_choice", "is %s, %s, %s or a tool, and there is no tool %+q", ChoiceAuto, ChoiceNone, ChoiceRequired, clip(name, ToolIDBytesMax))
	}
	return true
}

func (c *ruleCheck) text(field, text string, max int) bool {
	if len(text) > max {
		return c.fault(RuleError{TooLarge: true}, field, "%d bytes, at most %d", len(text), max)
	}
	if !utf8.ValidString(text) {
		return c.fault(RuleError{}, field, "is not UTF-8")
	}
	return true
}

// object checks an object of at most max bytes. Nil is none.
func (c *ruleCheck) object(field string, raw codec.Raw, max int) bool {
	if len(raw) == 0 {
		return true
	}
	if len(raw) > max {
		return c.fault(RuleError{TooLarge: true}, field, "%d bytes, at most %d", len(raw), max)
	}
	if codec.Check(raw) != nil {
		return c.fault(RuleError{}, field, "is not in the canonical encoding")
	}
	if !codec.IsMap(raw) {
		return c.fault(RuleError{}, field, "is a JSON object")
	}
	if codec.HasBinary(raw) {
		return c.fault(RuleError{}, field, "holds binary, which JSON does not have")
	}
	return true
}

// cloneRules copies rules and everything that they point to.
func cloneRules(rules []StepRule) []StepRule {
	out := slices.Clone(rules)
	for i := range out {
		rule := &out[i]
		rule.Context, rule.Params = slices.Clone(rule.Context), slices.Clone(rule.Params)
		if rule.ActiveTools != nil {
			names := append([]string{}, *rule.ActiveTools...)
			rule.ActiveTools = &names
		}
		if rule.ToolRefs != nil {
			refs := append([]codec.Ref{}, *rule.ToolRefs...)
			rule.ToolRefs = &refs
		}
	}
	return out
}

// rules returns a copy of the rules as they were given, or nil if s is nil.
func (s *Steps) rules() []StepRule {
	if s == nil {
		return nil
	}
	return cloneRules(s.given)
}

// Len returns how many rules there are.
func (s *Steps) Len() int {
	if s == nil {
		return 0
	}
	return len(s.given)
}

// AsksCalls reports whether a rule's when reads the calls of the last step.
func (s *Steps) AsksCalls() bool {
	return s != nil && slices.ContainsFunc(s.whens, func(w *when) bool { return w != nil && w.calls })
}

// Rule returns rule i as it was given. It panics if there is none. The caller
// must not change it.
func (s *Steps) Rule(i int) *StepRule { return &s.given[i] }
