package planner

// Every limit of a registry, a call and a plan, with its unit.
const (
	ToolsMax            = 512        // tools of a registry
	ProfilesMax         = 64         // profiles of a registry
	ProvidersMax        = 64         // providers for which a registry names a profile
	RegistryBytesMax    = 1 << 20    // a registry's canonical bytes
	ToolIDBytesMax      = 128        // a tool_id
	NameBytesMax        = 64         // a tool_name, a profile's name, a target, an argument in a template
	DescriptionBytesMax = 16 << 10   // a description
	AlternatesMax       = 8          // alternates of a tool
	RulesMax            = 16         // availability rules of a tool
	RequiresMax         = 16         // capabilities that a tool requires
	CapabilityBytesMax  = 128        // a capability's name
	FactNameBytesMax    = 64         // a fact's name in a rule
	FactValueBytesMax   = 256        // a fact's value in a rule
	TemplateBytesMax    = 256        // a resource key template
	PlaceholdersMax     = 4          // placeholders of a resource key template
	ApprovalRulesMax    = 64         // rules of an approval policy
	DeadlineMSMax       = 86_400_000 // deadline_ms: a day

	SchemaBytesMax   = 64 << 10 // an args_schema, as JSON text
	SchemaNodesMax   = 4_096    // JSON values in an args_schema
	PatternBytesMax  = 1 << 10  // a regular expression in an args_schema
	PatternStatesMax = 4_096    // instructions that it compiles to

	SchemaPatternsBytesMax   = 4 << 20   // memory of all patterns of an args_schema, compiled: see patternSize
	SchemaPointersBytesMax   = 1 << 20   // JSON pointers of all schemas inside an args_schema
	SchemaReferredMax        = 4_096     // JSON values in all places that only a $ref makes schemas
	RegistryNodesMax         = 64 << 10  // JSON values in all args_schemas of a registry
	RegistryPatternsBytesMax = 16 << 20  // memory of all patterns of a registry, compiled
	RegistryWhensBytesMax    = 128 << 10 // conditions of a registry: approvals of tools, step rules of profiles

	ArgumentsBytesMax = 256 << 10 // a call's arguments, as JSON text
	CheckStepsMax     = 1_000_000 // steps that one check against a schema may take
	CheckDepthMax     = 10_000    // nested schemas of one check
	BatchStepsMax     = 4_000_000 // steps that the checks of all calls of one answer may take

	DetailBytesMax = 256 // a rejection's detail
	KeyBytesMax    = 512 // a resource key; a longer one is replaced by its SHA-256

	StepRulesMax          = 32        // step rules of a run, a session or a profile
	StepsBytesMax         = 128 << 10 // all step rules, encoded
	StepToolsMax          = 512       // names in active_tools, refs in tool_refs
	StepContextBytesMax   = 4 << 10   // a step rule's context, encoded
	StepParamsBytesMax    = 32 << 10  // a step rule's params, encoded
	StepSystemBytesMax    = 64 << 10  // a step rule's system text
	StepModelBytesMax     = 128       // a step rule's model
	StepWhensBytesMax     = 8 << 10   // the whens of all step rules
	WhenBytesMax          = 1 << 10   // a when
	WhenDepthMax          = 32        // nested operators, calls and brackets of a when
	WhenNodesMax          = 512       // nodes of a when's tree, macros written out
	WhenArgumentsBytesMax = 4 << 10   // a call's arguments; a when doesn't see longer ones
	WhenCostMax           = 30_000    // steps that one evaluation of a when may take, as the library counts them
	DecideCostMax         = 60_000    // steps for one call, after which no further condition is evaluated
)
