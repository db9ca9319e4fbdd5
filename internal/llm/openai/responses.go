package openai

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/schema"
)

// reservedResponses are the members of a request for a response that params
// can't set.
var reservedResponses = []string{
	"background", "conversation", "input", "instructions", "model", "previous_response_id", "stream", "tool_choice", "tools",
}

// reasons matches the names of reasoning models. They can return encrypted
// reasoning; other models refuse requests for it.
var reasons = regexp.MustCompile(`(^|[/:])(o[1-9]|gpt-([5-9]|[1-9][0-9])|codex)`)

// newResponse builds the request, without these optional members. The server keeps
// nothing of it, unless params say so. Its error is a fault of the run's config.
func (m *Model) newResponse(req *executor.Request, thoughts llm.Thoughts, without []string) (responses.ResponseNewParams, error) {
	body := responses.ResponseNewParams{
		Model: req.Model, Store: param.NewOpt(false),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: m.newItems(acceptsOpenAI.Fit(req.Messages), thoughts)},
	}
	if req.System != "" {
		body.Instructions = param.NewOpt(req.System)
	}
	members, err := llm.Params(req.Params, reservedResponses)
	if err != nil {
		return body, err
	}
	extra := make(map[string]any, len(members)+1)
	for name, value := range members {
		extra[name] = value
	}
	if req.OutputTokensMax > 0 {
		if extra["max_output_tokens"], err = llm.OutputTokensMax(req, "max_output_tokens", members["max_output_tokens"], 0, responseTokensMin); err != nil {
			return body, err
		}
	}
	if _, given := members["store"]; given {
		body.Store = param.Opt[bool]{}
	}
	if _, given := members[memberInclude]; !given && reasons.MatchString(req.Model) && !slices.Contains(without, memberInclude) {
		body.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	cache(req, members, extra, responseLifetime, without)
	if len(req.Tools)+len(req.Defined) > 0 {
		tools, err := req.RenderDefined(responseToolsForm, renderResponseTools)
		if err != nil {
			return body, err
		}
		extra["tools"] = json.RawMessage(tools)
		body.ToolChoice = newResponseChoice(req)
	}
	if f := req.Format; f != nil {
		format, err := newResponseFormat(f)
		if err != nil {
			return body, err
		}
		if extra["text"], err = llm.Merge(members, "text", "format", format); err != nil {
			return body, err
		}
	}
	if len(extra) > 0 {
		body.SetExtraFields(extra)
	}
	return body, nil
}

func newResponseFormat(f *executor.Format) (format responses.ResponseFormatTextConfigUnionParam, err error) {
	if f.Schema == nil {
		format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		return format, nil
	}
	schema, err := llm.Members(f.Schema, "response_format.schema")
	if err != nil {
		return format, err
	}
	format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{
		Name: llm.FormatName(f), Schema: make(map[string]any, len(schema)), Strict: param.NewOpt(f.Strict),
	}
	for name, value := range schema {
		format.OfJSONSchema.Schema[name] = value
	}
	return format, nil
}

// newItems builds the conversation. Every piece of a turn is an item of its own.
func (m *Model) newItems(messages []executor.Message, thoughts llm.Thoughts) responses.ResponseInputParam {
	var items responses.ResponseInputParam
	for i := range messages {
		msg := &messages[i]
		switch msg.Role {
		case "user":
			items = append(items, newInput(msg))
		case "tool":
			items = append(items, newOutput(msg))
		default:
			items = append(items, m.newTurn(msg, thoughts)...)
		}
	}
	return items
}

// newInput returns a user message.
func newInput(m *executor.Message) responses.ResponseInputItemUnionParam {
	if len(m.Parts) == 0 {
		return newWords(llm.Spoken(m.Text), responses.EasyInputMessageRoleUser)
	}
	var content responses.ResponseInputMessageContentListParam
	for i := range m.Parts {
		if p := &m.Parts[i]; len(p.Data) > 0 {
			content = append(content, newInputFile(p))
		} else if !llm.IsBlank(p.Text) {
			content = append(content, responses.ResponseInputContentParamOfInputText(p.Text))
		}
	}
	item := responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)
	item.OfMessage.Type = responses.EasyInputMessageTypeMessage
	return item
}

