package planner

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/codec"
)

// origin is where a tool comes from. It decides what the tool may declare.
type origin int

const (
	ofRegistry origin = iota // an install record, or a ToolRegistrySet
	ofPack                   // may have needs
	ofSession                // one of the session's own: may use what is reserved for them
)

// newTool checks one spec by itself, the two names first, then fields in the
// order of the encoding, and fills in its defaults. Its size counts into room.
func newTool(path string, spec ToolSpec, room *registryRoom, from origin) (tool, *RegistryError) {
	if !IsToolID(spec.ToolID) {
		return tool{}, fault(path+".tool_id", "is 1 to %d of A-Za-z0-9_- in parts joined by dots, not %+q", ToolIDBytesMax, clip(spec.ToolID, ToolIDBytesMax))
	}
	if !IsName(spec.ToolName) {
		return tool{}, fault(path+".tool_name", "is 1 to %d of A-Za-z0-9_-, not %+q", NameBytesMax, clip(spec.ToolName, NameBytesMax))
	}
	t := tool{spec: spec}
	if bad := t.checkBinding(path, from); bad != nil {
		return tool{}, bad
	}
	if bad := t.describe(path, room); bad != nil {
		return tool{}, bad
	}
	if given := spec.ToolRef; given != nil && *given != t.descriptors[0].ref {
		return tool{}, fault(path+".tool_ref", "is %s, the descriptor's is %s: correct it or leave it out", given, t.descriptors[0].ref)
	}
	ref := t.descriptors[0].ref
	t.spec.ToolRef = &ref
	return t, nil
}

// checkBinding checks everything that the model is not shown.
func (t *tool) checkBinding(path string, from origin) *RegistryError {
	spec := &t.spec
	switch spec.Access {
	case AccessRead, AccessWrite:
	case "":
		spec.Access = AccessWrite
	default:
		return fault(path+".access", "is read or write, not %+q", clip(string(spec.Access), NameBytesMax))
	}
	if spec.Approval == "" {
		spec.Approval = ApprovalNever
	}
	if bad := checkRules(path, spec.Availability, from); bad != nil {
		return bad
	}
	if spec.DeadlineMS < 0 || spec.DeadlineMS > DeadlineMSMax {
		return fault(path+".deadline_ms", "is 0 (the default) to %d, not %d", DeadlineMSMax, spec.DeadlineMS)
	}
	if bad := spec.Executor.check(path+".executor", from); bad != nil {
		return bad
	}
	if len(spec.Needs) > 0 && from != ofPack {
		return fault(path+".needs", "are for tools of a pack: nobody could tell what is missing here")
	}
	if bad := t.checkRequires(path); bad != nil {
		return bad
	}
	parsed, problem := parseTemplate(spec.ResourceKey)
	if problem != "" {
		return fault(path+".resource_key", "%s", problem)
	}
	t.template = parsed
	switch {
	case spec.ResourceKind != "" && spec.ResourceKey == "":
		return fault(path+".resource_kind", "says what the part of a resource_key is, and there is none: leave it out or give the key")
	case spec.ResourceKind == "" && len(parsed.pieces) > 0:
		spec.ResourceKind = ResourceText
	case spec.ResourceKind != "" && spec.ResourceKind != ResourceText && spec.ResourceKind != ResourcePath:
		return fault(path+".resource_kind", "is text or path, not %+q", clip(string(spec.ResourceKind), NameBytesMax))
	}
	t.template.path = spec.ResourceKind == ResourcePath
	return nil
}

