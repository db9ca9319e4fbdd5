package planner

import (
	"bytes"

	"github.com/refold/refold/codec"
)

// ToolSpec is a tool of a registry: how the model sees it, and what happens when it is
// called.
//
// Struct fields are in the byte order of their wire names, which is the order of the
// encoding.
//
//wire:rule {"if": {"required": ["resource_kind"]}, "then": {"properties": {"resource_key": {"minLength": 1}}, "required": ["resource_key"]}}
type ToolSpec struct {
	// How a call uses its resource; write if absent.
	Access Access `msgpack:"access,omitempty"`
	// Other descriptors of the same tool.
	Alternates []Descriptor `msgpack:"alternates,omitempty" lim:"..AlternatesMax"`
	// Whether a call needs a person's approval: never (the default), always, or a
	// condition in CEL over the call and the run, which requires approval if it holds.
	Approval string `msgpack:"approval,omitempty" lim:"..WhenBytesMax"`
	// JSON Schema 2020-12 without references to the outside; patterns are RE2.
	// [semantics.md](semantics.md#what-an-event-may-cost) limits the cost of the whole
	// schema.
	ArgsSchema codec.Raw `msgpack:"args_schema" lim:"object"`
	// Rules that must all hold for the tool to be offered.
	Availability []Rule `msgpack:"availability,omitempty" lim:"..RulesMax"`
	// How long one start may take, in milliseconds; 5 minutes if 0 or absent.
	DeadlineMS int64 `msgpack:"deadline_ms,omitempty" lim:"0..session.DeadlineMaxMS/2"`
	// For the model.
	Description string `msgpack:"description,omitempty" lim:"..DescriptionBytesMax"`
	// The program that carries calls out.
	Executor Executor `msgpack:"executor"`
	// Of a pack's tool alone; an install record with it is faulty, and a ToolRegistrySet
	// `invalid_registry`. `secret:NAME`, `env:NAME`, `bin:a\|b`, `os:linux\|darwin`, with
	// a `?` at the end if it is optional. The tool is not offered while the `lacks` of its
	// pack has a need of the tool that is not optional.
	Needs []string `msgpack:"needs,omitempty" lim:"..space.NeedsMax,unique,item=1..space.NeedBytesMax"`
	// Whether calls may run concurrently with other calls that are parallel-safe; false if
	// absent.
	ParallelSafe bool `msgpack:"parallel_safe,omitempty"`
	// Capabilities that the install record must grant.
	Requires []string `msgpack:"requires,omitempty" lim:"..RequiresMax,unique,item=1..CapabilityBytesMax"`
	// What a call uses: a bare key, or bare:part with {argument} in the part.
	ResourceKey string `msgpack:"resource_key,omitempty" lim:"..TemplateBytesMax"`
	// How the part of the `resource_key` after the colon is compared
	// ([semantics.md](semantics.md#resource-keys)): as it is (`text`, also if absent), or
	// as a path in the host session's working directory (`path`). Only with a
	// `resource_key`; all tools of a registry with one bare key have the same kind.
	ResourceKind ResourceKind `msgpack:"resource_kind,omitempty"`
	// Whether a call may run twice without harm, and so needs no claim; false if absent.
	RetrySafe bool `msgpack:"retry_safe,omitempty"`
	// The registry's key.
	ToolID string `msgpack:"tool_id" lim:"@tool_id"`
	// The name for models. No two tools share a name, be it as id or as name, and no two
	// tool_names differ by case alone.
	ToolName string `msgpack:"tool_name" lim:"@tool_name"`
	// If given, it must be the blob name of the descriptor.
	ToolRef *codec.Ref `msgpack:"tool_ref,omitempty"`
}

// Descriptor is what a model is shown of a tool: the content of a blob that a
// generation names, JSON with sorted keys.
type Descriptor struct {
	// JSON Schema 2020-12 of the arguments.
	ArgsSchema codec.Raw `msgpack:"args_schema" lim:"object"`
	// Description for the model.
	Description string `msgpack:"description,omitempty" lim:"..DescriptionBytesMax"`
	ToolName    string `msgpack:"tool_name" lim:"@tool_name"`
}

// DescriptorBytesMax bounds the content of a descriptor's blob: a control character of the
// description takes six bytes.
const DescriptorBytesMax = SchemaBytesMax + 6*DescriptionBytesMax + 1<<10

// IsDescriptor reports whether content has the form of a descriptor's blob.
func IsDescriptor(content []byte) bool {
	if !bytes.HasPrefix(content, []byte(`{"args_schema":`)) {
		return false
	}
	packed, err := codec.FromJSON(content)
	var d Descriptor
	return err == nil && codec.Decode(packed, &d) == nil && IsName(d.ToolName)
}

