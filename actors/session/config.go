package session

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// SessionConfig is the session's own config. On the wire, queue_max is among the
// fields of the RunConfig.
type SessionConfig struct {
	QueueMax int       `msgpack:"queue_max,omitempty"` // 0: 16
	Run      RunConfig `msgpack:"run"`

	// Workspace is the manifest that Run.Workspace names.
	Workspace *spaces.Pin `msgpack:"workspace,omitempty"`
}

func (c *SessionConfig) invariant(s *State) error {
	st := s.stack()
	of := SessionConfigured{RunConfig: c.Run, QueueMax: c.QueueMax}
	if bad := cmp.Or(of.limits(), s.configFault(&st, &c.Run, c.Workspace, false)); bad != nil {
		return fmt.Errorf("the session's config: %s: %s", bad.code, bad.detail)
	}
	return nil
}

// configFault checks a config under a registry. With complete, a config without a
// provider or model is refused too.
func configFault(reg *planner.Registry, c *RunConfig, complete bool) *refusal {
	switch {
	case c == nil:
		return nil
	case complete && c.Provider == "":
		return refuse(RejectMissingProvider, "config.provider: is missing")
	case complete && c.Model == "":
		return refuse(RejectMissingModel, "config.model: is missing")
	case c.Provider != "" && !planner.IsName(c.Provider):
		return refuse(RejectInvalidData, "config.provider: must be a subject token: 1 to 64 of A-Za-z0-9_-")
	case c.Context.fault() != "":
		return refuse(RejectInvalidData, "config.context."+c.Context.fault())
	case len(c.Params) > ParamsBytesMax:
		return refuse(RejectLimitExceeded, "config.params: at most "+strconv.Itoa(ParamsBytesMax)+" bytes")
	case paramsFault(c.Params) != "":
		return refuse(RejectInvalidData, "config.params: "+paramsFault(c.Params))
	case codec.HasBinary(c.ResponseFormat):
		return refuse(RejectInvalidData, "config.response_format: "+noBinary)
	case len(c.ResponseFormat) > FormatBytesMax:
		return refuse(RejectLimitExceeded, "config.response_format: at most "+strconv.Itoa(FormatBytesMax)+" bytes")
	case c.Profile != "" && !reg.HasProfile(c.Profile):
		return refuse(RejectUnknownProfile, "config.profile: the registry has no profile "+sentence.Quoted(c.Profile))
	}
	if fault := formatFault(c.ResponseFormat); fault != "" {
		return refuse(RejectInvalidData, "config.response_format"+fault)
	}
	if bad := c.fallbackFault(); bad != nil {
		return bad
	}
	return configToolsFault(reg, c)
}

// paramsFault returns what is wrong with a provider's parameters besides their size, "" if
// nothing is.
func paramsFault(params codec.Raw) string {
	switch {
	case len(params) > 0 && !codec.IsMap(params):
		return "must be an object"
	case codec.HasBinary(params):
		return noBinary
	}
	return ""
}

// configToolsFault checks everything in c that names tools.
func configToolsFault(reg *planner.Registry, c *RunConfig) *refusal {
	if bad := cmp.Or(listsFault(reg, "config.", c.lists()), refsFault(reg, c)); bad != nil {
		return bad
	}
	if _, ok := reg.Lookup(c.ToolChoice); !ok && !planner.IsChoiceMode(c.ToolChoice) {
		return refuse(RejectUnknownTool, "config.tool_choice: auto, none, required, or a tool of the registry, not "+sentence.Quoted(c.ToolChoice))
	}
	if bad := hookFault(c.StepHook); bad != nil {
		return bad
	}
	if len(c.Steps) > 0 {
		if _, err := planner.CompileSteps(reg, c.Steps); err != nil {
			return ruleRefusal("config.steps", err)
		}
	}
	return nil
}

// refsFault checks that the registry binds every tool_ref.
func refsFault(reg *planner.Registry, c *RunConfig) *refusal {
	switch {
	case c.ToolRefs == nil:
		return nil
	case c.ActiveTools != nil:
		return refuse(RejectInvalidData, "config: active_tools or tool_refs, not both")
	}
	for i, ref := range *c.ToolRefs {
		if _, ok := reg.LookupRef(ref); !ok {
			return refuse(RejectUnknownTool, "config.tool_refs["+strconv.Itoa(i)+"]: the registry binds no descriptor "+ref.String())
		}
	}
	return nil
}

