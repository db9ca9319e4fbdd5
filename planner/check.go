package planner

import (
	"errors"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
)

// Code says why a call does not run. The texts are wire.
type Code string

const (
	ToolUnknown      Code = "tool_unknown"      // not in the registry
	ToolDisabled     Code = "tool_disabled"     // not offered, by steps 1 to 3
	ToolUnavailable  Code = "tool_unavailable"  // an availability rule doesn't hold
	ToolUnbound      Code = "tool_unbound"      // it has no executor
	ToolDenied       Code = "tool_denied"       // a capability is not granted
	InvalidArguments Code = "invalid_arguments" // not JSON, or not valid by the schema
)

// Status is the status of a call that does not run. The texts are wire.
type Status string

const (
	StatusIgnored Status = "ignored" // the tool may not be called now
	StatusFailed  Status = "failed"  // the tool may be called, but not with these arguments
)

// Rejection says why a call does not run. The zero Rejection means that it may
// run. Detail tells the model what to do better, in at most DetailBytesMax
// bytes that are the same in every release.
type Rejection struct {
	Code   Code
	Detail string
}

// OK reports whether the call may run.
func (r Rejection) OK() bool { return r.Code == "" }

// Status returns the rejected call's status, or "" for one that may run.
func (r Rejection) Status() Status {
	switch r.Code {
	case "":
		return ""
	case InvalidArguments:
		return StatusFailed
	}
	return StatusIgnored
}

// ObservedCall is a call as the model made it.
//
//wire:rule {"dependentRequired": {"size": ["arguments_blob"]}, "not": {"required": ["arguments", "arguments_blob"]}}
type ObservedCall struct {
	ToolName  string
	Arguments string // JSON text; empty counts as {}
	BlobSize  int64  // of arguments stored as a blob, which are always too large
}

// Check checks a call against the set that was offered in the turn that produced
// it, and that turn's registry, in this order: in the registry, listed, available,
// bound, permitted, arguments. The first failure is the rejection. A tool offered
// under one of its names is not offered under another: a model calls what it was
// shown. The PlanCall goes to Schedule even if the call is rejected.
func Check(reg *Registry, ts *Toolset, call ObservedCall) (PlanCall, Rejection) {
	return new(Checker).Check(reg, ts, call)
}

// Checker checks the calls of a batch one after another, as Check does, and
// reuses its memory. Its zero value is ready.
type Checker struct {
	// Floor is the one that Select used.
	Floor *Floor
	// Root is the absolute working directory of the host session, to which paths
	// in resource keys are relative. Without it an absolute path gives the bare
	// key.
	Root string

	steps   int          // taken by the checks so far
	answers registryRoom // of the schemas of answers so far
}

// AnswerProblem says what is wrong with the schema of an answer, which the arguments of
// a call have; "" if nothing is. The schemas of a batch together cost no more than
// those of a registry.
func (k *Checker) AnswerProblem(raw codec.Raw) string {
	_, problem := compileAnswerSchema(raw, &k.answers)
	return problem
}

// Check is the function Check.
func (k *Checker) Check(reg *Registry, ts *Toolset, call ObservedCall) (PlanCall, Rejection) {
	found, ok := reg.byName[call.ToolName]
	if !ok {
		planned := PlanCall{Rejected: true}
		if IsName(call.ToolName) { // otherwise it is too long to keep, and names nothing
			planned.ToolName = call.ToolName
		}
		return planned, reject(ToolUnknown, "there is no tool "+quoted(call.ToolName))
	}
	t := found.tool
	spec := &reg.tools[t].spec
	planned := PlanCall{Access: spec.Access, ParallelSafe: spec.ParallelSafe, ToolID: spec.ToolID, ToolName: call.ToolName}
	rejection := verdictRejection(reg, k.Floor, t, ts.Verdict(t))
	if shown := ts.ToolName(reg, t); rejection.OK() && shown != call.ToolName {
		rejection = reject(ToolDisabled, "the tool is offered as "+quoted(shown)+" in this turn")
	}
	if rejection.OK() {
		planned.Key, rejection = k.checkArguments(&reg.tools[t], ts.variant(t), call)
	}
	planned.Rejected = !rejection.OK()
	return planned, rejection
}

// Recheck checks a call when it is opened, or when its approval is requested: what
// is disabled, available and granted then. reg is the registry of the call's turn,
// newest the session's current one, which may only take away: a tool that it lacks
// is refused, and lists are resolved in both, so that a disable still matches a
// renamed tool. Of req, only the disabled tools of the session and the run count.
func Recheck(reg, newest *Registry, t ToolIndex, req Request, facts Facts) Rejection {
	why := reg.allows(t, req, facts)
	if !why.OK() || newest == reg {
		return why
	}
	now, ok := newest.byID[reg.tools[t].spec.ToolID]
	if !ok {
		return reject(ToolDisabled, "the session's registry no longer has the tool")
	}
	return newest.allows(now, req, facts)
}

// allows checks a tool as one registry has it.
func (r *Registry) allows(t ToolIndex, req Request, facts Facts) Rejection {
	v := Verdict{Reason: Offered}
	switch {
	case r.names(req.Session.Disable, t):
		v.Reason = DisabledBySession
	case r.names(req.Run.Disable, t):
		v.Reason = DisabledByRun
	default:
		v = r.available(t, facts)
	}
	return verdictRejection(r, facts.Floor, t, v)
}

