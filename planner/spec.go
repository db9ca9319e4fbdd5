package planner

import "github.com/refold/refold/codec"

// ToolSpec is one tool of a registry: what the model sees (descriptor) and what
// may happen (binding). Struct fields are in the byte order of their wire
// names, which is the order of the encoding.
type ToolSpec struct {
	Access       Access       `msgpack:"access,omitempty"`       // read, or write (the default)
	Alternates   []Descriptor `msgpack:"alternates,omitempty"`   // other descriptors for the same binding
	Approval     string       `msgpack:"approval,omitempty"`     // never (default), always, or CEL over the call: true asks a person
	ArgsSchema   codec.Raw    `msgpack:"args_schema"`            // JSON Schema 2020-12, self-contained
	Availability []Rule       `msgpack:"availability,omitempty"` // all must hold; none is always
	DeadlineMS   int64        `msgpack:"deadline_ms,omitempty"`  // limit of one start; 0 is the default
	Description  string       `msgpack:"description,omitempty"`
	Executor     Executor     `msgpack:"executor"`
	Needs        []string     `msgpack:"needs,omitempty"` // of a pack's tool: secret:NAME, env:NAME, bin:a|b, os:linux|darwin; optional with a ? at the end
	ParallelSafe bool         `msgpack:"parallel_safe,omitempty"`
	Requires     []string     `msgpack:"requires,omitempty"`      // capabilities
	ResourceKey  string       `msgpack:"resource_key,omitempty"`  // template: host.fs:{path}
	ResourceKind ResourceKind `msgpack:"resource_kind,omitempty"` // what the part of the key is: text (the default) or path
	RetrySafe    bool         `msgpack:"retry_safe,omitempty"`
	ToolID       string       `msgpack:"tool_id"`
	ToolName     string       `msgpack:"tool_name"`
	ToolRef      *codec.Ref   `msgpack:"tool_ref,omitempty"` // if given, must be the descriptor's
}

// Descriptor is a tool as the model sees it.
type Descriptor struct {
	ArgsSchema  codec.Raw `msgpack:"args_schema"`
	Description string    `msgpack:"description,omitempty"`
	ToolName    string    `msgpack:"tool_name"`
}

// Executor names what carries a tool out.
type Executor struct {
	Kind   string `msgpack:"kind"`   // effect, host_loop; for the session's own tools also space
	Target string `msgpack:"target"` // a subject token: host
}

// The kinds of executor.
const (
	ExecutorEffect   = "effect"    // a bridge that serves Target
	ExecutorHostLoop = "host_loop" // the program that drives the session
	ExecutorSpace    = "space"     // the session, by a sync of a space. Reserved for the session's own tools
)

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
type Rule struct {
	Equals string `msgpack:"equals,omitempty"` // kind fact
	Kind   string `msgpack:"kind"`             // always, host_session_ready, host_session_not_ready, fact
	Name   string `msgpack:"name,omitempty"`   // kind fact
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

// Profile is a named list of tools, by tool_id or tool_name, with the step
// rules of sessions and runs that have none of their own.
type Profile struct {
	Profile string     `msgpack:"profile"`
	Steps   []StepRule `msgpack:"steps,omitempty"`
	Tools   []string   `msgpack:"tools"`
}

// Fact is one fact of a session.
type Fact struct {
	Name  string `msgpack:"name"`
	Value string `msgpack:"value"`
}