func hookFault(h *StepHook) *refusal {
	if h != nil && !planner.IsName(h.Hook) {
		return refuse(RejectInvalidData, "config.step_hook.hook: must be a subject token: 1 to 64 of A-Za-z0-9_-")
	}
	return nil
}

func ruleRefusal(path string, err *planner.RuleError) *refusal {
	code := RejectInvalidRule
	switch {
	case err.Unknown:
		code = RejectUnknownTool
	case err.TooLarge:
		code = RejectLimitExceeded
	}
	return refuse(code, path+err.Path+": "+err.Detail)
}

func (c *RunConfig) lists() []list {
	return []list{{"active_tools", listOf(c.ActiveTools)}, {"disable", c.Disable}, {"enable", c.Enable}, {"force", c.Force}}
}

// sessionConfigured replaces the session's config. Earlier requests keep the config
// that they had.
func (s *State) sessionConfigured(data codec.Raw) *refusal {
	config, bad := decodeSessionConfig(data)
	if bad != nil {
		return bad
	}
	if config.Workspace, bad = s.ownWorkspace(&config.Run); bad != nil {
		return bad
	}
	st := s.stack()
	if bad := s.configFault(&st, &config.Run, config.Workspace, false); bad != nil {
		return bad
	}
	s.Config = config
	s.dropContent()
	return nil
}

// decodeSessionConfig decodes the data of a SessionConfigured.
func decodeSessionConfig(data codec.Raw) (*SessionConfig, *refusal) {
	if bad := rulesCountFault("config.", data); bad != nil {
		return nil, bad
	}
	var b SessionConfigured
	if bad := decodeBody(data, &b); bad != nil {
		return nil, bad
	}
	return &SessionConfig{QueueMax: b.QueueMax, Run: b.RunConfig}, nil
}

