package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// RunConfig is how a run behaves. An operator's config is whole: the run's own
// applies, else the session's, else the install record's. A client's config names
// what differs from the operator's: see narrowed.
type RunConfig struct {
	ActiveTools    *[]string          `msgpack:"active_tools,omitempty"` // absent: the profile; empty: no tools
	Budget         *Budget            `msgpack:"budget,omitempty"`
	CacheTTL       string             `msgpack:"cache_ttl,omitempty"`  // how long providers cache prompts: 5m (default), 1h, off
	Completion     string             `msgpack:"completion,omitempty"` // text (default), explicit
	DeadlinesMS    *DeadlinesMS       `msgpack:"deadlines_ms,omitempty"`
	Disable        []string           `msgpack:"disable,omitempty"`
	Enable         []string           `msgpack:"enable,omitempty"`
	Force          []string           `msgpack:"force,omitempty"`
	Model          string             `msgpack:"model,omitempty"`
	Params         codec.Raw          `msgpack:"params,omitempty"` // an object, passed on unchanged
	Prices         *Prices            `msgpack:"prices,omitempty"`
	Profile        string             `msgpack:"profile,omitempty"`
	PromptPack     string             `msgpack:"prompt_pack,omitempty"`     // of the workspace; none: no prompt pack
	PromptRefs     *[]codec.Ref       `msgpack:"prompt_refs,omitempty"`     // system text that replaces the prompt pack; empty: none
	Provider       string             `msgpack:"provider,omitempty"`        // a subject token
	ResponseFormat codec.Raw          `msgpack:"response_format,omitempty"` // a ResponseFormat; absent: text
	Retry          *Retry             `msgpack:"retry,omitempty"`           // absent: a failed generation ends the run
	Skills         []string           `msgpack:"skills,omitempty"`          // of applied spaces: active from the first turn, with their texts in the prompt
	StepHook       *StepHook          `msgpack:"step_hook,omitempty"`       // called before each turn
	Steps          []planner.StepRule `msgpack:"steps,omitempty"`           // absent: the session's, else the profile's
	System         string             `msgpack:"system,omitempty"`
	ToolCatalog    string             `msgpack:"tool_catalog,omitempty"` // of the workspace; none: no catalog
	ToolChoice     string             `msgpack:"tool_choice,omitempty"`  // auto (default), none, required, or a tool by either name; the last two apply to the first turn
	ToolRefs       *[]codec.Ref       `msgpack:"tool_refs,omitempty"`    // descriptors of the registry, instead of active_tools
	ToolsMode      string             `msgpack:"tools_mode,omitempty"`   // exact (default), masked
	TurnsMax       int                `msgpack:"turns_max,omitempty"`    // 0: 100
	Workspace      string             `msgpack:"workspace,omitempty"`    // hex: a manifest that replaces the applied one; or none
}

// The values of RunConfig.CacheTTL.
const (
	CacheTTLShort = "5m" // the default, also when empty
	CacheTTLLong  = "1h"
	CacheTTLOff   = "off" // providers are not told what to cache
)

// The values of RunConfig.ToolsMode: which tools a model is shown.
const (
	ToolsExact  = "exact"  // the default, also when empty: those that the turn offers
	ToolsMasked = "masked" // the same definitions in all turns of a run; only the turn's offers may be called
)

// StepHook names a program that decides, before each turn, what the turn offers.
// Fallback is what happens if it does not answer.
type StepHook struct {
	DeadlineMS int64  `msgpack:"deadline_ms,omitempty"` // 0: 30 seconds
	Fallback   string `msgpack:"fallback,omitempty"`    // rules (default): as without a hook; fail: the run fails
	Hook       string `msgpack:"hook"`                  // a subject token
}

// The values of StepHook.Fallback.
const (
	FallbackRules = "rules" // the default, also when empty
	FallbackFail  = "fail"
)

// DeadlinesMS limits waits, in milliseconds.
type DeadlinesMS struct {
	Approval int64 `msgpack:"approval,omitempty"` // from its request; 0: a day
	Call     int64 `msgpack:"call,omitempty"`     // from its opening; 0: 10 minutes
	Run      int64 `msgpack:"run,omitempty"`      // from its start, without pauses; 0: none
	Turn     int64 `msgpack:"turn,omitempty"`     // from its opening; 0: 10 minutes
}

// The values of RunConfig.Completion: what ends a run.
const (
	CompletionText     = "text"     // the default, also when empty: a turn without calls
	CompletionExplicit = "explicit" // RunCompleted or RunFailed; a turn without calls waits for input
)

// Budget limits what a run and its session may use. It is checked before each turn,
// including the first, with an estimate of the turn's input. 0 is no limit.
type Budget struct {
	Cost          int64  `json:"cost,omitempty" msgpack:"cost,omitempty"`                     // of the run, micro-units by Prices
	OnBreach      string `json:"on_breach,omitempty" msgpack:"on_breach,omitempty"`           // pause (default), fail
	SessionCost   int64  `json:"session_cost,omitempty" msgpack:"session_cost,omitempty"`     // of all runs, micro-units
	SessionTokens int64  `json:"session_tokens,omitempty" msgpack:"session_tokens,omitempty"` // of all runs, input and output
	Tokens        int64  `json:"tokens,omitempty" msgpack:"tokens,omitempty"`                 // of the run, input and output
}

// The values of Budget.OnBreach.
const (
	BreachPause = "pause" // the default, also when empty
	BreachFail  = "fail"
)

// Prices are costs of a million tokens, in micro-units of any currency.
type Prices struct {
	CacheRead  int64        `msgpack:"cache_read,omitempty"`  // of input tokens read from the provider's cache; 0: as Input
	CacheWrite int64        `msgpack:"cache_write,omitempty"` // of input tokens written to the provider's cache; 0: as Input
	Input      int64        `msgpack:"input,omitempty"`       // of the other input tokens
	Models     []ModelPrice `msgpack:"models,omitempty"`      // of other models than the config's
	Output     int64        `msgpack:"output,omitempty"`      // of output tokens, including reasoning tokens
}

// ModelPrice is the price of one model: the fields are those of Prices.
type ModelPrice struct {
	CacheRead  int64  `msgpack:"cache_read,omitempty"`
	CacheWrite int64  `msgpack:"cache_write,omitempty"`
	Input      int64  `msgpack:"input,omitempty"`
	Model      string `msgpack:"model"`
	Output     int64  `msgpack:"output,omitempty"`
}

// Retry is which failed generations get another attempt, after the bridge has given
// up within one effect.
type Retry struct {
	Attempts     int      `msgpack:"attempts"`                 // in all, the first included: 2 to 10
	BackoffMS    int64    `msgpack:"backoff_ms,omitempty"`     // before attempt 2, doubled each time; 0: 1 second
	BackoffMaxMS int64    `msgpack:"backoff_max_ms,omitempty"` // 0: 5 minutes
	Codes        []string `msgpack:"codes,omitempty"`          // absent: those that the bridge reports as retryable
}