// Executor names what carries a tool out.
//
//wire:rule {"allOf": [{"if": {"properties": {"kind": {"enum": ["effect", "host_loop"]}}}, "then": {"required": ["target"]}, "else": {"properties": {"target": false}}}, {"if": {"properties": {"kind": {"not": {"const": "reply"}}}}, "then": {"properties": {"by": false, "result_schema": false}}}, {"if": {"properties": {"kind": {"not": {"const": "session"}}}}, "then": {"properties": {"agent": false, "inherit": false, "keep": false}}}]}
type Executor struct {
	// Of kind session: the config of the other session's run. What it leaves out is the
	// calling run's model, retries and context.
	Agent codec.Raw `msgpack:"agent,omitempty" lim:"as=actors/session.RunConfig"`
	// Of kind reply: who may answer. approvers: who decides over approvals (the default).
	// clients: whoever may request runs, too.
	By string `msgpack:"by,omitempty" lim:"enum=approvers|clients"`
	// Of kind session: what the other session takes over.
	Inherit []string `msgpack:"inherit,omitempty" lim:"..1,item=enum=Inherit"`
	// Of kind session: it stays open, and a later call may continue it.
	Keep bool `msgpack:"keep,omitempty"`
	// effect: a bridge that serves the target. host_loop: the program that drives the
	// session. reply: whoever answers, with a ReplyGiven. session: a run of another session.
	// sleep: the session, when the time has come.
	Kind string `msgpack:"kind" lim:"enum=effect|host_loop|reply|session|sleep"`
	// Of kind reply: JSON Schema 2020-12 of the answer. Absent: any answer counts.
	ResultSchema codec.Raw `msgpack:"result_schema,omitempty" lim:"object"`
	// Of the kinds effect and host_loop: the target of the bridges, or of the host loop,
	// that carry calls out.
	Target string `msgpack:"target,omitempty" lim:"@token"`
}

// The values of Executor.By: who may answer a call of kind reply.
const (
	ByApprovers = "approvers" // the default, also when empty
	ByClients   = "clients"
)

// The kinds of executor.
const (
	ExecutorEffect   = "effect"    // a bridge that serves Target
	ExecutorHostLoop = "host_loop" // the program that drives the session
	ExecutorReply    = "reply"     // whoever answers: a person, or a program
	ExecutorSleep    = "sleep"     // the session, when the time has come
	ExecutorSession  = "session"   // a run of another session
	ExecutorSpace    = "space"     // the session, by a sync of a space. Reserved for the session's own tools
)

// InheritFacts is a value of Executor.Inherit: the session's facts.
const InheritFacts = "facts"

// The values of ToolSpec.Approval that are not a condition.
const (
	ApprovalNever  = "never" // the default, also when empty
	ApprovalAlways = "always"
)

// Access is how a call uses its resource.
type Access string

const (
	AccessWrite Access = "write" // the default, also when empty
	AccessRead  Access = "read"
)

// ResourceKind says what follows the colon of a resource key.
type ResourceKind string

const (
	ResourceText ResourceKind = "text" // equal if the bytes are; the default of a key with a part
	ResourcePath ResourceKind = "path" // a path in the host session's working directory, in any spelling
)

// Rule is one availability rule: Kind alone, or fact with name and value.
//
//wire:rule {"if": {"properties": {"kind": {"const": "fact"}}}, "then": {"required": ["name"]}, "else": {"properties": {"equals": false, "name": false}}}
type Rule struct {
	// Of kind fact: the value.
	Equals string `msgpack:"equals,omitempty" lim:"..FactValueBytesMax"`
	// The kind of rule.
	Kind string `msgpack:"kind" lim:"enum=always|host_session_ready|host_session_not_ready|fact"`
	// Of kind fact: the fact.
	Name string `msgpack:"name,omitempty" lim:"1..FactNameBytesMax"`
}

// The kinds of availability rule.
const (
	RuleAlways              = "always"
	RuleHostSessionReady    = "host_session_ready"
	RuleHostSessionNotReady = "host_session_not_ready"
	RuleFact                = "fact" // the session's fact Name has the value Equals

	// RuleSpaceFiles: an applied space has context files. RuleSkills: an applied
	// space has a skill that a model can use. Both are reserved for the session's
	// own tools.
	RuleSpaceFiles = "space_files"
	RuleSkills     = "skills"

	// RuleGrants: a grant lets models enable packs. Reserved like RuleSpaceFiles.
	RuleGrants = "grants"
)

// Profile is a named list of tools.
//
// Its step rules are for sessions and runs that have none of their own.
type Profile struct {
	// Its name.
	Profile string `msgpack:"profile" lim:"@token"`
	// Step rules of runs with this profile, if neither the run nor its session has rules.
	Steps []StepRule `msgpack:"steps,omitempty" lim:"..StepRulesMax"`
	// The tools in display order: tool_ids, tool_names, or blob names of descriptors. None
	// twice.
	Tools []string `msgpack:"tools" lim:"unique,item=@tool"`
}

// Fact is one fact of a session.
type Fact struct {
	// The fact.
	Name string `json:"name" msgpack:"name" lim:"any"`
	// Its value.
	Value string `json:"value" msgpack:"value" lim:"any"`
}
