package openai

import (
	"encoding/json"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/schema"
)

// reserved are the members of a request that params can't set: they come from
// other parts of the config, or change the form of the answer.
var reserved = []string{"messages", "model", "n", "stream", "tool_choice", "tools"}

// newParams builds the request, without these optional members. Its error is a fault
// of the run's config.
func (m *Model) newParams(req *executor.Request, thoughts llm.Thoughts, without []string) (openai.ChatCompletionNewParams, error) {
	body := openai.ChatCompletionNewParams{Model: req.Model}
	if req.System != "" {
		body.Messages = append(body.Messages, openai.SystemMessage(req.System))
	}
	body.Messages = append(body.Messages, m.newMessages(m.accepts().Fit(req.Messages), thoughts)...)
	extra := make(map[string]any)
	render := req.RenderTools
	masked := m.openai && req.Defined != nil
	if masked {
		render = req.RenderDefined
	}
	if masked || len(req.Tools) > 0 { // servers refuse a tool choice without tools
		tools, err := render(toolsForm, m.renderTools)
		if err != nil {
			return body, err
		}
		extra["tools"] = json.RawMessage(tools)
		body.ToolChoice = newToolChoice(req.ToolChoice)
		if masked {
			body.ToolChoice = newAllowedChoice(req)
		}
	}
	members, err := llm.Params(req.Params, reserved)
	if err != nil {
		return body, err
	}
	if f := req.Format; f != nil {
		if _, twice := members["response_format"]; twice {
			return body, llm.Fail(llm.CodeBadRequest, "params.response_format: the config has a response_format of its own: leave one out")
		}
		body.ResponseFormat = newFormat(f)
	}
	for name, value := range members {
		extra[name] = value
	}
	if m.openai {
		cache(req, members, extra, chatLifetime, without)
	}
	if _, given := members[memberUsage]; !given && !m.whole && !slices.Contains(without, memberUsage) {
		body.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if err := limitOutput(req, members, extra, without); err != nil {
		return body, err
	}
	if len(extra) > 0 {
		body.SetExtraFields(extra)
	}
	return body, nil
}

// limitOutput limits the output to the run's remaining budget, with whichever
// of the API's two members params have. OpenAI's reasoning models accept only
// the newer one, and some servers only the older one.
func limitOutput(req *executor.Request, members map[string]json.RawMessage, extra map[string]any, without []string) error {
	if req.OutputTokensMax == 0 {
		return nil
	}
	_, older := members[memberLimitOld]
	_, newer := members[memberLimit]
	names := []string{memberLimit}
	switch {
	case older && newer:
		names = []string{memberLimitOld, memberLimit}
	case older, !newer && slices.Contains(without, memberLimit):
		names = []string{memberLimitOld}
	}
	for _, name := range names {
		limit, err := llm.OutputTokensMax(req, name, members[name], 0, 1)
		if err != nil {
			return err
		}
		extra[name] = limit
	}
	return nil
}

func newFormat(f *executor.Format) openai.ChatCompletionNewParamsResponseFormatUnion {
	if f.Schema == nil {
		return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	}
	schema := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: llm.FormatName(f), Schema: f.Schema}
	if f.Strict {
		schema.Strict = param.NewOpt(true)
	}
	return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: schema}}
}

// newParts returns the content of a message with images.
func newParts(parts []executor.Part) []openai.ChatCompletionContentPartUnionParam {
	var content []openai.ChatCompletionContentPartUnionParam
	for i := range parts {
		if p := &parts[i]; len(p.Data) > 0 {
			content = append(content, newChatFile(p))
		} else if !llm.IsBlank(p.Text) {
			content = append(content, openai.TextContentPart(p.Text))
		}
	}
	return content
}

// newAssistant returns a turn of the model, with its thoughts if they are this
// server's.
func (m *Model) newAssistant(msg *executor.Message, thoughts llm.Thoughts) openai.ChatCompletionMessageParamUnion {
	message := openai.ChatCompletionAssistantMessageParam{}
	if !llm.IsBlank(msg.Text) {
		message.Content.OfString = param.NewOpt(msg.Text)
	}
	for _, p := range llm.Pieces(m.of, thoughts, msg) {
		switch {
		case p.Item != "":
			message.SetExtraFields(thoughtOf(p))
		case p.Call > 0:
			c := msg.Calls[p.Call-1]
			call := &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: llm.CallID(c.ID),
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: llm.ToolName(c.Name), Arguments: string(llm.Object(c.Arguments)),
				},
			}
			if json.Valid([]byte(p.Mark)) {
				call.SetExtraFields(map[string]any{memberExtra: json.RawMessage(p.Mark)})
			}
			message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
		}
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &message}
}

// toolsForm identifies the format of renderTools.
const toolsForm = "openai.chat.tools"

// renderTools returns the request's member tools as JSON.
func (m *Model) renderTools(tools []executor.Tool) ([]byte, error) {
	return llm.RenderTools(m.dialect(), tools, func(t *executor.Tool, members map[string]any) openai.ChatCompletionToolUnionParam {
		fn := shared.FunctionDefinitionParam{Name: t.Name, Parameters: members}
		if t.Description != "" {
			fn.Description = param.NewOpt(t.Description)
		}
		return openai.ChatCompletionFunctionTool(fn)
	})
}

// dialect is what the server accepts as tools.
func (m *Model) dialect() *schema.Dialect {
	if m.openai {
		return schema.OpenAI
	}
	return schema.Chat
}

// newToolChoice returns the choice; auto is the protocol's default and not sent.
func newToolChoice(choice string) openai.ChatCompletionToolChoiceOptionUnionParam {
	switch choice {
	case "", "auto":
		return openai.ChatCompletionToolChoiceOptionUnionParam{}
	case "none", "required":
		return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(choice)}
	}
	return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: choice})
}