// CheckArguments checks arguments that a person has edited. The plan does not
// change: a call that may be edited was planned with its bare key.
func CheckArguments(reg *Registry, ts *Toolset, t ToolIndex, arguments string) Rejection {
	_, rejection := new(Checker).checkArguments(&reg.tools[t], ts.variant(t), ObservedCall{Arguments: arguments})
	return rejection
}

func (r *Registry) names(list []string, t ToolIndex) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		o, ok := r.resolve(name)
		return ok && o.tool == t
	})
}

// variant returns the variant of the descriptor that a tool was offered with.
func (ts *Toolset) variant(t ToolIndex) int {
	for _, o := range ts.Offers {
		if o.Tool() == t {
			return o.Variant()
		}
	}
	return 0
}

// PolicyDenies is the detail of a call that a rule of the policy denies.
const PolicyDenies = "the install policy denies the call"

// verdictRejection returns the rejection that follows from a tool's verdict.
func verdictRejection(reg *Registry, floor *Floor, t ToolIndex, v Verdict) Rejection {
	spec := &reg.tools[t].spec
	bound := spec.Executor.Kind != ""
	switch {
	case v.Reason == NotListed:
		return reject(ToolDisabled, "the tool is not offered in this turn")
	case v.Reason == NotOfSkill:
		return reject(ToolDisabled, "no active skill allows the tool")
	case v.Reason == DisabledBySession:
		return reject(ToolDisabled, "the tool is disabled for the session")
	case v.Reason == DisabledByRun:
		return reject(ToolDisabled, "the tool is disabled for the run")
	case v.Reason == RuleFails && v.Index < len(spec.Availability):
		return reject(ToolUnavailable, spec.Availability[v.Index].String()+" does not hold")
	case v.Reason == RuleFails:
		return reject(ToolUnavailable, "the tool is not available")
	case v.Reason == Lacking:
		return reject(ToolUnavailable, Missing(reg.need(t, v.Index)))
	case !bound:
		return reject(ToolUnbound, "nobody carries the tool out")
	case v.Reason == Denied:
		return reject(ToolDenied, PolicyDenies)
	case v.Reason == CapabilityMissing && floor.capability(reg, t, v.Index) != "":
		return reject(ToolDenied, "capability "+quoted(floor.capability(reg, t, v.Index))+" is not granted")
	case v.Reason != Offered:
		return reject(ToolDenied, "the tool is not permitted")
	}
	return Rejection{}
}

// checkArguments checks arguments against a descriptor's schema and returns the
// resource key of the call.
func (k *Checker) checkArguments(t *tool, variant int, call ObservedCall) (Key, Rejection) {
	switch size := max(call.BlobSize, int64(len(call.Arguments))); {
	case size > ArgumentsBytesMax:
		return Key{}, reject(InvalidArguments, "too large: "+strconv.FormatInt(size, 10)+" bytes, at most "+strconv.Itoa(ArgumentsBytesMax))
	case call.BlobSize > 0:
		return Key{}, reject(InvalidArguments, "too large beside those of the other calls: "+strconv.FormatInt(size, 10)+" bytes; make fewer calls at a time")
	}
	text := call.Arguments
	if text == "" {
		text = "{}"
	}
	arguments, problem := readArguments(text)
	if problem != "" {
		return Key{}, reject(InvalidArguments, problem)
	}
	if variant >= len(t.descriptors) {
		variant = 0
	}
	failed := k.checkSchema(t.descriptors[variant].schema, &arguments)
	if failed == "" && t.descriptors[variant].reworded {
		failed = k.checkSchema(t.descriptors[0].schema, &arguments)
	}
	switch {
	case failed != "" && k.steps >= BatchStepsMax:
		return Key{}, reject(InvalidArguments, "too much work to check beside the other calls: make fewer calls at a time, or send less")
	case failed != "":
		return Key{}, reject(InvalidArguments, failed)
	}
	if t.spec.Approval != ApprovalNever {
		// The arguments may still be edited: the plan must not depend on them.
		return Key{Bare: t.template.bare}, Rejection{}
	}
	return t.template.fill(&arguments, k.Root), Rejection{}
}

// checkSchema checks arguments against one schema and counts the steps.
func (k *Checker) checkSchema(s *schema, arguments *value) string {
	failed, took := s.check(arguments, min(CheckStepsMax, BatchStepsMax-k.steps))
	k.steps += took
	return failed
}

// readArguments reads the text of a call's arguments. problem says what is wrong with
// it.
func readArguments(text string) (value, string) {
	raw, err := codec.FromJSON([]byte(text))
	if err != nil {
		return value{}, unreadable(err)
	}
	if !codec.IsMap(raw) {
		return value{}, "not a JSON object"
	}
	return readValue(raw, ArgumentsBytesMax)
}

// unreadable says why a text is not JSON.
func unreadable(err error) string {
	var bad *codec.Error
	if errors.As(err, &bad) {
		return "cannot be read: " + bad.What + " at byte " + strconv.Itoa(bad.Offset)
	}
	return "cannot be read"
}

func reject(code Code, detail string) Rejection {
	return Rejection{Code: code, Detail: clip(detail, DetailBytesMax)}
}
