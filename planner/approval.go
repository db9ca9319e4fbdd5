package planner

import (
	"fmt"
	"slices"
	"strconv"
)

// ApprovalRule is a rule of an install policy that decides over calls. The first rule
// that matches decides.
type ApprovalRule struct {
	// The call runs, waits for a person, or is refused.
	Decision Decision `msgpack:"decision"`
	// The tools that the rule is about, all if absent: tool_ids, or tool_names that the
	// install record has, an alternate's too. A name that the record lacks is the tool_id
	// of a tool that a session's own registry may have.
	Tools []string `msgpack:"tools,omitempty" lim:"..ToolsMax,item=@tool_id"`
	// A condition in CEL over the call and the run, described in docs/semantics.md; always
	// holds if absent.
	When string `msgpack:"when,omitempty" lim:"..WhenBytesMax"`
}

// Decision is a policy's verdict on a call. The texts are wire.
type Decision string

// The decisions of a policy.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// ApprovalFacts is what a condition sees of a call: the facts that a step's
// condition sees, the arguments as `args` and the tool_id as `tool`.
type ApprovalFacts struct {
	StepFacts
	Arguments string // JSON text of an object
}

// Approvals is a compiled policy. It is immutable, may be shared, and is safe
// for concurrent use. A nil *Approvals has no rules.
type Approvals struct {
	rules []ApprovalRule
	tools [][]string // the tool_ids that each rule is about
	whens []*when
	deny  bool // some rule denies
	moves bool // some rule denies, and some condition can change without arguments
}

// CompileApprovals checks a policy and compiles it under the registry of its
// install record, or returns the first fault. Tool names are resolved in that
// registry, whatever a session calls its own tools: a rule is about tool_ids. A
// name that the registry lacks is taken as a tool_id, so that a rule can be
// written for a future tool; in used("tool") it is a fault.
func CompileApprovals(reg *Registry, rules []ApprovalRule) (*Approvals, *RuleError) {
	if len(rules) > ApprovalRulesMax {
		return nil, &RuleError{TooLarge: true, Detail: fmt.Sprintf("%d rules, at most %d", len(rules), ApprovalRulesMax)}
	}
	a := &Approvals{rules: rules, tools: make([][]string, len(rules)), whens: make([]*when, len(rules))}
	for i, rule := range rules {
		path := "[" + strconv.Itoa(i) + "]"
		switch {
		case rule.Decision != Allow && rule.Decision != Ask && rule.Decision != Deny:
			return nil, &RuleError{Path: path + ".decision", Detail: fmt.Sprintf("is allow, ask or deny, not %+q", clip(string(rule.Decision), NameBytesMax))}
		case len(rule.Tools) > StepToolsMax:
			return nil, &RuleError{Path: path + ".tools", TooLarge: true, Detail: fmt.Sprintf("%d tools, at most %d", len(rule.Tools), StepToolsMax)}
		}
		for j, name := range rule.Tools {
			if !isDotted(name, ToolIDBytesMax) {
				return nil, &RuleError{Path: path + ".tools[" + strconv.Itoa(j) + "]", Detail: "is neither a tool_id nor a tool_name"}
			}
			if t, ok := reg.Lookup(name); ok {
				name = reg.specs[t].ToolID
			}
			a.tools[i] = append(a.tools[i], name)
		}
		if len(rule.When) > WhenBytesMax {
			return nil, &RuleError{Path: path + ".when", TooLarge: true, Detail: fmt.Sprintf("%d bytes, at most %d", len(rule.When), WhenBytesMax)}
		}
		compiled, bad := compileApproval(reg, rule.When)
		if bad != nil {
			bad.Path = path + ".when"
			return nil, bad
		}
		a.whens[i] = compiled
		a.deny = a.deny || rule.Decision == Deny
		a.moves = a.moves || compiled != nil && !compiled.args
	}
	a.moves = a.moves && a.deny
	return a, nil
}

// AllowsAll reports whether every call of a tool may run.
func (a *Approvals) AllowsAll(reg *Registry, t ToolIndex) bool {
	return a.len() == 0 && reg.tools[t].spec.Approval == ApprovalNever
}

// Decide says whether a call of a tool may run: by the policy's first matching
// rule, else by the tool's own approval. If a condition can't be evaluated, or
// the conditions before it took DecideCostMax together, the call needs an
// approval, which is the safe choice.
func (a *Approvals) Decide(reg *Registry, t ToolIndex, f ApprovalFacts) Decision {
	decision, _ := a.Decided(reg, t, f)
	return decision
}

// Decided is Decide. It also returns the rule that decides, from 0; -1: the tool's own
// approval.
func (a *Approvals) Decided(reg *Registry, t ToolIndex, f ApprovalFacts) (decision Decision, rule int) {
	tool := &reg.tools[t]
	seen := scope{facts: &f.StepFacts, tool: tool.spec.ToolID, arguments: f.Arguments, costMax: DecideCostMax}
	for i := range a.len() {
		rule := &a.rules[i]
		if len(rule.Tools) > 0 && !slices.Contains(a.tools[i], tool.spec.ToolID) {
			continue
		}
		switch holds, code := a.whens[i].holds(&seen); {
		case code != "" && rule.Decision != Deny:
			return Ask, i
		case code != "" || holds:
			return rule.Decision, i
		}
	}
	switch {
	case tool.spec.Approval == ApprovalNever:
		return Allow, -1
	case tool.approval == nil: // always
		return Ask, -1
	}
	if holds, code := tool.approval.holds(&seen); !holds && code == "" {
		return Allow, -1
	}
	return Ask, -1
}

// Denied returns, by tool, the rule that denies every call of it, whatever its
// arguments, plus 1; 0: none does. It returns nil if no tool has one. Conditions
// that read args decide nothing here. Those of all tools may take DecideCostMax
// together; then the calls of the other tools are decided one by one.
func (a *Approvals) Denied(reg *Registry, f StepFacts) []int {
	if a == nil || !a.deny {
		return nil
	}
	var denied []int
	seen := scope{facts: &f, costMax: DecideCostMax}
	for t := range reg.tools {
		if rule := a.deniesAll(reg.tools[t].spec.ToolID, &seen); rule > 0 {
			if denied == nil {
				denied = make([]int, len(reg.tools))
			}
			denied[t] = rule
		}
	}
	return denied
}

// deniesAll returns the rule that denies every call of a tool, plus 1; 0: none.
func (a *Approvals) deniesAll(id string, seen *scope) int {
	seen.tool = id
	for i := range a.rules {
		rule, when := &a.rules[i], a.whens[i]
		switch {
		case len(rule.Tools) > 0 && !slices.Contains(a.tools[i], id):
			continue
		case when != nil && when.args:
			if rule.Decision == Deny {
				continue // what it does not deny is decided by a later rule
			}
			return 0
		}
		switch holds, code := when.holds(seen); {
		case code != "":
			return 0
		case holds && rule.Decision == Deny:
			return i + 1
		case holds:
			return 0
		}
	}
	return 0
}

// DeniedMoves reports whether Denied can change while the registry stays: a
// condition reads the run.
func (a *Approvals) DeniedMoves() bool { return a != nil && a.moves }

func (a *Approvals) len() int {
	if a == nil {
		return 0
	}
	return len(a.rules)
}