// RunConfig is how a run behaves. A run uses its own config, else the session's, else
// the install record's. Through ctl it is whole; through in it names what differs from
// the operator's.
//
// See narrowed.
//
//wire:rule {"not": {"required": ["active_tools", "tool_refs"]}}
type RunConfig struct {
	// The tools of the run in display order, in place of a profile. An empty list is no
	// tools.
	ActiveTools *[]string `msgpack:"active_tools,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// What the run and the session may use.
	Budget *Budget `msgpack:"budget,omitempty"`
	// How long the provider is requested to keep the prompt cached, `5m` if absent
	// ([models.md](models.md#what-a-turn-costs)); with `off` there is no such request.
	CacheTTL string `msgpack:"cache_ttl,omitempty" lim:"enum=CacheTTL"`
	// What ends the run. `text`, if absent: a turn without calls. `explicit`: RunCompleted or
	// RunFailed; after a turn without calls the run waits for input.
	Completion string `msgpack:"completion,omitempty" lim:"enum=Completion"`
	// How the transcript is kept within what the model accepts. Absent: a run whose
	// transcript is too long fails.
	Context *ContextConfig `msgpack:"context,omitempty"`
	// How long the run, and what it waits for, may take, in milliseconds.
	DeadlinesMS *DeadlinesMS `msgpack:"deadlines_ms,omitempty"`
	// Tools that are not offered, whatever else names them.
	Disable []string `msgpack:"disable,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// Tools to add to the profile.
	Enable []string `msgpack:"enable,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// Models to ask when the config's own fails, in this order.
	Fallback []FallbackModel `msgpack:"fallback,omitempty" lim:"..FallbackMax"`
	// Tools to add to any list.
	Force []string `msgpack:"force,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// The provider's name of the model.
	Model string `msgpack:"model,omitempty" lim:"..NameBytesMax"`
	// Parameters, passed on to the provider unchanged; at most 32 KiB, encoded.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// The prices of a million tokens, in micro-units of any currency. Without prices
	// nothing costs anything.
	Prices *Prices `msgpack:"prices,omitempty"`
	// A profile of the registry.
	Profile string `msgpack:"profile,omitempty" lim:"@token"`
	// A prompt pack of the workspace, in place of the one that applies otherwise; with
	// `none` no prompt pack applies.
	PromptPack string `msgpack:"prompt_pack,omitempty" lim:"@token"`
	// System text in blobs, in place of a prompt pack. An empty list is none.
	PromptRefs *[]codec.Ref `msgpack:"prompt_refs,omitempty" lim:"..space.PartsMax"`
	// The target of the run's turns, which bridges serve.
	Provider string `msgpack:"provider,omitempty" lim:"@token"`
	// The form of the model's answers; at most 16 KiB, encoded.
	ResponseFormat codec.Raw `msgpack:"response_format,omitempty" lim:"as=ResponseFormat"`
	// How failed turns of the model are retried. Absent: the first failure ends the run.
	Retry *Retry `msgpack:"retry,omitempty"`
	// Skills of the applied spaces that are active from the first turn, with their texts
	// in the prompt. A skill with an unmet need is left out ([skills.md](skills.md)).
	Skills []string `msgpack:"skills,omitempty" lim:"..SkillsActiveMax,unique,item=@skill"`
	// A program that decides before each turn what the turn offers.
	StepHook *StepHook `msgpack:"step_hook,omitempty"`
	// What each step offers, 128 KiB encoded in all. Absent: the session config's, else
	// the profile's; `[]` is no rules.
	Steps []planner.StepRule `msgpack:"steps,omitempty" lim:"..planner.StepRulesMax"`
	// The system text.
	System string `msgpack:"system,omitempty" lim:"..SystemBytesMax"`
	// A catalog of the workspace, in place of the one that would apply; none ignores the
	// workspace's catalogs.
	ToolCatalog string `msgpack:"tool_catalog,omitempty" lim:"@token"`
	// auto (the default), none, required, or a tool of the registry. The last two hold for
	// the run's first turn only.
	ToolChoice string `msgpack:"tool_choice,omitempty" lim:"@tool"`
	// In place of active_tools: descriptors that the registry binds, in display order.
	ToolRefs *[]codec.Ref `msgpack:"tool_refs,omitempty" lim:"..NamesMax"`
	// Which tools a model is shown. `exact`, if absent: those that the turn offers.
	// `masked`: the same definitions in all turns of the run, of which the model may call only those
	// that the turn offers ([semantics.md](semantics.md#masked-tools)).
	ToolsMode string `msgpack:"tools_mode,omitempty" lim:"enum=Tools"`
	// The number of turns that the run may open; 100 if absent.
	TurnsMax int `msgpack:"turns_max,omitempty" lim:"1..TurnsMax"`
	// The hash of a manifest that the session has, to use in place of the applied one; or
	// none.
	Workspace string `msgpack:"workspace,omitempty" lim:"any"`
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
	// How long the session waits for its answer; 30 seconds if absent.
	DeadlineMS int64 `msgpack:"deadline_ms,omitempty" lim:"DeadlineMinMS..DeadlineMaxMS"`
	// Without a usable answer: the step rules decide (the default), or the run fails.
	Fallback string `msgpack:"fallback,omitempty" lim:"enum=Fallback"`
	// The hook that decides: the target of effects of class step.
	Hook string `msgpack:"hook" lim:"@token"`
}

// The values of StepHook.Fallback.
const (
	FallbackRules = "rules" // the default, also when empty
	FallbackFail  = "fail"
)

// DeadlinesMS limits waits, in milliseconds.
type DeadlinesMS struct {
	// How long a call waits for a person, from when approval is requested; a day if
	// absent.
	Approval int64 `msgpack:"approval,omitempty" lim:"DeadlineMinMS..LongMaxMS"`
	// Deadline of a tool call, from when it is opened; 10 minutes if absent.
	Call int64 `msgpack:"call,omitempty" lim:"DeadlineMinMS..DeadlineMaxMS"`
	// How long a call of the kind reply waits for an answer, from when it is opened; a day
	// if absent.
	Reply int64 `msgpack:"reply,omitempty" lim:"DeadlineMinMS..LongMaxMS"`
	// Deadline of a run of another session, from when the call is opened; a day if absent.
	Child int64 `msgpack:"child,omitempty" lim:"DeadlineMinMS..LongMaxMS"`
	// Deadline of the run, from its start, without the time that it is paused; none if
	// absent.
	Run int64 `msgpack:"run,omitempty" lim:"DeadlineMinMS..LongMaxMS"`
	// Deadline of a turn, from when it is opened; 10 minutes if absent.
	Turn int64 `msgpack:"turn,omitempty" lim:"DeadlineMinMS..DeadlineMaxMS"`
}

