package openai

import (
	"encoding/json"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/planner"
)

// reserved are the members of a request that params can't set: they are made
// from other parts of the config, or change the form of the answer.
var reserved = []string{"messages", "model", "n", "stream", "tool_choice", "tools"}

// newParams builds the request. Its error is a fault of the run's config.
func newParams(req *bridge.Request) (openai.ChatCompletionNewParams, error) {
	body := openai.ChatCompletionNewParams{Model: req.Model}
	if req.System != "" {
		body.Messages = append(body.Messages, openai.SystemMessage(req.System))
	}
	for i := range req.Messages {
		body.Messages = append(body.Messages, newMessage(&req.Messages[i]))
	}
	extra := make(map[string]any)
	if len(req.Tools) > 0 { // servers refuse a choice among no tools
		tools, err := req.RenderTools(toolsForm, renderTools)
		if err != nil {
			return body, err
		}
		extra["tools"] = json.RawMessage(tools)
		body.ToolChoice = newToolChoice(req.ToolChoice)
	}
	if err := passOn(extra, req.Params); err != nil {
		return body, err
	}
	if len(extra) > 0 {
		body.SetExtraFields(extra)
	}
	return body, nil
}

// passOn adds the members of params to those of the request.
func passOn(extra map[string]any, params json.RawMessage) error {
	if len(params) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return llm.Fail(llm.CodeBadRequest, "params: is no JSON object")
	}
	for name, value := range members {
		if slices.Contains(reserved, name) {
			return llm.Fail(llm.CodeBadRequest, "params.%s: is not for params to set: leave it out", name)
		}
		extra[name] = value
	}
	return nil
}

// hasExtra reports whether params set a member of the request.
func hasExtra(body *openai.ChatCompletionNewParams, name string) bool {
	_, ok := body.ExtraFields()[name]
	return ok
}

// inventedName stands for a name that a model made up and no provider takes
// back. The call was refused under its own name, and its result says so.
const inventedName = "invalid_tool_name"

// sendableName returns a called tool's name as the API takes it.
func sendableName(name string) string {
	if planner.IsName(name) {
		return name
	}
	return inventedName
}

// newMessage makes one message of the conversation.
func newMessage(m *bridge.Message) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case "tool":
		return openai.ToolMessage(m.Text, m.CallID)
	case "assistant":
		said := openai.ChatCompletionAssistantMessageParam{}
		if m.Text != "" || len(m.Calls) == 0 {
			said.Content.OfString = param.NewOpt(m.Text)
		}
		for _, c := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: sendableName(c.Name), Arguments: orEmptyObject(c.Arguments),
					},
				},
			})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &said}
	}
	return openai.UserMessage(m.Text)
}

// orEmptyObject stands in for arguments that a model left out: some servers
// parse them.
func orEmptyObject(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	return arguments
}

// toolsForm names what renderTools makes.
const toolsForm = "openai.chat.tools"

// renderTools makes the request's member tools, as JSON.
func renderTools(tools []bridge.Tool) ([]byte, error) {
	all := make([]openai.ChatCompletionToolUnionParam, len(tools))
	for i := range tools {
		var err error
		if all[i], err = newTool(&tools[i]); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, llm.Fail(llm.CodeBadRequest, "tools: %s", err)
	}
	return text, nil
}

// newTool makes one tool. The schema's members are passed on byte for byte.
func newTool(t *bridge.Tool) (openai.ChatCompletionToolUnionParam, error) {
	fn := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		fn.Description = param.NewOpt(t.Description)
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return openai.ChatCompletionToolUnionParam{}, llm.Fail(llm.CodeBadRequest, "tool %s: its schema is no JSON object", t.Name)
	}
	fn.Parameters = make(shared.FunctionParameters, len(schema))
	for name, value := range schema {
		fn.Parameters[name] = value
	}
	return openai.ChatCompletionFunctionTool(fn), nil
}

// newToolChoice makes the choice; auto is the protocol's default and not sent.
func newToolChoice(choice string) openai.ChatCompletionToolChoiceOptionUnionParam {
	switch choice {
	case "", "auto":
		return openai.ChatCompletionToolChoiceOptionUnionParam{}
	case "none", "required":
		return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(choice)}
	}
	return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: choice})
}
