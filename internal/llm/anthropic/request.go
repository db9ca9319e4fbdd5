package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/schema"
)

// reserved are the members of a request that params can't set: they come from
// other parts of the config, or change the form of the answer.
var reserved = []string{"messages", "model", "stream", "system", "tool_choice", "tools"}

// newParams builds the request. Its error is a fault of the run's config.
func (m *Model) newParams(req *executor.Request, thoughts llm.Thoughts) (anthropic.MessageNewParams, error) {
	body := anthropic.MessageNewParams{Model: req.Model}
	all, before := m.newMessages(accepts.Fit(req.Messages), thoughts)
	body.Messages = all
	if req.System != "" {
		body.System = []anthropic.TextBlockParam{{Text: req.System}}
	}
	members, err := llm.Params(req.Params, reserved)
	if err != nil {
		return body, err
	}
	extra := make(map[string]any, len(members)+1)
	for name, value := range members {
		if name != "max_tokens" {
			extra[name] = value
		}
	}
	if body.MaxTokens, err = llm.OutputTokensMax(req, "max_tokens", members["max_tokens"], maxTokensDefault, tokensMin(members)); err != nil {
		return body, err
	}
	if thoughts == llm.ThoughtsDropped {
		if extra["thinking"], err = dropping(members); err != nil {
			return body, err
		}
	}
	marks := newMarks(req, members)
	if len(req.Tools) > 0 {
		tools, err := req.RenderTools(toolsForm, renderTools)
		if err == nil && marks.tools(len(tools)) {
			tools, err = req.RenderTools(toolsForm+"."+string(marks.ttl()), marks.renderTools)
		}
		if err != nil {
			return body, err
		}
		extra["tools"] = json.RawMessage(tools)
		body.ToolChoice = newToolChoice(req.ToolChoice)
	}
	if f := req.Format; f != nil {
		if f.Schema == nil {
			return body, llm.Fail(llm.CodeBadRequest, "response_format: Anthropic's API has no JSON without a schema: give a json_schema")
		}
		form := map[string]any{"type": "json_schema", "schema": f.Schema}
		if extra["output_config"], err = llm.Merge(members, "output_config", "format", form); err != nil {
			return body, err
		}
	}
	marks.set(&body, before)
	if len(extra) > 0 {
		body.SetExtraFields(extra)
	}
	return body, nil
}

// tokensMin returns the least max_tokens that the API accepts: it must exceed
// the thinking budget.
func tokensMin(members map[string]json.RawMessage) int64 {
	var thinking struct {
		BudgetTokens int64 `json:"budget_tokens"`
	}
	if json.Unmarshal(members["thinking"], &thinking) != nil { // absent, or left to the server to refuse
		return 1
	}
	return thinking.BudgetTokens + 1
}

// waysOf returns the ways in which thoughts can be sent with these params:
// without thinking the API can't drop them.
func waysOf(params json.RawMessage) []llm.Thoughts {
	var given struct {
		Thinking struct {
			Type string `json:"type"`
		} `json:"thinking"`
	}
	if json.Unmarshal(params, &given) == nil && given.Thinking.Type == "disabled" {
		return []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsLeftOut}
	}
	return []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsDropped, llm.ThoughtsLeftOut}
}

// dropping returns the member thinking that makes the API drop thoughts whose
// prefix has changed. Models that check prefixes think adaptively by default,
// so this changes nothing else. Members of params are kept.
func dropping(members map[string]json.RawMessage) (map[string]any, error) {
	thinking := map[string]any{"type": "adaptive", "block_binding": map[string]string{"prefix_mismatch_behavior": "drop_block"}}
	given, ok := members["thinking"]
	if !ok {
		return thinking, nil
	}
	object, err := llm.Members(given, "params.thinking")
	for name, value := range object {
		thinking[name] = value
	}
	return thinking, err
}

