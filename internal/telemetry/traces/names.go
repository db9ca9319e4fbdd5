package traces

// Attributes of OpenTelemetry's conventions: GenAI 1.41.0 and core. The one with
// another name in the newer set (see package metrics) has both names here.
const (
	attrOperation      = "gen_ai.operation.name"
	attrProvider       = "gen_ai.provider.name"
	attrAgent          = "gen_ai.agent.name"
	attrConversation   = "gen_ai.conversation.id"
	attrRequestModel   = "gen_ai.request.model"
	attrResponseModel  = "gen_ai.response.model"
	attrFinishReasons  = "gen_ai.response.finish_reasons"
	attrFirstChunk     = "gen_ai.response.time_to_first_chunk"
	attrInputTokens    = "gen_ai.usage.input_tokens"
	attrOutputTokens   = "gen_ai.usage.output_tokens"
	attrCacheRead      = "gen_ai.usage.cache_read.input_tokens"
	attrCacheCreation  = "gen_ai.usage.cache_creation.input_tokens"
	attrCacheWrite     = "gen_ai.usage.cache_write.input_tokens" // Form.Latest
	attrReasoning      = "gen_ai.usage.reasoning.output_tokens"
	attrToolName       = "gen_ai.tool.name"
	attrToolCall       = "gen_ai.tool.call.id"
	attrToolType       = "gen_ai.tool.type"
	attrToolArguments  = "gen_ai.tool.call.arguments"
	attrToolResult     = "gen_ai.tool.call.result"
	attrInputMessages  = "gen_ai.input.messages"
	attrOutputMessages = "gen_ai.output.messages"
	attrErrorType      = "error.type"
)

// Attributes of Refold.
const (
	attrEffect    = "refold.effect"
	attrSeq       = "refold.seq"
	attrRun       = "refold.run"
	attrLifecycle = "refold.lifecycle"
	attrCode      = "refold.code"
	attrCost      = "refold.cost"
	attrTurns     = "refold.turns"
	attrInstall   = "refold.install_hash"
	attrToolset   = "refold.toolset"
	attrBase      = "refold.base"
	attrRule      = "refold.rule"
	attrTools     = "refold.tools"
	attrFrom      = "refold.from"
	attrAttempt   = "refold.attempt"
	attrPlan      = "refold.plan_hash"
	attrCalls     = "refold.calls"
	attrToolID    = "refold.tool_id"
	attrStatus    = "refold.status"
	attrKind      = "refold.kind"
	attrRetrySafe = "refold.retry_safe"
	attrDecision  = "refold.decision"
	attrEdited    = "refold.edited"
	attrBudget    = "refold.budget"
	attrLink      = "refold.link"
	attrKey       = "refold.idempotency_key"
	attrStart     = "refold.start"
)