// The values of RunConfig.Completion: what ends a run.
const (
	CompletionText     = "text"     // the default, also when empty: a turn without calls
	CompletionExplicit = "explicit" // RunCompleted or RunFailed; a turn without calls waits for input
)

// Budget limits what a run and its session may use. It is checked before each turn. An
// absent field is no limit.
//
// The check includes the first turn, with an estimate of its input.
type Budget struct {
	// Cost of the run, in micro-units by its prices.
	Cost int64 `json:"cost,omitempty" msgpack:"cost,omitempty" lim:"1..CostMax"`
	// When a budget is spent, the run is paused (the default) or fails.
	OnBreach string `json:"on_breach,omitempty" msgpack:"on_breach,omitempty" lim:"enum=Breach"`
	// Cost of all runs, in micro-units.
	SessionCost int64 `json:"session_cost,omitempty" msgpack:"session_cost,omitempty" lim:"1..CostMax"`
	// Tokens of all runs, input and output.
	SessionTokens int64 `json:"session_tokens,omitempty" msgpack:"session_tokens,omitempty" lim:"1..TokensMax"`
	// Tokens of the run, input and output.
	Tokens int64 `json:"tokens,omitempty" msgpack:"tokens,omitempty" lim:"1..TokensMax"`
}

// The values of Budget.OnBreach.
const (
	BreachPause = "pause" // the default, also when empty
	BreachFail  = "fail"
)

// Prices are costs of a million tokens, in micro-units of any currency.
type Prices struct {
	// Price of input tokens read from the provider's cache; as input if absent.
	CacheRead int64 `msgpack:"cache_read,omitempty" lim:"0..PriceMax"`
	// Price of input tokens written to the provider's cache; as input if absent.
	CacheWrite int64 `msgpack:"cache_write,omitempty" lim:"0..PriceMax"`
	// Price of the other input tokens.
	Input int64 `msgpack:"input,omitempty" lim:"0..PriceMax"`
	// Prices of other models than the config's own.
	Models []ModelPrice `msgpack:"models,omitempty" lim:"..ModelPricesMax"`
	// Price of output tokens, including reasoning.
	Output int64 `msgpack:"output,omitempty" lim:"0..PriceMax"`
}

// ModelPrice is the price of one model: the fields are those of Prices.
type ModelPrice struct {
	// Price of input tokens read from the provider's cache; as input if absent.
	CacheRead int64 `msgpack:"cache_read,omitempty" lim:"0..PriceMax"`
	// Price of input tokens written to the provider's cache; as input if absent.
	CacheWrite int64 `msgpack:"cache_write,omitempty" lim:"0..PriceMax"`
	// Price of the other input tokens.
	Input int64 `msgpack:"input,omitempty" lim:"0..PriceMax"`
	// The provider's name of the model. The first entry of a model counts.
	Model string `msgpack:"model" lim:"1..planner.StepModelBytesMax"`
	// Price of output tokens, including reasoning.
	Output int64 `msgpack:"output,omitempty" lim:"0..PriceMax"`
}

// Retry is which failed generations get another attempt, after the bridge has given
// up within one effect.
type Retry struct {
	// Attempts at one turn, including the first.
	Attempts int `msgpack:"attempts" lim:"2..AttemptsMax"`
	// The wait before the second attempt, doubled before each later one; a second if
	// absent.
	BackoffMS int64 `msgpack:"backoff_ms,omitempty" lim:"1..DeadlineMaxMS"`
	// The longest wait between two attempts; 5 minutes if absent.
	BackoffMaxMS int64 `msgpack:"backoff_max_ms,omitempty" lim:"1..DeadlineMaxMS"`
	// Codes of the failures to retry. Absent: those that the bridge calls retryable.
	Codes []string `msgpack:"codes,omitempty" lim:"..RetryCodesMax,item=1..CodeBytesMax"`
}

