package docs_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// limits says for every limit in a schema which one of the code it is. Go
// counts bytes; a schema's maxLength counts characters, so it lets through what
// the fold refuses where text is not ASCII.
var limits = map[string]int64{
	"ApprovalDecided#/properties/arguments/maxLength":                                 planner.ArgumentsBytesMax,
	"ApprovalDecided#/properties/reason/maxLength":                                    session.DetailBytesMax,
	"ApprovalRequested#/properties/tool_name/maxLength":                               session.NameBytesMax,
	"CallsPlanned#/properties/calls/maxItems":                                         session.CallsMax,
	"Envelope#/properties/at/maximum":                                                 session.NumberMax,
	"Envelope#/properties/by/maxLength":                                               session.ByBytesMax,
	"Envelope#/properties/id/maxLength":                                               session.IDBytesMax,
	"EventRejected#/properties/detail/maxLength":                                      session.DetailBytesMax,
	"EventRejected#/properties/type/maxLength":                                        session.IDBytesMax,
	"FactsSet#/properties/facts/additionalProperties/maxLength":                       session.FactValueBytesMax,
	"FactsSet#/properties/facts/propertyNames/maxLength":                              session.FactNameBytesMax,
	"InstallRecord#/properties/profile_by_provider/propertyNames/maxLength":           planner.NameBytesMax,
	"ToolRegistrySet#/properties/profile_by_provider/propertyNames/maxLength":         planner.NameBytesMax,
	"Generation#/properties/defined/maxItems":                                         planner.ToolsMax,
	"Generation#/properties/items/maxItems":                                           session.ItemsMax + session.SteersMax,
	"Generation#/properties/model/maxLength":                                          session.NameBytesMax,
	"Generation#/properties/output_tokens_max/maximum":                                session.OutputTokensMax,
	"Generation#/properties/system/maxLength":                                         session.SystemBytesMax,
	"Generation#/properties/tools/maxItems":                                           planner.ToolsMax,
	"GenerationSettled#/properties/finish_reason/maxLength":                           session.NameBytesMax,
	"GenerationSettled#/properties/model/maxLength":                                   session.NameBytesMax,
	"InstallRecord#/properties/policy/properties/approval/maxItems":                   planner.ApprovalRulesMax,
	"InstallRecord#/properties/profiles/maxItems":                                     planner.ProfilesMax,
	"InstallRecord#/properties/tools/maxItems":                                        planner.ToolsMax,
	"LiveDelta#/properties/text/maxLength":                                            32 << 10, // see TestWire
	"CallSettled#/properties/code/maxLength":                                          session.CodeBytesMax,
	"CallSettled#/properties/detail/maxLength":                                        session.DetailBytesMax,
	"CallSettled#/properties/output/maxLength":                                        session.ProgressOutputMax,
	"CallSettled#/properties/tool_name/maxLength":                                     session.NameBytesMax,
	"TurnSettled#/properties/code/maxLength":                                          session.CodeBytesMax,
	"TurnSettled#/properties/detail/maxLength":                                        session.DetailBytesMax,
	"TurnSettled#/properties/finish_reason/maxLength":                                 session.NameBytesMax,
	"TurnSettled#/properties/text/maxLength":                                          session.ProgressTextMax,
	"RunQueued#/properties/model/maxLength":                                           session.NameBytesMax,
	"RunStarted#/properties/model/maxLength":                                          session.NameBytesMax,
	"RunFinished#/properties/code/maxLength":                                          session.CodeBytesMax,
	"RunFinished#/properties/detail/maxLength":                                        session.DetailBytesMax,
	"RunCancelRequested#/properties/reason/maxLength":                                 session.DetailBytesMax,
	"RunCompleted#/properties/code/maxLength":                                         session.CodeBytesMax,
	"RunCompleted#/properties/detail/maxLength":                                       session.DetailBytesMax,
	"RunFailed#/properties/code/maxLength":                                            session.CodeBytesMax,
	"RunFailed#/properties/detail/maxLength":                                          session.DetailBytesMax,
	"RunFinished#/properties/untaken_steers/maxItems":                                 session.SteersMax,
	"RunInterruptRequested#/properties/reason/maxLength":                              session.DetailBytesMax,
	"RunPauseRequested#/properties/reason/maxLength":                                  session.DetailBytesMax,
	"RunResumeRequested#/properties/reason/maxLength":                                 session.DetailBytesMax,
	"RunQueued#/properties/submission/maxLength":                                      session.IDBytesMax,
	"RunRequested#/properties/submission/maxLength":                                   session.IDBytesMax,
	"RunRequested#/properties/roles/items/maxLength":                                  session.RoleBytesMax,
	"RunRequested#/properties/roles/maxItems":                                         session.RolesMax,
	"RunStarted#/properties/submission/maxLength":                                     session.IDBytesMax,
	"SessionConfigured#/properties/queue_max/maximum":                                 session.QueueMax,
	"Step#/properties/calls/items/properties/arguments/maxLength":                     session.StepArgumentBytesMax,
	"Step#/properties/tools/maxItems":                                                 planner.ToolsMax,
	"Step#/properties/calls/items/properties/code/maxLength":                          session.CodeBytesMax,
	"Step#/properties/calls/items/properties/tool_name/maxLength":                     session.NameBytesMax,
	"Step#/properties/calls/maxItems":                                                 session.StepCallsMax,
	"Step#/properties/items/maxItems":                                                 session.StepItemsMax,
	"Step#/properties/model/maxLength":                                                session.NameBytesMax,
	"Step#/properties/roles/items/maxLength":                                          session.RoleBytesMax,
	"Step#/properties/roles/maxItems":                                                 session.RolesMax,
	"ToolBatchSettled#/properties/results/maxItems":                                   session.CallsMax,
	"ToolCall#/properties/arguments/maxLength":                                        planner.ArgumentsBytesMax,
	"ToolCall#/properties/call/maximum":                                               session.CallsMax - 1,
	"ToolCall#/properties/provider_call_id/maxLength":                                 session.ByBytesMax,
	"ToolCallsObserved#/properties/calls/items/properties/provider_call_id/maxLength": session.ByBytesMax,
	"ToolCallsObserved#/properties/calls/items/properties/size/maximum":               session.NumberMax,
	"ToolCallSettled#/properties/duration_ms/maximum":                                 session.NumberMax,
	"ToolCallsObserved#/properties/calls/maxItems":                                    session.CallsSeenMax,
	"ToolCallsObserved#/properties/model/maxLength":                                   session.NameBytesMax,
	"ToolDescriptor#/properties/description/maxLength":                                planner.DescriptionBytesMax,
	"ToolRejected#/properties/detail/maxLength":                                       session.DetailBytesMax,
	"ToolRejected#/properties/tool_name/maxLength":                                    session.NameBytesMax,
	"View#/$defs/batch/properties/calls/items/properties/detail/maxLength":            session.DetailBytesMax,
	"View#/$defs/lists/properties/disable/maxItems":                                   session.NamesMax,
	"View#/$defs/lists/properties/enable/maxItems":                                    session.NamesMax,
	"View#/$defs/lists/properties/force/maxItems":                                     session.NamesMax,
	"View#/$defs/run/properties/steers/maxItems":                                      session.SteersMax,
	"View#/$defs/run/properties/used/maxItems":                                        planner.ToolsMax,
	"View#/$defs/run/properties/roles/maxItems":                                       session.RolesMax,
	"View#/$defs/turn/properties/step/properties/detail/maxLength":                    session.DetailBytesMax,
	"View#/$defs/turn/properties/step/properties/failed/maxItems":                     planner.StepRulesMax,
	"View#/$defs/batch/properties/calls/maxItems":                                     session.CallsMax,
	"View#/properties/facts/maxItems":                                                 session.FactsMax,
	"View#/properties/last/properties/detail/maxLength":                               session.DetailBytesMax,
	"View#/properties/queue/maxItems":                                                 session.QueueMax,
	"View#/properties/tools/maxItems":                                                 planner.ToolsMax,
	"View#/properties/transcript/maxItems":                                            100, // see TestScenariosFitSchemas
	"Heartbeat#/properties/troubles/maxItems":                                         session.TroublesMax,
	"View#/properties/troubles/maxItems":                                              session.TroublesMax,
	"parts/Trouble#/properties/code/maxLength":                                        session.CodeBytesMax,
	"parts/Trouble#/properties/detail/maxLength":                                      session.DetailBytesMax,
	"parts/ApprovalRule#/properties/tools/items/maxLength":                            planner.ToolIDBytesMax,
	"parts/ApprovalRule#/properties/tools/maxItems":                                   planner.StepToolsMax,
	"parts/ApprovalRule#/properties/when/maxLength":                                   planner.WhenBytesMax,
	"parts/Budget#/properties/cost/maximum":                                           session.CostMax,
	"parts/Budget#/properties/session_cost/maximum":                                   session.CostMax,
	"parts/Budget#/properties/session_tokens/maximum":                                 session.TokensMax,
	"parts/Budget#/properties/tokens/maximum":                                         session.TokensMax,
	"parts/Content#/properties/media_type/maxLength":                                  session.NameBytesMax,
	"parts/Content#/properties/parts/maxItems":                                        session.PartsMax,
	"parts/Content#/properties/size/maximum":                                          session.NumberMax,
	"parts/Content#/properties/text/maxLength":                                        session.TextBytesMax,
	"parts/Fault#/properties/code/maxLength":                                          session.CodeBytesMax,
	"parts/HostSession#/properties/id/maxLength":                                      session.HostIDBytesMax,
	"parts/HostSession#/properties/root/maxLength":                                    session.HostRootBytesMax,
	"parts/HostSession#/properties/route/maxLength":                                   session.HostIDBytesMax,
	"parts/Item#/properties/code/maxLength":                                           session.CodeBytesMax,
	"parts/Item#/properties/detail/maxLength":                                         session.DetailBytesMax,
	"parts/Names#/$defs/run/maximum":                                                  math.MaxUint32,
	"parts/Names#/$defs/tool/maxLength":                                               planner.ToolIDBytesMax,
	"parts/Names#/$defs/tool_id/maxLength":                                            planner.ToolIDBytesMax,
	"parts/RunConfig#/properties/active_tools/maxItems":                               session.NamesMax,
	"parts/RunConfig#/properties/deadlines_ms/properties/approval/maximum":            session.LongMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/approval/minimum":            session.DeadlineMinMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/run/maximum":                 session.LongMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/run/minimum":                 session.DeadlineMinMS,
	"parts/RunConfig#/properties/prices/properties/cache_read/maximum":                session.PriceMax,
	"parts/RunConfig#/properties/prices/properties/cache_write/maximum":               session.PriceMax,
	"parts/RunConfig#/properties/prices/properties/input/maximum":                     session.PriceMax,
	"parts/RunConfig#/properties/prices/properties/output/maximum":                    session.PriceMax,
	"parts/RunConfig#/properties/retry/properties/attempts/maximum":                   session.AttemptsMax,
	"parts/RunConfig#/properties/retry/properties/backoff_max_ms/maximum":             session.DeadlineMaxMS,
	"parts/RunConfig#/properties/retry/properties/backoff_ms/maximum":                 session.DeadlineMaxMS,
	"parts/RunConfig#/properties/retry/properties/codes/items/maxLength":              session.CodeBytesMax,
	"parts/RunConfig#/properties/retry/properties/codes/maxItems":                     session.RetryCodesMax,
	"parts/RunConfig#/properties/deadlines_ms/properties/call/maximum":                session.DeadlineMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/call/minimum":                session.DeadlineMinMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/turn/maximum":                session.DeadlineMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/turn/minimum":                session.DeadlineMinMS,
	"parts/RunConfig#/properties/disable/maxItems":                                    session.NamesMax,
	"parts/RunConfig#/properties/enable/maxItems":                                     session.NamesMax,
	"parts/RunConfig#/properties/force/maxItems":                                      session.NamesMax,
	"parts/RunConfig#/properties/model/maxLength":                                     session.NameBytesMax,
	"parts/RunConfig#/properties/step_hook/properties/deadline_ms/maximum":            session.DeadlineMaxMS,
	"parts/RunConfig#/properties/step_hook/properties/deadline_ms/minimum":            session.DeadlineMinMS,
	"parts/RunConfig#/properties/steps/maxItems":                                      planner.StepRulesMax,
	"parts/RunConfig#/properties/tool_refs/maxItems":                                  session.NamesMax,
	"parts/RunConfig#/properties/system/maxLength":                                    session.SystemBytesMax,
	"parts/RunConfig#/properties/turns_max/maximum":                                   session.TurnsMax,
	"parts/Profile#/properties/steps/maxItems":                                        planner.StepRulesMax,
	"parts/StepRule#/properties/active_tools/maxItems":                                planner.StepToolsMax,
	"parts/StepRule#/properties/model/maxLength":                                      planner.StepModelBytesMax,
	"parts/StepRule#/properties/system/maxLength":                                     planner.StepSystemBytesMax,
	"parts/StepRule#/properties/tool_refs/maxItems":                                   planner.StepToolsMax,
	"parts/StepRule#/properties/when/maxLength":                                       planner.WhenBytesMax,
	"ToolRegistrySet#/properties/profiles/maxItems":                                   planner.ProfilesMax,
	"ToolRegistrySet#/properties/tools/maxItems":                                      planner.ToolsMax,
	"parts/ToolSpec#/properties/approval/maxLength":                                   planner.WhenBytesMax,
	"parts/ToolSpec#/properties/alternates/maxItems":                                  planner.AlternatesMax,
	"parts/ToolSpec#/properties/availability/items/properties/equals/maxLength":       planner.FactValueBytesMax,
	"parts/ToolSpec#/properties/availability/items/properties/name/maxLength":         planner.FactNameBytesMax,
	"parts/ToolSpec#/properties/availability/maxItems":                                planner.RulesMax,
	"parts/ToolSpec#/properties/deadline_ms/maximum":                                  session.DeadlineMaxMS / 2,
	"parts/ToolSpec#/properties/description/maxLength":                                planner.DescriptionBytesMax,
	"parts/ToolSpec#/properties/requires/items/maxLength":                             planner.CapabilityBytesMax,
	"parts/ToolSpec#/properties/requires/maxItems":                                    planner.RequiresMax,
	"parts/ToolSpec#/properties/resource_key/maxLength":                               planner.TemplateBytesMax,
	"parts/Usage#/properties/cache_write_tokens/maximum":                              session.TokensMax,
	"parts/Usage#/properties/cached_tokens/maximum":                                   session.TokensMax,
	"parts/Usage#/properties/input_tokens/maximum":                                    session.TokensMax,
	"parts/Usage#/properties/output_tokens/maximum":                                   session.TokensMax,
	"parts/Usage#/properties/reasoning_tokens/maximum":                                session.TokensMax,
	"InstallRecord#/properties/rules/const":                                           session.RulesVersion,
}

// TestLimits: every limit of a schema is one of the code's. Least values of 0
// and 1 need no name.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	left := map[string]bool{}
	for at := range limits {
		left[at] = true
	}
	for _, name := range s.names() {
		walk(s.docs[name], func(at string, node map[string]any) {
			for _, keyword := range []string{"maxLength", "maxItems", "maximum", "minimum", "minLength", "minItems", "const"} {
				number, ok := node[keyword].(json.Number)
				got, err := number.Int64()
				place := name + "#" + at + "/" + keyword
				want, known := limits[place]
				delete(left, place)
				switch {
				case !ok || err != nil, !known && got <= 2 && !strings.HasPrefix(keyword, "max"):
				case !known:
					t.Errorf("%s is %d, and this test doesn't know why", place, got)
				case got != want:
					t.Errorf("%s: got %d, want %d", place, got, want)
				}
			}
		})
	}
	for at := range left {
		t.Errorf("%s: no schema has this limit", at)
	}
}
