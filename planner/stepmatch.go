package planner

import "github.com/refold/refold/codec"

// StepFacts is what a when sees of a run at the beginning of a step.
type StepFacts struct {
	Step    int        // 0-based
	Used    []string   // tool_ids carried out in earlier steps of the run, sorted
	Last    []string   // tool_names called in the last step, in call order
	Calls   []LastCall // the same calls; may be left out unless a rule reads them: see AsksCalls
	Facts   []Fact     // sorted by name
	Roles   []string   // in any order
	Skills  []string   // active in the run, in any order
	Spaces  []string   // applied, in any order
	Context codec.Raw  // what earlier rules stored; empty, or not a canonical object: {}
	Usage   StepUsage  // of the run so far
}

// LastCall is a call that ran in the last step.
type LastCall struct {
	Arguments string `msgpack:"arguments,omitempty"` // JSON text; a when does not see it above WhenArgumentsBytesMax
	Status    string `msgpack:"status"`
	ToolID    string `msgpack:"tool_id"`
	ToolName  string `msgpack:"tool_name"`
}

// StepUsage counts the tokens of a run.
type StepUsage struct {
	InputTokens     int64
	OutputTokens    int64
	CachedTokens    int64
	ReasoningTokens int64
}

// StepMatch is the result of Match.
type StepMatch struct {
	Rule   int           // the rule that applies, -1 for none
	Failed []RuleFailure // the rules before it whose when could not be evaluated, in their order
}

// RuleFailure is a rule that was skipped because its when could not be evaluated.
type RuleFailure struct {
	Code string `msgpack:"code"` // WhenFailed or WhenTooCostly
	Rule int    `msgpack:"rule"`
}

// The values of RuleFailure.Code.
const (
	WhenFailed    = "when_failed"     // a missing key, a wrong type, an overflow
	WhenTooCostly = "when_too_costly" // it took more than WhenCostMax
)

// Match returns the first rule whose when holds. A when that fails or costs too
// much doesn't hold. Match is total, depends on the rules and f only, and
// retains nothing of f.
func (s *Steps) Match(f StepFacts) StepMatch {
	match := StepMatch{Rule: -1}
	if s == nil {
		return match
	}
	seen := scope{facts: &f}
	for i, when := range s.whens {
		holds, code := when.holds(&seen)
		if code != "" {
			match.Failed = append(match.Failed, RuleFailure{Code: code, Rule: i})
		}
		if holds {
			match.Rule = i
			break
		}
	}
	return match
}