// newMessages builds the conversation. Everything between two turns of the
// model is one user message; results come first in it, as in the conversation.
// Blank text, which the API refuses, is left out, as is a turn with nothing
// else; a user's blank text is spelled out instead. before is the last block
// before the model's latest turn, where the previous request ended, or nil.
func (m *Model) newMessages(messages []executor.Message, thoughts llm.Thoughts) (all []anthropic.MessageParam, before *blockIndex) {
	latest := latestTurn(messages)
	add := func(role anthropic.MessageParamRole, blocks ...anthropic.ContentBlockParamUnion) {
		if len(blocks) == 0 {
			return
		}
		if len(all) == 0 && role == anthropic.MessageParamRoleAssistant { // the user's message must come first
			all = append(all, anthropic.NewUserMessage(anthropic.NewTextBlock(llm.GoOn)))
		}
		if n := len(all); n == 0 || all[n-1].Role != role {
			all = append(all, anthropic.MessageParam{Role: role})
		}
		last := &all[len(all)-1]
		last.Content = append(last.Content, blocks...)
	}
	for i := range messages {
		msg := &messages[i]
		if i == latest && len(all) > 0 {
			before = &blockIndex{message: len(all) - 1, block: len(all[len(all)-1].Content) - 1}
		}
		switch msg.Role {
		case "user":
			add(anthropic.MessageParamRoleUser, newWords(msg)...)
		case "tool":
			add(anthropic.MessageParamRoleUser, newResult(msg))
		default:
			add(anthropic.MessageParamRoleAssistant, m.newTurn(msg, thoughts)...)
		}
	}
	return all, before
}

// newWords returns a user message.
func newWords(m *executor.Message) []anthropic.ContentBlockParamUnion {
	if len(m.Parts) == 0 {
		return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(llm.Spoken(m.Text))}
	}
	var blocks []anthropic.ContentBlockParamUnion
	for i := range m.Parts {
		if p := &m.Parts[i]; len(p.Data) > 0 {
			blocks = append(blocks, newFile(p))
		} else if !llm.IsBlank(p.Text) {
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		}
	}
	return blocks
}

func newResult(m *executor.Message) anthropic.ContentBlockParamUnion {
	result := anthropic.ToolResultBlockParam{ToolUseID: llm.CallID(m.CallID)}
	if m.Error {
		result.IsError = param.NewOpt(true)
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; len(p.Data) > 0 {
			file := newFile(p)
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: file.OfImage, OfDocument: file.OfDocument})
		} else if !llm.IsBlank(p.Text) {
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: p.Text}})
		}
	}
	if len(result.Content) == 0 {
		result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: llm.Result(m)}}}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &result}
}

// newTurn returns a turn of the model, with its thoughts if they are this server's.
func (m *Model) newTurn(msg *executor.Message, thoughts llm.Thoughts) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	text := msg.Text
	for _, p := range llm.Pieces(m.of, thoughts, msg) {
		switch {
		case p.Item != "":
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](json.RawMessage(p.Item)))
		case p.Call > 0:
			c := msg.Calls[p.Call-1]
			blocks = append(blocks, anthropic.NewToolUseBlock(llm.CallID(c.ID), llm.Object(c.Arguments), llm.ToolName(c.Name)))
		default:
			if words := text[:p.Text]; !llm.IsBlank(words) {
				blocks = append(blocks, anthropic.NewTextBlock(words))
			}
			text = text[p.Text:]
		}
	}
	return blocks
}

// toolsForm identifies the format of renderTools.
const toolsForm = "anthropic.tools"

// renderTools returns the request's member tools as JSON.
func renderTools(tools []executor.Tool) ([]byte, error) { return renderMarked(tools, nil) }

// renderMarked is renderTools with a cache mark on the last tool, unless mark
// is nil.
func renderMarked(tools []executor.Tool, mark *anthropic.CacheControlEphemeralParam) ([]byte, error) {
	type tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		InputSchema map[string]any `json:"input_schema"`

		CacheControl *anthropic.CacheControlEphemeralParam `json:"cache_control,omitempty"`
	}
	return llm.RenderTools(schema.Anthropic, tools, func(t *executor.Tool, members map[string]any) tool {
		made := tool{Name: t.Name, Description: t.Description, InputSchema: members}
		if t == &tools[len(tools)-1] {
			made.CacheControl = mark
		}
		return made
	})
}

// newToolChoice returns the choice; auto is the default and not sent.
func newToolChoice(choice string) anthropic.ToolChoiceUnionParam {
	switch choice {
	case "", "auto":
		return anthropic.ToolChoiceUnionParam{}
	case "none":
		return anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	case "required":
		return anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	}
	return anthropic.ToolChoiceParamOfTool(choice)
}