// ingressFault refuses the first field of c that the policy keeps out of the door
// `in`.
func (in *Install) ingressFault(c *RunConfig) *refusal {
	v := reflect.ValueOf(c).Elem()
	for i, field := range configFields {
		if !v.Field(i).IsZero() && !slices.Contains(in.ingress, field) {
			return refuse(RejectNotPermitted, "config."+field+": the install policy allows it only through the door ctl")
		}
	}
	return nil
}

// configFields are the names of a RunConfig's fields on the wire. Every request is
// checked against them: to make the list each time took 8% of the fold.
var configFields = func() (names []string) {
	t := reflect.TypeFor[RunConfig]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("msgpack"), ",")
		names = append(names, name)
	}
	return names
}()

// clientsRun returns the run of a client's request with a config: what the operator
// set, in the session or the install record, with what the client names. A client
// only narrows the operator's tools, bans and limits; its other fields replace the
// operator's. ignored are names in its `disable` that the registry does not have.
func (s *State) clientsRun(own *RunConfig) (run Run, ignored []string, bad *refusal) {
	held := s.configFor()
	run = Run{Config: held.replacedBy(own)}
	c := &run.Config
	if bad := s.fixWorkspace(&run); bad != nil {
		return run, nil, bad
	}
	now, _ := s.stackAtStart()
	st, bad := s.stackOf(&now, c, run.Workspace)
	if bad != nil {
		return run, nil, bad
	}
	c.Disable, ignored = known(st.Registry, own.Disable)
	if bad := s.configFault(&now, c, run.Workspace, true); bad != nil {
		return run, nil, bad
	}
	c.Disable = united(st.Registry, held.Disable, c.Disable)
	c.TurnsMax = int(smaller(int64(held.TurnsMax), int64(c.TurnsMax)))
	c.Budget, c.DeadlinesMS = held.Budget.narrowed(c.Budget), held.DeadlinesMS.narrowed(c.DeadlinesMS)
	if s.install.Record.Policy.IngressTools != IngressReplace {
		if own.ActiveTools != nil || own.ToolRefs != nil {
			only := baseOf(own.ActiveTools, own.ToolRefs)
			run.Only = &only
			c.ActiveTools, c.ToolRefs = held.ActiveTools, held.ToolRefs
		}
		if own.Enable != nil {
			c.Enable = shared(st.Registry, held.Enable, own.Enable)
		}
	}
	if own.Prices == nil {
		bad = c.priceFor(&held)
	}
	if bad == nil { // the prices and the budget are those of both now
		bad = c.fallbackFault()
	}
	return run, ignored, bad
}