// check checks an executor by itself, and fills in its default.
func (e *Executor) check(path string, from origin) *RegistryError {
	if e.Kind == ExecutorReply && e.By == "" {
		e.By = ByApprovers
	}
	switch e.Kind {
	case ExecutorEffect, ExecutorHostLoop, ExecutorReply, ExecutorSession, ExecutorSleep:
	default:
		if e.Kind != ExecutorSpace || from != ofSession {
			return fault(path+".kind", "is %s, %s, %s, %s or %s, not %+q", ExecutorEffect, ExecutorHostLoop, ExecutorReply, ExecutorSession, ExecutorSleep, clip(e.Kind, NameBytesMax))
		}
	}
	if bad := e.replyFault(path); bad != nil {
		return bad
	}
	if bad := e.sessionFault(path); bad != nil {
		return bad
	}
	switch bridged := e.Kind == ExecutorEffect || e.Kind == ExecutorHostLoop || e.Kind == ExecutorSpace; {
	case bridged && !IsName(e.Target):
		return fault(path+".target", "is a subject token, 1 to %d of A-Za-z0-9_-, not %+q", NameBytesMax, clip(e.Target, NameBytesMax))
	case !bridged && e.Target != "":
		return fault(path+".target", "names who carries calls out, and nobody does of kind %s: leave it out", e.Kind)
	}
	return nil
}

// replyFault checks what only executors of kind reply have.
func (e *Executor) replyFault(path string) *RegistryError {
	switch {
	case e.Kind == ExecutorReply && e.By != ByApprovers && e.By != ByClients:
		return fault(path+".by", "is %s or %s, not %+q", ByApprovers, ByClients, clip(e.By, NameBytesMax))
	case e.Kind != ExecutorReply && e.By != "":
		return fault(path+".by", "says who answers a call of kind %s: leave it out", ExecutorReply)
	case len(e.ResultSchema) == 0:
		return nil
	case e.Kind != ExecutorReply:
		return fault(path+".result_schema", "is of the answer to a call of kind %s: leave it out", ExecutorReply)
	}
	if _, problem := CompileAnswerSchema(e.ResultSchema); problem != "" {
		return fault(path+".result_schema", "%s", problem)
	}
	return nil
}

// sessionFault checks what only executors of kind session have.
func (e *Executor) sessionFault(path string) *RegistryError {
	given := ""
	switch {
	case e.Kind == ExecutorSession:
	case len(e.Agent) > 0:
		given = "agent"
	case len(e.Inherit) > 0:
		given = "inherit"
	case e.Keep:
		given = "keep"
	}
	if given != "" {
		return fault(path+"."+given, "is of a run of another session, kind %s: leave it out", ExecutorSession)
	}
	for i, what := range e.Inherit {
		if what != InheritFacts || i > 0 {
			return fault(fmt.Sprintf("%s.inherit[%d]", path, i), "is %s, once, not %+q", InheritFacts, clip(what, NameBytesMax))
		}
	}
	return nil
}

// checkKinds checks that all parts of one bare key are of one kind: compared as
// text, another spelling of a path would not conflict with it.
func checkKinds(tools []ToolSpec) *RegistryError {
	first := map[string]int{}
	for i := range tools {
		bare, _, parted := strings.Cut(tools[i].ResourceKey, ":")
		if !parted {
			continue
		}
		if _, ok := first[bare]; !ok {
			first[bare] = i
		}
		if other := first[bare]; (tools[i].ResourceKind == ResourcePath) != (tools[other].ResourceKind == ResourcePath) {
			return fault(fmt.Sprintf("tools[%d].resource_kind", i), "tools[%d] has another kind for %+q: parts of one resource are all text (the default) or all path", other, bare)
		}
	}
	return nil
}

// checkRequires checks the capabilities and sorts them: they are a set.
func (t *tool) checkRequires(path string) *RegistryError {
	requires := t.spec.Requires
	if len(requires) > RequiresMax {
		return fault(path+".requires", "%d capabilities, at most %d", len(requires), RequiresMax)
	}
	for i, name := range requires {
		at := fmt.Sprintf("%s.requires[%d]", path, i)
		if !isText(name, 1, CapabilityBytesMax) {
			return fault(at, "a capability is 1 to %d bytes of UTF-8", CapabilityBytesMax)
		}
		if slices.Contains(requires[:i], name) {
			return fault(at, "%+q is listed before", name)
		}
	}
	slices.Sort(requires)
	return nil
}

