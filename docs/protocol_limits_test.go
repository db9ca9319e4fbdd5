package docs_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// fields shortens the place of a limit in a schema: View#queue.maxItems.
var fields = strings.NewReplacer("properties/", "", "/", ".")

// limits says for every limit in a schema which one of the code it is. Go
// counts bytes; a schema's maxLength counts characters, so it lets through what
// the fold refuses where text is not ASCII.
var limits = map[string]int64{
	"ApprovalDecided#arguments.maxLength":                         planner.ArgumentsBytesMax,
	"ApprovalDecided#reason.maxLength":                            session.DetailBytesMax,
	"ApprovalRequested#tool_name.maxLength":                       session.NameBytesMax,
	"CallsPlanned#calls.maxItems":                                 session.CallsMax,
	"Envelope#at.maximum":                                         session.NumberMax,
	"Envelope#by.maxLength":                                       session.ByBytesMax,
	"Envelope#id.maxLength":                                       session.IDBytesMax,
	"EventRejected#detail.maxLength":                              session.DetailBytesMax,
	"EventRejected#type.maxLength":                                session.IDBytesMax,
	"FactsSet#facts.additionalProperties.maxLength":               session.FactValueBytesMax,
	"FactsSet#facts.propertyNames.maxLength":                      session.FactNameBytesMax,
	"InstallRecord#profile_by_provider.propertyNames.maxLength":   planner.NameBytesMax,
	"ToolRegistrySet#profile_by_provider.propertyNames.maxLength": planner.NameBytesMax,
	"Generation#defined.maxItems":                                 planner.ToolsMax,
	"Generation#model.maxLength":                                  session.NameBytesMax,
	"Generation#output_tokens_max.maximum":                        session.OutputTokensMax,
	"Generation#system.maxLength":                                 session.SystemBytesMax,
	"Generation#tools.maxItems":                                   planner.ToolsMax,
	"GenerationSettled#finish_reason.maxLength":                   session.NameBytesMax,
	"ToolCallsObserved#finish_reason.maxLength":                   session.NameBytesMax,
	"RunFinished#finish_reason.maxLength":                         session.NameBytesMax,
	"View#last.finish_reason.maxLength":                           session.NameBytesMax,
	"View#$defs.run.finish_reason.maxLength":                      session.NameBytesMax,
	"GenerationSettled#model.maxLength":                           session.NameBytesMax,
	"InstallRecord#policy.approval.maxItems":                      planner.ApprovalRulesMax,
	"InstallRecord#profiles.maxItems":                             planner.ProfilesMax,
	"InstallRecord#tools.maxItems":                                planner.ToolsMax,
	"LiveDelta#text.maxLength":                                    32 << 10, // see TestWire
	"CallSettled#code.maxLength":                                  session.CodeBytesMax,
	"CallSettled#detail.maxLength":                                session.DetailBytesMax,
	"CallSettled#output.maxLength":                                session.ProgressOutputMax,
	"CallSettled#tool_name.maxLength":                             session.NameBytesMax,
	"TurnSettled#code.maxLength":                                  session.CodeBytesMax,
	"TurnSettled#detail.maxLength":                                session.DetailBytesMax,
	"TurnSettled#finish_reason.maxLength":                         session.NameBytesMax,
	"TurnSettled#invalid.maxLength":                               session.DetailBytesMax,
	"TurnSettled#text.maxLength":                                  session.ProgressTextMax,
	"RunQueued#model.maxLength":                                   session.NameBytesMax,
	"RunStarted#model.maxLength":                                  session.NameBytesMax,
	"RunFinished#code.maxLength":                                  session.CodeBytesMax,
	"RunFinished#detail.maxLength":                                session.DetailBytesMax,
	"RunCancelRequested#reason.maxLength":                         session.DetailBytesMax,
	"RunCompleted#code.maxLength":                                 session.CodeBytesMax,
	"RunCompleted#detail.maxLength":                               session.DetailBytesMax,
	"RunFailed#code.maxLength":                                    session.CodeBytesMax,
	"RunFailed#detail.maxLength":                                  session.DetailBytesMax,
	"RunFinished#untaken_steers.maxItems":                         session.SteersMax,
	"RunInterruptRequested#reason.maxLength":                      session.DetailBytesMax,
	"RunPauseRequested#reason.maxLength":                          session.DetailBytesMax,
	"RunResumeRequested#reason.maxLength":                         session.DetailBytesMax,
	"RunQueued#ignored.items.maxLength":                           session.NameBytesMax,
	"RunQueued#ignored.maxItems":                                  session.NamesMax,
	"RunQueued#submission.maxLength":                              session.IDBytesMax,
	"RunRequested#submission.maxLength":                           session.IDBytesMax,
	"RunRequested#roles.items.maxLength":                          session.RoleBytesMax,
	"RunRequested#roles.maxItems":                                 session.RolesMax,
	"RunStarted#ignored.items.maxLength":                          session.NameBytesMax,
	"RunStarted#ignored.maxItems":                                 session.NamesMax,
	"RunStarted#submission.maxLength":                             session.IDBytesMax,
	"SessionConfigured#queue_max.maximum":                         session.QueueMax,
	"Step#calls.items.arguments.maxLength":                        session.StepArgumentBytesMax,
	"Step#tools.maxItems":                                         planner.ToolsMax,
	"Step#calls.items.code.maxLength":                             session.CodeBytesMax,
	"Step#calls.items.tool_name.maxLength":                        session.NameBytesMax,
	"Step#calls.maxItems":                                         session.StepCallsMax,
	"Step#model.maxLength":                                        session.NameBytesMax,
	"Step#roles.items.maxLength":                                  session.RoleBytesMax,
	"Step#roles.maxItems":                                         session.RolesMax,
	"ToolBatchSettled#results.maxItems":                           session.CallsMax,
	"ToolCall#arguments.maxLength":                                planner.ArgumentsBytesMax,
	"ToolCall#call.maximum":                                       session.CallsMax - 1,
	"ToolCall#provider_call_id.maxLength":                         session.ByBytesMax,
	"ToolCallsObserved#calls.items.provider_call_id.maxLength":    session.ByBytesMax,
	"ToolCallsObserved#calls.items.size.maximum":                  session.NumberMax,
	"ToolCallSettled#duration_ms.maximum":                         session.NumberMax,
	"ToolCallsObserved#calls.maxItems":                            session.CallsSeenMax,
	"ToolCallsObserved#model.maxLength":                           session.NameBytesMax,
	"ToolDescriptor#description.maxLength":                        planner.DescriptionBytesMax,
	"ToolRejected#detail.maxLength":                               session.DetailBytesMax,
	"ToolRejected#tool_name.maxLength":                            session.NameBytesMax,
	"View#$defs.batch.calls.items.detail.maxLength":               session.DetailBytesMax,
	"View#$defs.lists.disable.maxItems":                           session.NamesMax,
	"View#$defs.lists.enable.maxItems":                            session.NamesMax,
	"View#$defs.lists.force.maxItems":                             session.NamesMax,
	"View#$defs.run.steers.maxItems":                              session.SteersMax,
	"View#$defs.run.used.maxItems":                                planner.ToolsMax,
	"View#$defs.run.roles.maxItems":                               session.RolesMax,
	"View#$defs.turn.step.detail.maxLength":                       session.DetailBytesMax,
	"View#$defs.turn.step.failed.maxItems":                        planner.StepRulesMax,
	"View#$defs.batch.calls.maxItems":                             session.CallsMax,
	"View#facts.maxItems":                                         session.FactsMax,
	"View#last.detail.maxLength":                                  session.DetailBytesMax,
	"View#queue.maxItems":                                         session.QueueMax,
	"View#tools.maxItems":                                         planner.ToolsMax,
	"View#transcript.maxItems":                                    100, // see TestScenariosFitSchemas
	"Heartbeat#not_ready.maxItems":                                session.TroublesMax,
	"Heartbeat#not_ready.items.maxLength":                         session.TroubleDetailMax,
	"Heartbeat#troubles.maxItems":                                 session.TroublesMax,
	"Heartbeat#tools.additionalProperties.maxItems":               session.HeartbeatToolsMax,
	"Heartbeat#tools.additionalProperties.items.maxLength":        planner.ToolIDBytesMax,
	"View#troubles.maxItems":                                      session.TroublesMax,
	"parts/Trouble#code.maxLength":                                session.CodeBytesMax,
	"parts/Trouble#detail.maxLength":                              session.DetailBytesMax,
	"parts/ApprovalRule#tools.items.maxLength":                    planner.ToolIDBytesMax,
	"parts/ApprovalRule#tools.maxItems":                           planner.StepToolsMax,
	"parts/ApprovalRule#when.maxLength":                           planner.WhenBytesMax,
	"parts/Budget#cost.maximum":                                   session.CostMax,
	"parts/Budget#session_cost.maximum":                           session.CostMax,
	"parts/Budget#session_tokens.maximum":                         session.TokensMax,
	"parts/Budget#tokens.maximum":                                 session.TokensMax,
	"parts/Content#media_type.maxLength":                          session.NameBytesMax,
	"parts/Content#name.maxLength":                                session.NameBytesMax,
	"parts/RunConfig#response_format.repairs.maximum":             session.RepairsMax,
	"parts/Content#parts.maxItems":                                session.PartsMax,
	"parts/Content#size.maximum":                                  session.NumberMax,
	"parts/Content#text.maxLength":                                session.TextBytesMax,
	"parts/Fault#code.maxLength":                                  session.CodeBytesMax,
	"parts/HostSession#id.maxLength":                              session.HostIDBytesMax,
	"parts/HostSession#root.maxLength":                            session.HostRootBytesMax,
	"parts/HostSession#route.maxLength":                           session.HostIDBytesMax,
	"parts/Items#roles.maxLength":                                 session.ItemsMax + session.SteersMax,
	"parts/Items#seqs.maxItems":                                   session.ItemsMax + session.SteersMax,
	"parts/Items#extra.maxItems":                                  session.ItemsMax + session.SteersMax,
	"parts/Items#extra.items.item.maximum":                        session.ItemsMax + session.SteersMax - 1,
	"parts/Items#extra.items.code.maxLength":                      session.CodeBytesMax,
	"parts/Items#extra.items.detail.maxLength":                    session.DetailBytesMax,
	"parts/Names#$defs.run.maximum":                               math.MaxUint32,
	"parts/Names#$defs.tool.maxLength":                            planner.ToolIDBytesMax,
	"parts/Names#$defs.tool_id.maxLength":                         planner.ToolIDBytesMax,
	"parts/RunConfig#active_tools.maxItems":                       session.NamesMax,
	"parts/RunConfig#deadlines_ms.approval.maximum":               session.LongMaxMS,
	"parts/RunConfig#deadlines_ms.approval.minimum":               session.DeadlineMinMS,
	"parts/RunConfig#deadlines_ms.run.maximum":                    session.LongMaxMS,
	"parts/RunConfig#deadlines_ms.run.minimum":                    session.DeadlineMinMS,
	"parts/RunConfig#prices.cache_read.maximum":                   session.PriceMax,
	"parts/RunConfig#prices.cache_write.maximum":                  session.PriceMax,
	"parts/RunConfig#prices.input.maximum":                        session.PriceMax,
	"parts/RunConfig#prices.output.maximum":                       session.PriceMax,
	"parts/RunConfig#prices.models.items.cache_read.maximum":      session.PriceMax,
	"parts/RunConfig#prices.models.items.cache_write.maximum":     session.PriceMax,
	"parts/RunConfig#prices.models.items.input.maximum":           session.PriceMax,
	"parts/RunConfig#prices.models.items.model.maxLength":         session.NameBytesMax,
	"parts/RunConfig#prices.models.items.output.maximum":          session.PriceMax,
	"parts/RunConfig#prices.models.maxItems":                      session.ModelPricesMax,
	"parts/RunConfig#retry.attempts.maximum":                      session.AttemptsMax,
	"parts/RunConfig#retry.backoff_max_ms.maximum":                session.DeadlineMaxMS,
	"parts/RunConfig#retry.backoff_ms.maximum":                    session.DeadlineMaxMS,
	"parts/RunConfig#retry.codes.items.maxLength":                 session.CodeBytesMax,
	"parts/RunConfig#retry.codes.maxItems":                        session.RetryCodesMax,
	"parts/RunConfig#deadlines_ms.call.maximum":                   session.DeadlineMaxMS,
	"parts/RunConfig#deadlines_ms.call.minimum":                   session.DeadlineMinMS,
	"parts/RunConfig#deadlines_ms.turn.maximum":                   session.DeadlineMaxMS,
	"parts/RunConfig#deadlines_ms.turn.minimum":                   session.DeadlineMinMS,
	"parts/RunConfig#disable.maxItems":                            session.NamesMax,
	"parts/RunConfig#enable.maxItems":                             session.NamesMax,
	"parts/RunConfig#force.maxItems":                              session.NamesMax,
	"parts/RunConfig#model.maxLength":                             session.NameBytesMax,
	"parts/RunConfig#step_hook.deadline_ms.maximum":               session.DeadlineMaxMS,
	"parts/RunConfig#step_hook.deadline_ms.minimum":               session.DeadlineMinMS,
	"parts/RunConfig#steps.maxItems":                              planner.StepRulesMax,
	"parts/RunConfig#tool_refs.maxItems":                          session.NamesMax,
	"parts/RunConfig#system.maxLength":                            session.SystemBytesMax,
	"parts/RunConfig#turns_max.maximum":                           session.TurnsMax,
	"parts/Profile#steps.maxItems":                                planner.StepRulesMax,
	"parts/StepRule#active_tools.maxItems":                        planner.StepToolsMax,
	"parts/StepRule#model.maxLength":                              planner.StepModelBytesMax,
	"parts/StepRule#system.maxLength":                             planner.StepSystemBytesMax,
	"parts/StepRule#tool_refs.maxItems":                           planner.StepToolsMax,
	"parts/StepRule#when.maxLength":                               planner.WhenBytesMax,
	"ToolRegistrySet#profiles.maxItems":                           planner.ProfilesMax,
	"ToolRegistrySet#tools.maxItems":                              planner.ToolsMax,
	"parts/ToolSpec#approval.maxLength":                           planner.WhenBytesMax,
	"parts/ToolSpec#alternates.maxItems":                          planner.AlternatesMax,
	"parts/ToolSpec#availability.items.equals.maxLength":          planner.FactValueBytesMax,
	"parts/ToolSpec#availability.items.name.maxLength":            planner.FactNameBytesMax,
	"parts/ToolSpec#availability.maxItems":                        planner.RulesMax,
	"parts/ToolSpec#deadline_ms.maximum":                          session.DeadlineMaxMS / 2,
	"parts/ToolSpec#description.maxLength":                        planner.DescriptionBytesMax,
	"parts/ToolSpec#requires.items.maxLength":                     planner.CapabilityBytesMax,
	"parts/ToolSpec#requires.maxItems":                            planner.RequiresMax,
	"parts/ToolSpec#resource_key.maxLength":                       planner.TemplateBytesMax,
	"parts/Usage#cache_write_tokens.maximum":                      session.TokensMax,
	"parts/Usage#cached_tokens.maximum":                           session.TokensMax,
	"parts/Usage#input_tokens.maximum":                            session.TokensMax,
	"parts/Usage#output_tokens.maximum":                           session.TokensMax,
	"parts/Usage#reasoning_tokens.maximum":                        session.TokensMax,
	"InstallRecord#rules.const":                                   session.RulesVersion,
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
				place := name + "#" + fields.Replace(strings.TrimPrefix(at+"/"+keyword, "/"))
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