// replacedBy returns c with the fields that own names. A list of tools replaces
// another, whatever its form.
func (c RunConfig) replacedBy(own *RunConfig) RunConfig {
	if own.ActiveTools != nil || own.ToolRefs != nil {
		c.ActiveTools, c.ToolRefs = nil, nil
	}
	from, to := reflect.ValueOf(own).Elem(), reflect.ValueOf(&c).Elem()
	for i := range configFields {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	return c
}

// known splits a list into the names that the registry has, and the others.
func known(reg *planner.Registry, names []string) (have, lacks []string) {
	for _, name := range names {
		if _, ok := reg.Lookup(name); ok {
			have = append(have, name)
		} else {
			lacks = append(lacks, name)
		}
	}
	return have, lacks
}

// united returns a list with the tools of another that it does not name yet.
func united(reg *planner.Registry, list, other []string) []string {
	out := slices.Clone(list)
	for _, name := range other {
		if !names(reg, out, name) {
			out = append(out, name)
		}
	}
	return out
}

// shared returns the entries of a list whose tools another names, too.
func shared(reg *planner.Registry, list, other []string) (out []string) {
	for _, name := range list {
		if names(reg, other, name) {
			out = append(out, name)
		}
	}
	return out
}

// names reports whether a list names a tool, by either of its names.
func names(reg *planner.Registry, list []string, name string) bool {
	tool, ok := reg.Lookup(name)
	return slices.ContainsFunc(list, func(other string) bool {
		t, is := reg.Lookup(other)
		return other == name || ok && is && t == tool
	})
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// narrowed returns the smaller limits of two budgets. What happens to a run that
// reaches one is the operator's decision.
func (b *Budget) narrowed(by *Budget) *Budget {
	if b == nil || by == nil || b == by {
		return orOther(b, by)
	}
	return &Budget{
		Cost: smaller(b.Cost, by.Cost), OnBreach: b.OnBreach, SessionCost: smaller(b.SessionCost, by.SessionCost),
		SessionTokens: smaller(b.SessionTokens, by.SessionTokens), Tokens: smaller(b.Tokens, by.Tokens),
	}
}

func (d *DeadlinesMS) narrowed(by *DeadlinesMS) *DeadlinesMS {
	if d == nil || by == nil || d == by {
		return orOther(d, by)
	}
	return &DeadlinesMS{
		Approval: smaller(d.Approval, by.Approval), Call: smaller(d.Call, by.Call),
		Child: smaller(d.Child, by.Child), Reply: smaller(d.Reply, by.Reply), Run: smaller(d.Run, by.Run), Turn: smaller(d.Turn, by.Turn),
	}
}

func orOther[T any](p, other *T) *T {
	if p == nil {
		return other
	}
	return p
}

// priceFor gives a client's config the operator's prices for its model. The prices
// outside `models` are those of the operator's own model. A budget of cost needs a
// price: a model without one would escape it.
func (c *RunConfig) priceFor(held *RunConfig) *refusal {
	if c.Model == held.Model && c.Provider == held.Provider {
		return nil
	}
	if p := held.Prices; p != nil {
		c.Prices = &Prices{Models: p.Models}
		if price := p.of(c.Model); price != nil {
			c.Prices.CacheRead, c.Prices.CacheWrite, c.Prices.Input, c.Prices.Output = price.CacheRead, price.CacheWrite, price.Input, price.Output
			return nil
		}
	}
	if c.Budget.limitsCost() {
		return refuse(RejectNotPermitted, "config.model: the operator's prices have none for "+sentence.Quoted(c.Model)+", and a budget of cost holds")
	}
	return nil
}

// doubtClients marks the clients' runs: what they name may be gone. An operator's run that
// was accepted with a space that waited stays in doubt until what it names is there.
func (s *State) doubtClients() {
	for _, run := range s.runs() {
		doubted := run.Doubt
		run.Doubt = false
		run.Doubt = !run.Operators || doubted && s.runConfigFault(run) != nil
	}
}

// doubtFault checks the active run's config again before its turn, if it is in doubt:
// it is a client's, and tools or spaces have changed since; or it was accepted with
// a space that waited. A client's request never holds back what comes through `ctl`:
// its run fails instead. It stays in doubt then, and so do the runs that its steers begin.
func (s *State) doubtFault(run *Run) *refusal {
	if !run.Doubt {
		return nil
	}
	run.Doubt = false
	bad := s.runConfigFault(run)
	run.Doubt = bad != nil
	return bad
}

// runConfigFault checks the config of a run that was accepted. Nothing in an
// operator's may be gone. In a client's only a name in `disable` may: it disables
// nothing.
func (s *State) runConfigFault(run *Run) *refusal {
	st, c := s.stack(), run.Config
	if run.Doubt {
		return nil // it is checked before its next turn
	}
	if run.Operators {
		return s.configFault(&st, &c, run.Workspace, true)
	}
	if own := run.Workspace; own != nil && !s.isGranted(own.Space) {
		return refuse(RejectWorkspaceInvalid, "config.workspace: the session has no grant for "+sentence.Quoted(own.Space)+" any more")
	}
	of, bad := s.stackOf(&st, &c, run.Workspace)
	if bad != nil {
		return bad
	}
	disabled, _ := known(of.Registry, c.Disable)
	c.Disable = united(of.Registry, nil, disabled) // one tool may have got two of the names
	if bad := s.configFault(&st, &c, run.Workspace, true); bad != nil {
		return bad
	}
	return onlyFault(of.Registry, listOf(run.Only))
}

// onlyFault refuses a client's list that names what the registry does not have.
func onlyFault(reg *planner.Registry, names []string) *refusal {
	for i, name := range names {
		if _, ok := reg.Lookup(name); ok {
			continue
		}
		ref, err := codec.ParseRef(name)
		if _, ok := reg.LookupRef(ref); err != nil || !ok {
			return refuse(RejectUnknownTool, "config.active_tools["+strconv.Itoa(i)+"]: the registry has no tool "+sentence.Quoted(name))
		}
	}
	return nil
}