// newWords returns a message of text.
func newWords(text string, role responses.EasyInputMessageRole) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfMessage(text, role)
	item.OfMessage.Type = responses.EasyInputMessageTypeMessage
	return item
}

func newOutput(m *executor.Message) responses.ResponseInputItemUnionParam {
	output := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(llm.CallID(m.CallID))}
	if !slices.ContainsFunc(m.Parts, func(p executor.Part) bool { return len(p.Data) > 0 }) {
		output.Output.OfString = param.NewOpt(llm.Result(m))
		return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}
	}
	for i := range m.Parts {
		var part responses.ResponseFunctionCallOutputItemUnionParam
		if p := &m.Parts[i]; len(p.Data) > 0 {
			part = newOutputFile(p)
		} else if !llm.IsBlank(p.Text) {
			part.OfInputText = &responses.ResponseInputTextContentParam{Text: p.Text}
		} else {
			continue
		}
		output.Output.OfResponseFunctionCallOutputItemArray = append(output.Output.OfResponseFunctionCallOutputItemArray, part)
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}
}

// newTurn returns a turn of the model, with its thoughts if they are this server's.
func (m *Model) newTurn(msg *executor.Message, thoughts llm.Thoughts) responses.ResponseInputParam {
	var items responses.ResponseInputParam
	text := msg.Text
	for _, p := range llm.Pieces(m.of, thoughts, msg) {
		switch {
		case p.Item != "":
			items = append(items, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(p.Item)))
		case p.Call > 0:
			c := msg.Calls[p.Call-1]
			item := responses.ResponseInputItemParamOfFunctionCall(string(llm.Object(c.Arguments)), llm.CallID(c.ID), llm.ToolName(c.Name))
			if p.Mark != "" {
				item.OfFunctionCall.ID = param.NewOpt(p.Mark)
			}
			items = append(items, item)
		case p.Mark != "":
			items = append(items, newReasonedText(text[:p.Text], p.Mark))
			text = text[p.Text:]
		default:
			items = append(items, newWords(text[:p.Text], responses.EasyInputMessageRoleAssistant))
			text = text[p.Text:]
		}
	}
	return items
}

// newReasonedText returns text that followed reasoning, with the server's own id.
func newReasonedText(text, id string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfOutputMessage([]responses.ResponseOutputMessageContentUnionParam{
		{OfOutputText: &responses.ResponseOutputTextParam{Text: text, Annotations: []responses.ResponseOutputTextAnnotationUnionParam{}}},
	}, id, responses.ResponseOutputMessageStatusCompleted)
}

// responseToolsForm identifies the format of renderResponseTools.
const responseToolsForm = "openai.responses.tools"

// renderResponseTools returns the request's member tools as JSON.
func renderResponseTools(tools []executor.Tool) ([]byte, error) {
	return llm.RenderTools(schema.OpenAI, tools, func(t *executor.Tool, members map[string]any) responses.ToolUnionParam {
		// Strict schemas need a form that few tools have.
		tool := responses.ToolParamOfFunction(t.Name, members, false)
		if t.Description != "" {
			tool.OfFunction.Description = param.NewOpt(t.Description)
		}
		return tool
	})
}

// newResponseChoice returns the choice; auto is the default and not sent.
func newResponseChoice(req *executor.Request) responses.ResponseNewParamsToolChoiceUnion {
	choice := req.ToolChoice
	if req.Defined != nil {
		mode, restricted := allowedMode(req)
		if restricted {
			allowed := &responses.ToolChoiceAllowedParam{Mode: responses.ToolChoiceAllowedMode(mode)}
			for i := range req.Tools {
				allowed.Tools = append(allowed.Tools, map[string]any{"type": "function", "name": req.Tools[i].Name})
			}
			return responses.ResponseNewParamsToolChoiceUnion{OfAllowedTools: allowed}
		}
		choice = mode
	}
	switch choice {
	case "", "auto":
		return responses.ResponseNewParamsToolChoiceUnion{}
	case "none", "required":
		return responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptions(choice))}
	}
	return responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: choice}}
}