func checkRules(path string, rules []Rule, from origin) *RegistryError {
	if len(rules) > RulesMax {
		return fault(path+".availability", "%d rules, at most %d", len(rules), RulesMax)
	}
	for i, rule := range rules {
		at := fmt.Sprintf("%s.availability[%d]", path, i)
		if from == ofSession && (rule.Kind == RuleSpaceFiles || rule.Kind == RuleSkills || rule.Kind == RuleGrants) {
			continue
		}
		switch rule.Kind {
		case RuleAlways, RuleHostSessionReady, RuleHostSessionNotReady:
			if rule.Name != "" || rule.Equals != "" {
				return fault(at, "%s takes no name and no equals", rule.Kind)
			}
		case RuleFact:
			if !isText(rule.Name, 1, FactNameBytesMax) {
				return fault(at+".name", "a fact's name is 1 to %d bytes of UTF-8", FactNameBytesMax)
			}
			if !isText(rule.Equals, 0, FactValueBytesMax) {
				return fault(at+".equals", "a fact's value is at most %d bytes of UTF-8", FactValueBytesMax)
			}
		default:
			return fault(at+".kind", "is %s, %s, %s or %s, not %+q", RuleAlways, RuleHostSessionReady, RuleHostSessionNotReady, RuleFact, clip(rule.Kind, NameBytesMax))
		}
	}
	return nil
}

// describe checks the spec's descriptors and fixes their bytes.
func (t *tool) describe(path string, room *registryRoom) *RegistryError {
	if len(t.spec.Alternates) > AlternatesMax {
		return fault(path+".alternates", "%d alternates, at most %d", len(t.spec.Alternates), AlternatesMax)
	}
	own := Descriptor{ArgsSchema: t.spec.ArgsSchema, Description: t.spec.Description, ToolName: t.spec.ToolName}
	for v, d := range append([]Descriptor{own}, t.spec.Alternates...) {
		made, bad := newDescriptor(path+variantPath(v), d, nil, room)
		if bad != nil {
			return bad
		}
		for w, before := range t.descriptors {
			if before.ref == made.ref {
				return fault(path+variantPath(v), "is the same as %s%s", path, variantPath(w))
			}
		}
		made.line = t.spec.ToolID + " " + made.ref.String() + "\n"
		t.descriptors = append(t.descriptors, made)
	}
	return nil
}

// newDescriptor checks one descriptor and fixes its bytes. If it has the schema
// of like, nothing is compiled and nothing counts into room.
func newDescriptor(path string, d Descriptor, like *descriptor, room *registryRoom) (descriptor, *RegistryError) {
	if !IsName(d.ToolName) {
		return descriptor{}, fault(path+".tool_name", "is 1 to %d of A-Za-z0-9_-, not %+q", NameBytesMax, clip(d.ToolName, NameBytesMax))
	}
	if !isText(d.Description, 0, DescriptionBytesMax) {
		return descriptor{}, fault(path+".description", "is at most %d bytes of UTF-8", DescriptionBytesMax)
	}
	var compiled *schema
	if like != nil && bytes.Equal(like.ArgsSchema, d.ArgsSchema) {
		compiled = like.schema
	} else {
		var problem string
		if compiled, problem = compileSchema(d.ArgsSchema, room); problem != "" {
			return descriptor{}, fault(path+".args_schema", "%s", problem)
		}
	}
	packed, err := codec.Marshal(d)
	if err != nil {
		return descriptor{}, fault(path+".args_schema", "is not in the canonical encoding")
	}
	content, err := codec.ToJSON(packed)
	if err != nil {
		return descriptor{}, fault(path+".args_schema", "has no JSON form")
	}
	return descriptor{Descriptor: d, bytes: content, ref: codec.RefOf(content), schema: compiled}, nil
}

func isText(s string, min, max int) bool {
	return len(s) >= min && len(s) <= max && utf8.ValidString(s)
}
